#!/bin/bash
# Fuzzes the readers of files: builds all harnesses with clang and runs each for some seconds.
#
#   tests/fuzz/run.sh [SECONDS [HARNESS...]]        60 seconds and every harness without arguments
#
# Needs Debian's clang and libclang-rt-14-dev beside what the build needs. Objects are kept in build/fuzz. New inputs go to
# a folder that is removed; a finding stays in build/fuzz/findings. Exits 1 when there is one.
set -euo pipefail

seconds=${1:-60}
[ $# -gt 0 ] && shift
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$source/build/fuzz
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  names=(cfg partition safetensors weights idx cifar darknet_data label_text voc coco data_yaml picture)
  [ ! -e /usr/include/onnx/onnx_pb.h ] || names+=(onnx export)
fi
mkdir -p "$build/findings"

# Empty files and parts are copied from and to a null pointer, which is harmless and no finding.
# toml++ as its library, like the program: the other form asserts on malformed text.
flags=(-DTESSERA_HAS_YAML -DTOML_HEADER_ONLY=0 -DTOML_SHARED_LIB=1 -std=c++20 -O1 -g -fno-omit-frame-pointer
  "-fsanitize=fuzzer-no-link,address,undefined" -fno-sanitize-recover=undefined -fno-sanitize=nonnull-attribute)
onnx_sources=()
onnx_libraries=()
if [ -e /usr/include/onnx/onnx_pb.h ]; then
  flags+=(-DTESSERA_HAS_ONNX -DONNX_NAMESPACE=onnx -DONNX_ML=1)
  onnx_sources=("$source"/engine/onnx/{messages,export*,import_{file,shapes,folding,translation,layers,activations,maps,slices,model,nodes}}.cpp)
  onnx_libraries=(-lonnx_proto -lprotobuf)
fi
newest=$(find "$source"/{partitioner,engine/base,engine/system,engine/processes,engine/files,engine/onnx,engine/drawing,engine/data,tests/fuzz,tests/engine,tests/support} \
  -name '*.h' -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2-)
objects=()
for file in "$source"/partitioner/*/*.cpp "$source"/engine/{base,system,processes,files,drawing}/*.cpp "$source"/engine/data{,/text,/pictures,/cache,/sets,/inspection}/*.cpp \
  "${onnx_sources[@]}" "$source"/tests/fuzz/fuzz_*.cpp "$source"/tests/fuzz/harness.cpp "$source"/tests/fuzz/libfuzzer_main.cpp; do
  name=${file#"$source"/}
  object=$build/${name//\//_}.o
  if [ ! -e "$object" ] || [ "$file" -nt "$object" ] || [ "$newest" -nt "$object" ]; then
    echo "compiling $name"
    clang++ "${flags[@]}" "-I$source" -I/usr/include/libxml2 -I/usr/include/stb -c "$file" -o "$object"
  fi
  objects+=("$object")
done
clang++ "-fsanitize=fuzzer,address,undefined" "${objects[@]}" -lfmt -lz -ltomlplusplus -ljpeg -lpng -lwebp -lwebpdemux -lgif -lexif -lutf8proc -lxml2 -lyaml-cpp -lcsv "${onnx_libraries[@]}" -o "$build/fuzz"

work=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d) # in memory: harnesses sync what they write
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work"
failed=
for name in "${names[@]}"; do
  ln -sf fuzz "$build/fuzz_$name"
  mkdir "$work/$name"
  echo "== $name, $seconds s"
  if ! "$build/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=6000 \
    -print_final_stats=1 -artifact_prefix="$build/findings/$name-" "$work/$name" "$source/tests/fuzz/corpus/$name" \
    >"$work/$name.log" 2>&1; then
    tail -60 "$work/$name.log"
    failed="$failed $name"
  else
    grep -E 'DONE|stat::number_of_executed_units' "$work/$name.log" || true
  fi
done
if [ -n "$failed" ]; then
  echo "findings in:$failed; the inputs are in $build/findings"
  exit 1
fi
echo "no findings"
