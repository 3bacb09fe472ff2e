# Called by cpack before it packs a tree: static libraries lose what a debugger or nobody reads, as Debian's policy wants it.
file(GLOB_RECURSE libraries ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*.a)
if(libraries)
  execute_process(COMMAND ${CPACK_TESSERA_STRIP} --strip-debug --remove-section=.comment --remove-section=.note
      --enable-deterministic-archives ${libraries}
    COMMAND_ERROR_IS_FATAL ANY)
endif()
