#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <memory>
#include <optional>
#include <string_view>

#include "engine/data/sets/box_labels.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/regular_file.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

constexpr Index kMostXmlBytes = Index{16} << 20U;

constexpr std::size_t kMostTagBytes = 4096;

// Where a tag begins that is too long, or declares attributes; npos where there is none. The time
// that attributes take to read grows with the square of their number, and VOC's files have none.
std::size_t long_tag(std::string_view text) {
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at)) {
    const std::size_t end = std::min(text.find('>', at), text.size());
    const bool may_be_long = text.substr(at, 2) == "<!" || text.substr(at, 2) == "<?";
    if ((!may_be_long && end - at > kMostTagBytes) || text.substr(at, 9) == "<!ATTLIST") {
      return at;
    }
    at = may_be_long ? at + 1 : end;
  }
  return std::string_view::npos;
}

struct XmlContextEnd {
  void operator()(xmlParserCtxt* context) const { xmlFreeParserCtxt(context); }
};
struct XmlDocumentEnd {
  void operator()(xmlDoc* document) const { xmlFreeDoc(document); }
};
using XmlDocument = std::unique_ptr<xmlDoc, XmlDocumentEnd>;

bool is_called(const xmlNode* node, const char* name) {
  return node->type == XML_ELEMENT_NODE &&
         xmlStrEqual(node->name, reinterpret_cast<const xmlChar*>(name)) != 0;
}

const xmlNode* child_of(const xmlNode* parent, const char* name) {
  for (const xmlNode* node = parent->children; node != nullptr; node = node->next) {
    if (is_called(node, name)) {
      return node;
    }
  }
  return nullptr;
}

// The text directly in a node, without spaces at its ends.
std::string text_of_node(const xmlNode* node) {
  std::string text;
  for (const xmlNode* part = node->children; part != nullptr; part = part->next) {
    if ((part->type == XML_TEXT_NODE || part->type == XML_CDATA_SECTION_NODE) &&
        part->content != nullptr) {
      text += reinterpret_cast<const char*>(part->content);
    }
  }
  return std::string(trimmed(text));
}

int line_of(const xmlNode* node) {
  return static_cast<int>(xmlGetLineNo(const_cast<xmlNode*>(node)));
}

class VocReader {
 public:
  explicit VocReader(fs::path file) : file_(std::move(file)) {}

  VocAnnotation read() {
    const XmlDocument document = parse();
    if (!document) {
      return std::move(annotation_);
    }
    const xmlNode* root = xmlDocGetRootElement(document.get());
    if (root == nullptr || !is_called(root, "annotation")) {
      bad(root == nullptr ? 0 : line_of(root), "expected <annotation>, as VOC's files have it");
      return std::move(annotation_);
    }
    read_size(*root);
    for (const xmlNode* node = root->children; node != nullptr; node = node->next) {
      if (is_called(node, "object")) {
        read_object(*node);
      }
    }
    return std::move(annotation_);
  }

 private:
  void bad(int line, std::string what) {
    const std::string where =
        line > 0 ? fmt::format("{}:{}", file_.string(), line) : file_.string();
    annotation_.problems.push_back({DataFault::BadLabel, where, std::move(what)});
  }

  XmlDocument parse() {
    std::string text;
    try {
      text = read_regular_file(file_, "an XML file", kMostXmlBytes);
    } catch (const InputError& error) {
      annotation_.problems.push_back({DataFault::BadLabel, "", error.what()});
      return nullptr;
    }
    if (const std::size_t at = long_tag(text); at != std::string::npos) {
      bad(static_cast<int>(
              1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')),
          fmt::format("a tag of more than {} bytes, or one that declares attributes: VOC's files "
                      "have none",
                      kMostTagBytes));
      return nullptr;
    }
    xmlInitParser();
    const std::unique_ptr<xmlParserCtxt, XmlContextEnd> context(xmlNewParserCtxt());
    if (!context) {
      throw std::bad_alloc();
    }
    // Entities are not put in, and nothing else is loaded.
    constexpr int kOptions =
        XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_BIG_LINES;
    XmlDocument document(xmlCtxtReadMemory(
        context.get(), text.data(), static_cast<int>(text.size()), nullptr, nullptr, kOptions));
    if (!document) {
      const xmlError* error = xmlCtxtGetLastError(context.get());
      std::string why = error != nullptr && error->message != nullptr ? error->message : "";
      why.erase(why.find_last_not_of(" \r\n") + 1);
      bad(error != nullptr ? error->line : 0,
          fmt::format("not XML{}{}", why.empty() ? "" : ": ", printable_start(why, 120)));
    }
    return document;
  }

  std::optional<double> number(const xmlNode& parent, const char* name) {
    const xmlNode* node = child_of(&parent, name);
    if (node == nullptr) {
      bad(line_of(&parent), fmt::format("<{}> is missing: expected a number of pixels", name));
      return std::nullopt;
    }
    const std::string text = text_of_node(node);
    const auto value = parsed_number<double>(text);
    if (!value || !std::isfinite(*value)) {
      bad(line_of(node),
          fmt::format("<{}> is \"{}\": expected a number of pixels", name, printable_start(text)));
      return std::nullopt;
    }
    return value;
  }

  void read_size(const xmlNode& root) {
    const xmlNode* size = child_of(&root, "size");
    if (size == nullptr) {
      bad(line_of(&root), "<size> is missing: expected the picture's width and height");
      return;
    }
    const std::optional<double> width = number(*size, "width");
    const std::optional<double> height = number(*size, "height");
    if (!width || !height) {
      return;
    }
    if (*width <= 0 || *height <= 0) {
      bad(line_of(size),
          fmt::format("a picture of {} x {} pixels: expected its true size", *width, *height));
      return;
    }
    annotation_.width = *width;
    annotation_.height = *height;
  }

  void read_object(const xmlNode& node) {
    VocObject object;
    object.line = line_of(&node);
    const xmlNode* name = child_of(&node, "name");
    object.name = name == nullptr ? "" : text_of_node(name);
    if (object.name.empty()) {
      bad(object.line, "an object without a <name>: expected its class");
      return;
    }
    const xmlNode* box = child_of(&node, "bndbox");
    if (box == nullptr) {
      bad(object.line, "an object without a <bndbox>: expected its box");
      return;
    }
    const std::optional<double> left = number(*box, "xmin");
    const std::optional<double> top = number(*box, "ymin");
    const std::optional<double> right = number(*box, "xmax");
    const std::optional<double> bottom = number(*box, "ymax");
    if (!left || !top || !right || !bottom) {
      return;
    }
    object.left = *left;
    object.top = *top;
    object.right = *right;
    object.bottom = *bottom;
    const xmlNode* difficult = child_of(&node, "difficult");
    object.difficult = difficult != nullptr && text_of_node(difficult) == "1";
    annotation_.objects.push_back(std::move(object));
  }

  fs::path file_;
  VocAnnotation annotation_;
};

}  // namespace

VocAnnotation read_voc_annotation(const fs::path& file) {
  return VocReader(file).read();
}

}  // namespace tessera::engine
