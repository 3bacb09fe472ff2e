# Builds for 64-bit ARM on another machine, against the packages in TESSERA_SYSROOT; its programs run in qemu as on a
# Cortex-A53, the processor of a Raspberry Pi 3.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TESSERA_SYSROOT)
set(CMAKE_SYSROOT ${TESSERA_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-cpu;cortex-a53;-L;${TESSERA_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${TESSERA_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${TESSERA_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${TESSERA_SYSROOT}/usr/share/pkgconfig)

# MPICH's compiler wrapper on this machine would tell of this machine's libraries.
set(MPI_CXX_SKIP_MPICXX ON)
set(MPI_CXX_LIB_NAMES mpich CACHE STRING "")
set(MPI_mpich_LIBRARY ${TESSERA_SYSROOT}/usr/lib/aarch64-linux-gnu/libmpich.so CACHE FILEPATH "")
set(MPI_CXX_HEADER_DIR ${TESSERA_SYSROOT}/usr/include/aarch64-linux-gnu/mpich CACHE PATH "")
