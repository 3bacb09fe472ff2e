// A matrix of counts as a field of cells, such as a confusion matrix: the diagonal in one colour,
// all else in another, each the stronger the larger its share of the row.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::engine {

struct MatrixChart {
  std::string id = {};
  std::string title = {};
  std::string row_name = {};                          // "class"
  std::string column_name = {};                       // "taken for"
  std::vector<std::string> names = {};                // of rows and columns
  std::vector<std::vector<std::int64_t>> cells = {};  // square, [row][column]
  std::string note = {};
};

// The most rows; more could not be told apart.
inline constexpr std::size_t kMostMatrixRows = 100;

// Whether there is nothing to draw: no cells, too many, or all 0.
[[nodiscard]] bool is_empty(const MatrixChart& chart);

[[nodiscard]] std::string matrix_chart_html(const MatrixChart& chart);

}  // namespace tessera::engine
