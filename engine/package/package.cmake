# Debian packages of what install.cmake installs: `cpack` in a build makes tessera, the program, and libtessera-dev, the library.
# .ci/packages.sh makes those of all architectures.

set(TESSERA_PACKAGE_SUFFIX "" CACHE STRING "What follows the version of packages: the release that they are for, e.g. ~deb12")
set(TESSERA_RELEASE unstable CACHE STRING "The release of Debian that packages are for, e.g. bookworm")

# A changelog in which the newest entry is of this package, and the licence, for each of the two.
file(READ ${CMAKE_CURRENT_LIST_DIR}/changelog changelog)
string(REGEX REPLACE "^tessera \\(([^)]*)\\) [a-z]+" "tessera (\\1${TESSERA_PACKAGE_SUFFIX}) ${TESSERA_RELEASE}" changelog "${changelog}")
if(NOT CMAKE_MATCH_1 STREQUAL PROJECT_VERSION)
  message(FATAL_ERROR "engine/package/changelog begins with ${CMAKE_MATCH_1}, the version is ${PROJECT_VERSION}")
endif()
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/package/changelog CONTENT "${changelog}")
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/package/changelog.gz
  COMMAND gzip -9nkf ${PROJECT_BINARY_DIR}/package/changelog
  DEPENDS ${PROJECT_BINARY_DIR}/package/changelog VERBATIM)
add_custom_target(changelog ALL DEPENDS ${PROJECT_BINARY_DIR}/package/changelog.gz)
add_dependencies(installed changelog)
foreach(name IN ITEMS tessera libtessera-dev)
  set(component program)
  if(name STREQUAL libtessera-dev)
    set(component library)
  endif()
  install(FILES ${PROJECT_BINARY_DIR}/package/changelog.gz ${CMAKE_CURRENT_LIST_DIR}/copyright
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION}${TESSERA_PACKAGE_SUFFIX})
set(CPACK_PACKAGE_CONTACT "The Tessera authors <maintainers@tessera.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_TESSERA_STRIP ${CMAKE_STRIP})
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/strip.cmake)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL program library)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
if(TESSERA_ARCHITECTURE)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${TESSERA_ARCHITECTURE})
endif()
# Where dpkg-shlibdeps finds the libraries of another system.
if(CMAKE_SYSROOT)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
endif()

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME tessera)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
# The launcher; and what is loaded when it is wanted.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS
  "mpich, libcurl3-gnutls | libcurl3t64-gnutls, libmicrohttpd12 | libmicrohttpd12t64, libqrencode4, libpangocairo-1.0-0, \
coinor-libclp1, openssh-client, rsync")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "dataset-fashion-mnist")
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION
"trains convolutional networks on several small machines at once
Feature maps are cut into tiles, one per device, so that no machine has to be
able to hold or train the whole network, and images stay on the devices that
recorded them. Devices, such as Raspberry Pis, exchange the edges of tiles by
MPI; there is no server. Classifiers and detectors are trained from Darknet's
model files.
.
This package has the program, with model files and host files to start from,
and pages about them, about running and about how to cut, in
/usr/share/tessera.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libtessera-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "libmpich-dev, mpich, libeigen3-dev, libfmt-dev, libtomlplusplus-dev, \
nlohmann-json3-dev, libjpeg62-turbo-dev | libjpeg-dev, libpng-dev, libwebp-dev, libgif-dev, libexif-dev, libstb-dev, zlib1g-dev, \
liblemon-dev, libutf8proc-dev, libcsv-dev, libxml2-dev, libyaml-cpp-dev, libsodium-dev, libonnx-dev, libprotobuf-dev, pkgconf")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "cmake, g++, ${CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS}")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION
"training of convolutional networks on several machines - library
Feature maps are cut into tiles, one per device, so that no machine has to be
able to hold or train the whole network, and images stay on the devices that
recorded them.
.
This package has the static library, which is all of the program tessera but
its command line, with headers and the targets for CMake's find_package.")
include(CPack)
