// Which cells a layer reads, enumerated from the definition of each layer one output value at a
// time. Slow and independent of the interval arithmetic of required_input, which it checks.

#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>
#include <variant>

#include "partitioner/network/network.h"

namespace tessera::tests {

using partitioner::MapShape;
using partitioner::Network;

struct Cell {
  Index channel = 0;
  Index row = 0;
  Index col = 0;
};

inline Region box_of(Index image, const Cell& cell) {
  return {{image, image + 1},
          {cell.channel, cell.channel + 1},
          {cell.row, cell.row + 1},
          {cell.col, cell.col + 1}};
}

inline bool inside(const MapShape& shape, const Cell& cell) {
  return cell.channel >= 0 && cell.channel < shape.channels && cell.row >= 0 &&
         cell.row < shape.rows && cell.col >= 0 && cell.col < shape.cols;
}

inline Index flat(const MapShape& shape, const Cell& cell) {
  return (cell.channel * shape.rows + cell.row) * shape.cols + cell.col;
}

inline Cell cell_at(const MapShape& shape, Index position) {
  const Index plane = shape.rows * shape.cols;
  return {position / plane, position % plane / shape.cols, position % shape.cols};
}

// Darknet's loop over the smaller number of channels: position (channel, row, col) there is this
// one here.
inline Index reorg_position(const MapShape& in, Index stride, const Cell& cell) {
  const Index channels = in.channels / (stride * stride);
  const Index offset = cell.channel / channels;
  const Index row = cell.row * stride + offset / stride;
  const Index col = cell.col * stride + offset % stride;
  return col + in.cols * stride * (row + in.rows * stride * (cell.channel % channels));
}

// What an output value is read from: the layer, one of its inputs, and who is told about each cell
// read.
struct Reader {
  const Network& network;
  const partitioner::LayerSpec& layer;
  std::size_t input;
  const MapShape& in;
  const std::function<void(const Cell&)>& read;

