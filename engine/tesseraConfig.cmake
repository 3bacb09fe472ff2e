# find_package(tessera): the targets tessera::tessera, which is all of the library, and a target a folder, such as
# tessera::engine_train. Include paths begin with the folder: "engine/train/trainer.h".
include(${CMAKE_CURRENT_LIST_DIR}/dependencies.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/tesseraTargets.cmake)
