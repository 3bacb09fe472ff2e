#include "engine/drawing/font_text.h"

#include "partitioner/base/errors.h"

#ifdef TESSERA_HAS_PANGO

#include <algorithm>
#include <memory>
#include <optional>
#include <pango/pangocairo.h>

#include "partitioner/base/late_library.h"

namespace tessera::engine {

namespace {

// Functions of Pango, of Cairo and of GLib, all of them found through the first.
struct Pango {
  decltype(&::pango_cairo_font_map_new) create_font_map = nullptr;
  decltype(&::pango_font_map_load_font) load_font = nullptr;
  decltype(&::g_object_unref) release = nullptr;
  decltype(&::cairo_image_surface_create) create_surface = nullptr;
  decltype(&::cairo_surface_destroy) destroy_surface = nullptr;
  decltype(&::cairo_surface_flush) flush = nullptr;
  decltype(&::cairo_image_surface_get_data) pixels = nullptr;
  decltype(&::cairo_image_surface_get_stride) stride = nullptr;
  decltype(&::cairo_create) create = nullptr;
  decltype(&::cairo_destroy) destroy = nullptr;
  decltype(&::cairo_status) status = nullptr;
  decltype(&::cairo_move_to) move_to = nullptr;
  decltype(&::pango_font_map_create_context) create_context = nullptr;
  decltype(&::pango_layout_new) create_layout = nullptr;
  decltype(&::pango_cairo_show_layout) show = nullptr;
  decltype(&::pango_font_description_from_string) create_description = nullptr;
  decltype(&::pango_font_description_set_absolute_size) set_size = nullptr;
  decltype(&::pango_font_description_free) destroy_description = nullptr;
  decltype(&::pango_layout_set_font_description) set_description = nullptr;
  decltype(&::pango_layout_set_single_paragraph_mode) set_single_paragraph = nullptr;
  decltype(&::pango_layout_set_width) set_width = nullptr;
  decltype(&::pango_layout_set_height) set_height = nullptr;
  decltype(&::pango_layout_set_wrap) set_wrap = nullptr;
  decltype(&::pango_layout_set_ellipsize) set_ellipsize = nullptr;
  decltype(&::pango_layout_set_text) set_text = nullptr;
  decltype(&::pango_layout_get_pixel_extents) extents = nullptr;
  decltype(&::pango_layout_get_unknown_glyphs_count) unknown_glyphs = nullptr;
};

std::optional<Pango> load_pango() {
  LateLibrary library({"libpangocairo-1.0.so.0"});
  Pango pango;
  library.find(pango.create_font_map, "pango_cairo_font_map_new");
  library.find(pango.load_font, "pango_font_map_load_font");
  library.find(pango.release, "g_object_unref");
  library.find(pango.create_surface, "cairo_image_surface_create");
  library.find(pango.destroy_surface, "cairo_surface_destroy");
  library.find(pango.flush, "cairo_surface_flush");
  library.find(pango.pixels, "cairo_image_surface_get_data");
  library.find(pango.stride, "cairo_image_surface_get_stride");
  library.find(pango.create, "cairo_create");
  library.find(pango.destroy, "cairo_destroy");
  library.find(pango.status, "cairo_status");
  library.find(pango.move_to, "cairo_move_to");
  library.find(pango.create_context, "pango_font_map_create_context");
  library.find(pango.create_layout, "pango_layout_new");
  library.find(pango.show, "pango_cairo_show_layout");
  library.find(pango.create_description, "pango_font_description_from_string");
  library.find(pango.set_size, "pango_font_description_set_absolute_size");
  library.find(pango.destroy_description, "pango_font_description_free");
  library.find(pango.set_description, "pango_layout_set_font_description");
  library.find(pango.set_single_paragraph, "pango_layout_set_single_paragraph_mode");
  library.find(pango.set_width, "pango_layout_set_width");
  library.find(pango.set_height, "pango_layout_set_height");
  library.find(pango.set_wrap, "pango_layout_set_wrap");
  library.find(pango.set_ellipsize, "pango_layout_set_ellipsize");
  library.find(pango.set_text, "pango_layout_set_text");
  library.find(pango.extents, "pango_layout_get_pixel_extents");
  library.find(pango.unknown_glyphs, "pango_layout_get_unknown_glyphs_count");
  return library.is_complete() ? std::optional(pango) : std::nullopt;
}

const std::optional<Pango>& loaded_pango() {
  static const std::optional<Pango> pango = load_pango();
  return pango;
}

template <class T>
using Owned = std::unique_ptr<T, decltype(&::g_object_unref)>;

// The fonts of this machine. Finding them takes a while, so they are kept.
PangoFontMap* font_map(const Pango& pango) {
  static const Owned<PangoFontMap> fonts(pango.create_font_map(), pango.release);
  return fonts.get();
}

using OwnedFont = std::unique_ptr<PangoFontDescription, decltype(&::pango_font_description_free)>;

OwnedFont usual_font(const Pango& pango) {
  return {pango.create_description("sans-serif"), pango.destroy_description};
}

// A surface of 8 bits of coverage, and what draws on it.
class Drawing {
 public:
  Drawing(const Pango& pango, Index rows, Index cols)
      : surface_(
            pango.create_surface(CAIRO_FORMAT_A8, static_cast<int>(cols), static_cast<int>(rows)),
            pango.destroy_surface),
        context_(pango.create(surface_.get()), pango.destroy) {}

