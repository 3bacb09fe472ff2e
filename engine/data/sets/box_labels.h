// The objects on one picture, as a file beside it says: Darknet's label text and what YOLO's
// programs made of it, and VOC's XML.
//
// Everything that is wrong with a file is found, not only the first: each problem names file and
// line. A file with problems still gives the boxes that are right.

#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/base/targets.h"
#include "engine/data/sets/data_problem.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

struct ReadBoxes {
  std::vector<Box> boxes;
  std::vector<DataProblem> problems;
  // Of the picture, as the file says; 0: it does not.
  double width = 0;
  double height = 0;
  Index polygons = 0;  // of which boxes were taken
};

// Adds boxes to a list, each once.
class DifferentBoxes {
 public:
  explicit DifferentBoxes(std::vector<Box>& boxes) : boxes_(&boxes) {}
  // Whether it was not there.
  bool add(const Box& box) {
    const bool is_new =
        seen_.emplace(box.label, box.centre_x, box.centre_y, box.width, box.height, box.ignored)
            .second;
    if (is_new) {
      boxes_->push_back(box);
    }
    return is_new;
  }

 private:
  std::vector<Box>* boxes_;
  std::set<std::tuple<int, float, float, float, float, bool>> seen_;
};

// Why no object can have this box; empty where one can. What exceeds the bounds by rounding alone
// (less than a thousandth of the picture) is set to the bound. A box may stick out of the picture,
// but not its centre.
[[nodiscard]] std::string unusable_box(Box& box);

// Adds an object to `boxes`, which are those of `read`. Where no object can have its box, or it is
// there already, that is a problem at `where` instead, which begins with `prefix`; of an ignored
// object neither is.
void add_object(Box box,
                const std::string& where,
                const std::string& prefix,
                DifferentBoxes& boxes,
                ReadBoxes& read);

// Where the boxes of a picture are: the last folder images or JPEGImages of its path becomes
// labels, and the file's ending .txt. Where there is no such file, one beside the picture.
[[nodiscard]] std::filesystem::path label_path(const std::filesystem::path& picture);

// What a line of a label text may be beside `class x y width height`.
struct LabelLines {
  // `class x1 y1 x2 y2 x3 y3 ...` of three corners or more: the box around them counts.
  bool polygons = false;
  // So many numbers, of which the first five count: keypoints follow. 0: there are no such lines.
  // Otherwise there are no polygons.
  Index pose_numbers = 0;
};

// Lines `class x y width height`: the class counted from 0, all else in fractions of the picture,
// x and y those of the centre. An empty file says that nothing is on the picture.
[[nodiscard]] ReadBoxes read_label_text(const std::filesystem::path& file,
                                        int classes,
                                        const LabelLines& lines = {});

// An object of VOC's XML. Pixels, the first of which has the number 1.
struct VocObject {
  std::string name;
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
  bool difficult = false;  // hard to see
  int line = 0;
};

struct VocAnnotation {
  double width = 0;  // of the picture; 0: a problem says why it is not known
  double height = 0;
  std::vector<VocObject> objects;
  std::vector<DataProblem> problems;
};

// May be called from several threads once another call has returned.
[[nodiscard]] VocAnnotation read_voc_annotation(const std::filesystem::path& file);

// The place of each class in a list, the first one of those of one name.
using ClassNumbers = std::map<std::string, int>;
[[nodiscard]] ClassNumbers numbers_of(const std::vector<std::string>& class_names);

// Its boxes as Darknet's voc_label.py makes them: a pixel nearer to the left upper corner than the
// numbers say. Difficult objects, which that leaves out, are ignored ones.
[[nodiscard]] ReadBoxes boxes_of_voc(const VocAnnotation& annotation,
                                     const ClassNumbers& classes,
                                     const std::filesystem::path& file);

}  // namespace tessera::engine
