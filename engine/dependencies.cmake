# The packages that the library is built with, for its own build and for those who find it installed.
find_package(fmt REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Eigen3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(GIF REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(tessera_stb REQUIRED IMPORTED_TARGET GLOBAL stb)
pkg_check_modules(tessera_pictures REQUIRED IMPORTED_TARGET GLOBAL libjpeg libpng libwebp libwebpdemux libexif)
pkg_check_modules(tessera_sodium REQUIRED IMPORTED_TARGET GLOBAL libsodium)
pkg_check_modules(tessera_xml REQUIRED IMPORTED_TARGET GLOBAL libxml-2.0)
# Optional: without it no plug on the network can be asked for its watts.
pkg_check_modules(tessera_http IMPORTED_TARGET GLOBAL libcurl)
# Optional: without it no run is served to browsers, and without the other one no address is shown as a QR code.
pkg_check_modules(tessera_microhttpd IMPORTED_TARGET GLOBAL libmicrohttpd)
pkg_check_modules(tessera_qrencode IMPORTED_TARGET GLOBAL libqrencode)
# Optional: without it what is drawn on pictures is in ASCII.
pkg_check_modules(tessera_text IMPORTED_TARGET GLOBAL pangocairo)
# Optional: without it no data.yaml can be read.
pkg_check_modules(tessera_yaml IMPORTED_TARGET GLOBAL yaml-cpp)
pkg_check_modules(tessera_unicode REQUIRED IMPORTED_TARGET GLOBAL libutf8proc)
find_path(TESSERA_CSV_INCLUDE_DIR csv.h REQUIRED)
find_library(TESSERA_CSV_LIBRARY csv REQUIRED)
if(NOT TARGET tessera_csv)  # a target: its path differs from machine to machine
  add_library(tessera_csv UNKNOWN IMPORTED GLOBAL)
  set_target_properties(tessera_csv PROPERTIES IMPORTED_LOCATION ${TESSERA_CSV_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${TESSERA_CSV_INCLUDE_DIR})
endif()
pkg_check_modules(tessera_lemon REQUIRED IMPORTED_TARGET GLOBAL lemon)
# Optional: without it `balance --classes` is not there.
pkg_check_modules(tessera_clp IMPORTED_TARGET GLOBAL clp)
# Optional: without them models are neither exported nor imported. Of onnx the messages alone are used.
set(TESSERA_ONNX AUTO CACHE STRING "Read and write ONNX files: ON, OFF, or AUTO, where libonnx-dev and libprotobuf-dev are found")
if(TESSERA_ONNX AND NOT TARGET tessera_onnx)
  set(onnx_required "")
  if(NOT TESSERA_ONNX STREQUAL AUTO)
    set(onnx_required REQUIRED)
  endif()
  pkg_check_modules(tessera_protobuf ${onnx_required} IMPORTED_TARGET GLOBAL protobuf)
  find_path(TESSERA_ONNX_INCLUDE_DIR onnx/onnx_pb.h ${onnx_required})
  find_library(TESSERA_ONNX_LIBRARY onnx_proto ${onnx_required})
  if(TARGET PkgConfig::tessera_protobuf AND TESSERA_ONNX_INCLUDE_DIR AND TESSERA_ONNX_LIBRARY)
    add_library(tessera_onnx UNKNOWN IMPORTED GLOBAL)
    set_target_properties(tessera_onnx PROPERTIES IMPORTED_LOCATION ${TESSERA_ONNX_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${TESSERA_ONNX_INCLUDE_DIR} INTERFACE_COMPILE_DEFINITIONS "ONNX_NAMESPACE=onnx;ONNX_ML=1"
      INTERFACE_LINK_LIBRARIES PkgConfig::tessera_protobuf)
  endif()
endif()
# MPICH under its own name: beside Open MPI the plain names are Open MPI's.
find_program(MPI_CXX_COMPILER NAMES mpicxx.mpich mpicxx REQUIRED)
find_program(MPIEXEC_EXECUTABLE NAMES mpiexec.mpich mpiexec REQUIRED)
find_package(MPI REQUIRED COMPONENTS CXX)