  template <typename Condition>
  void read_all_if(const Condition& condition) const {
    for (Index i = 0; i < in.volume(); ++i) {
      if (condition(cell_at(in, i))) {
        read(cell_at(in, i));
      }
    }
  }
};

// One overload for each kind that does more than pass its input on.

inline void read_cells(const partitioner::Convolution& kind, const Reader& reader, const Cell& at) {
  const Index per_group = reader.in.channels / kind.groups;
  const Index group = at.channel / (kind.filters / kind.groups);
  for (Index c = 0; c < per_group; ++c) {
    for (Index i = 0; i < kind.size.product(); ++i) {
      reader.read(
          {group * per_group + c,
           at.row * kind.stride.rows - kind.padding.rows + i / kind.size.cols * kind.dilation,
           at.col * kind.stride.cols - kind.padding.cols + i % kind.size.cols * kind.dilation});
    }
  }
}

inline void read_cells(const partitioner::Deconvolution& kind,
                       const Reader& reader,
                       const Cell& at) {
  const auto reaches = [](const partitioner::WindowAxis& axis, Index from, Index to) {
    const Index tap = to + axis.padding - from * axis.stride;
    return tap >= 0 && tap < axis.size;
  };
  reader.read_all_if([&](const Cell& cell) {
    return reaches(kind.rows(), cell.row, at.row) && reaches(kind.cols(), cell.col, at.col);
  });
}

inline void read_cells(const partitioner::MaxPool& kind, const Reader& reader, const Cell& at) {
  for (Index i = 0; i < kind.size * kind.size; ++i) {
    const Cell cell{at.channel,
                    at.row * kind.stride.rows - kind.padding.rows / 2 + i / kind.size,
                    at.col * kind.stride.cols - kind.padding.cols / 2 + i % kind.size};
    if (inside(reader.in, cell)) {
      reader.read(cell);
    }
  }
}

inline void read_cells(const partitioner::ChannelPool& kind, const Reader& reader, const Cell& at) {
  for (Index c = at.channel; c < reader.in.channels; c += kind.outputs) {
    reader.read({c, at.row, at.col});
  }
}

inline void read_cells(const partitioner::AvgPool& /*kind*/, const Reader& reader, const Cell& at) {
  reader.read_all_if([&](const Cell& cell) { return cell.channel == at.channel; });
}

inline void read_cells(const partitioner::Connected& /*kind*/,
                       const Reader& reader,
                       const Cell& /*at*/) {
  reader.read_all_if([](const Cell&) { return true; });
}

inline void read_cells(const partitioner::Local& kind, const Reader& reader, const Cell& at) {
  for (Index i = 0; i < reader.in.channels * kind.size * kind.size; ++i) {
    const Index tap = i % (kind.size * kind.size);
    const Cell cell{i / (kind.size * kind.size),
                    at.row * kind.stride - kind.padding + tap / kind.size,
                    at.col * kind.stride - kind.padding + tap % kind.size};
    if (inside(reader.in, cell)) {
      reader.read(cell);
    }
  }
}

inline void read_cells(const partitioner::Softmax& kind, const Reader& reader, const Cell& at) {
  const Index run = reader.in.volume() / kind.groups;
  reader.read_all_if([&](const Cell& cell) {
    return kind.spatial ? cell.row == at.row && cell.col == at.col
                        : flat(reader.in, cell) / run == flat(reader.in, at) / run;
  });
}

// Whether cell `source` of `in` cells in a row meets cell `at` of `out`.
inline bool meets(Index source, Index in, Index at, Index out) {
  return in >= out ? source == at * (in / out) : source * (out / in) == at;
}

inline void read_cells(const partitioner::Shortcut& /*kind*/,
                       const Reader& reader,
                       const Cell& at) {
  const MapShape& out = reader.layer.output;
  reader.read_all_if([&](const Cell& cell) {
    return cell.channel == at.channel && meets(cell.row, reader.in.rows, at.row, out.rows) &&
           meets(cell.col, reader.in.cols, at.col, out.cols);
  });
}

inline void read_cells(const partitioner::ScaleChannels& kind,
                       const Reader& reader,
                       const Cell& at) {
  if (reader.input == 1) {
    reader.read(at);
  } else {
    reader.read(kind.by_place ? Cell{0, at.row, at.col} : Cell{at.channel, 0, 0});
  }
}

inline void read_cells(const partitioner::GridHead& /*kind*/,
                       const Reader& reader,
                       const Cell& /*at*/) {
  reader.read_all_if([](const Cell&) { return true; });
}

template <typename Head>
requires(std::is_same_v<Head, partitioner::YoloHead> ||
         std::is_same_v<Head, partitioner::RegionHead> ||
         std::is_same_v<Head, partitioner::YoloxHead>) void read_cells(const Head& /*kind*/,
                                                                       const Reader& reader,
                                                                       const Cell& at) {
  reader.read_all_if([&](const Cell& cell) { return cell.row == at.row && cell.col == at.col; });
}

inline void read_cells(const partitioner::Route& kind, const Reader& reader, const Cell& at) {
  Index channel = 0;
  for (std::size_t i = 0; i < reader.layer.inputs.size(); ++i) {
    const Index slice = reader.network.shape(reader.layer.inputs[i]).channels / kind.groups;
    for (Index c = slice * kind.group; c < slice * (kind.group + 1); ++c, ++channel) {
      if (i == reader.input && channel == at.channel) {
        reader.read({c, at.row, at.col});
      }
    }
  }
}

inline void read_cells(const partitioner::Upsample& kind, const Reader& reader, const Cell& at) {
  if (!kind.bilinear) {
    reader.read({at.channel, at.row / kind.stride, at.col / kind.stride});
    return;
  }
  const auto near = [&kind](Index out, Index cell, Index cells) {
    const auto stride = static_cast<double>(kind.stride);
    const double place = std::clamp(
        (static_cast<double>(out) + 0.5) / stride - 0.5, 0.0, static_cast<double>(cells - 1));
    return std::abs(place - static_cast<double>(cell)) < 1 - 1e-9;
  };
  reader.read_all_if([&](const Cell& cell) {
    return cell.channel == at.channel && near(at.row, cell.row, reader.in.rows) &&
           near(at.col, cell.col, reader.in.cols);
  });
}

inline void read_cells(const partitioner::Reorg& kind, const Reader& reader, const Cell& at) {
  const Index out = flat(reader.layer.output, at);
  const Index here = reorg_position(reader.in, kind.stride, cell_at(reader.in, out));
  reader.read_all_if([&](const Cell& cell) {
    return kind.reverse ? reorg_position(reader.in, kind.stride, cell) == out
                        : flat(reader.in, cell) == here;
  });
}

inline void read_cells(const partitioner::SpaceToDepth& kind,
                       const Reader& reader,
                       const Cell& at) {
  const Index block = at.channel / reader.in.channels;
  reader.read({at.channel % reader.in.channels,
               at.row * kind.stride + block / kind.stride,
               at.col * kind.stride + block % kind.stride});
}

inline void read_cells(const partitioner::ChannelShuffle& kind,
                       const Reader& reader,
                       const Cell& at) {
  const Index per_group = reader.in.channels / kind.groups;
  for (Index group = 0; group < kind.groups; ++group) {
    for (Index i = 0; i < per_group; ++i) {
      if (i * kind.groups + group == at.channel) {
        reader.read({group * per_group + i, at.row, at.col});
      }
    }
  }
}

template <typename PassThrough>
void read_cells(const PassThrough& /*kind*/, const Reader& reader, const Cell& at) {
  static_assert(std::is_same_v<PassThrough, partitioner::Dropout> ||
                std::is_same_v<PassThrough, partitioner::Cost> ||
                std::is_same_v<PassThrough, partitioner::Crop> ||
                std::is_same_v<PassThrough, partitioner::Sam>);
  reader.read(at);
}

// Calls read(cell) for each cell of input `input` that output value `at` depends on.
inline void for_each_cell_read(const Network& network,
                               int layer,
                               std::size_t input,
                               const Cell& at,
                               const std::function<void(const Cell&)>& read) {
  const partitioner::LayerSpec& spec = network.layer(layer);
  const Reader reader{network, spec, input, network.shape(spec.inputs[input]), read};
  // A shortcut passes its first input on.
  if (std::holds_alternative<partitioner::Shortcut>(spec.operation) && input == 0) {
    read(at);
    return;
  }
  std::visit([&](const auto& kind) { read_cells(kind, reader, at); }, spec.operation);
}

// The smallest region around the cells of input `input` that the values of `output` depend on.
inline Region box_of_cells_read(const Network& network,
                                int layer,
                                std::size_t input,
                                const Region& output) {
  Region box;
  for (Index c = output.channels.begin; c < output.channels.end; ++c) {
    for (Index row = output.rows.begin; row < output.rows.end; ++row) {
      for (Index col = output.cols.begin; col < output.cols.end; ++col) {
        for_each_cell_read(network, layer, input, Cell{c, row, col}, [&](const Cell& cell) {
          box = hull(box, box_of(output.images.begin, cell));
        });
      }
    }
  }
  if (!box.empty()) {
    box.images = output.images;
  }
  return box;
}

}  // namespace tessera::tests