  [[nodiscard]] cairo_surface_t* surface() const { return surface_.get(); }
  [[nodiscard]] cairo_t* context() const { return context_.get(); }

 private:
  std::unique_ptr<cairo_surface_t, decltype(&::cairo_surface_destroy)> surface_;
  std::unique_ptr<cairo_t, decltype(&::cairo_destroy)> context_;
};

// What the text covers, logically and by its ink: letters may lean out of their lines.
PangoRectangle covered(const Pango& pango, PangoLayout* layout) {
  PangoRectangle ink{};
  PangoRectangle lines{};
  pango.extents(layout, &ink, &lines);
  const int left = std::min(ink.x, lines.x);
  const int top = std::min(ink.y, lines.y);
  return {left,
          top,
          std::max(ink.x + ink.width, lines.x + lines.width) - left,
          std::max(ink.y + ink.height, lines.y + lines.height) - top};
}

// Lays the text out in lines of `cols` pixels.
PangoRectangle lay_out(const Pango& pango,
                       PangoLayout* layout,
                       const std::string& text,
                       const TextLayout& wanted,
                       Index cols) {
  pango.set_width(layout, static_cast<int>(cols * PANGO_SCALE));
  pango.set_height(layout, static_cast<int>(-wanted.max_lines));
  pango.set_wrap(layout, PANGO_WRAP_WORD_CHAR);
  pango.set_ellipsize(layout, PANGO_ELLIPSIZE_MIDDLE);
  pango.set_single_paragraph(layout, TRUE);
  pango.set_text(layout, text.data(), static_cast<int>(text.size()));
  return covered(pango, layout);
}

}  // namespace

std::string font_text_problem() {
  const std::optional<Pango>& pango = loaded_pango();
  if (!pango) {
    return "Pango is missing: install libpangocairo-1.0-0";
  }
  const Owned<PangoContext> context(pango->create_context(font_map(*pango)), pango->release);
  const OwnedFont description = usual_font(*pango);
  PangoFont* font = pango->load_font(font_map(*pango), context.get(), description.get());
  if (font == nullptr) {
    return "there are no fonts: install fonts-dejavu-core";
  }
  pango->release(font);
  return "";
}

TextMask font_text_mask(const std::string& text, const TextLayout& wanted) {
  const Pango& pango = loaded_pango().value();
  const Owned<PangoContext> context(pango.create_context(font_map(pango)), pango.release);
  const Owned<PangoLayout> layout(pango.create_layout(context.get()), pango.release);
  const OwnedFont font = usual_font(pango);
  // A line of a usual font is about 1.2 times as high as the font's size.
  pango.set_size(font.get(), static_cast<double>(wanted.height) * PANGO_SCALE / 1.2);
  pango.set_description(layout.get(), font.get());
  PangoRectangle area = lay_out(pango, layout.get(), text, wanted, wanted.max_cols);
  if (area.width > wanted.max_cols) {  // ink to the left or right of its line
    const Index over = area.width - wanted.max_cols;
    area = lay_out(pango, layout.get(), text, wanted, std::max<Index>(1, wanted.max_cols - over));
  }

  TextMask mask;
  mask.rows = area.height;
  mask.cols = std::min<Index>(area.width, wanted.max_cols);
  mask.unknown = pango.unknown_glyphs(layout.get());
  const Drawing drawing(pango, std::max<Index>(1, mask.rows), std::max<Index>(1, mask.cols));
  pango.move_to(drawing.context(), -area.x, -area.y);
  pango.show(drawing.context(), layout.get());
  pango.flush(drawing.surface());
  expects(pango.status(drawing.context()) == CAIRO_STATUS_SUCCESS, "Cairo draws text");
  const unsigned char* line = pango.pixels(drawing.surface());
  for (Index row = 0; row < mask.rows; ++row, line += pango.stride(drawing.surface())) {
    mask.coverage.insert(mask.coverage.end(), line, line + mask.cols);
  }
  return mask;
}

}  // namespace tessera::engine

#else

namespace tessera::engine {

std::string font_text_problem() {
  return "this program was built without Pango: install libpango1.0-dev and build it again";
}

TextMask font_text_mask(const std::string& /*text*/, const TextLayout& /*layout*/) {
  expects(false, "text is drawn by Pango only where it is there");
  return {};
}

}  // namespace tessera::engine

#endif
