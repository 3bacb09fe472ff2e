# What `cmake --install` installs beside the library: the program, its manual pages, completion for shells, model files and host
# files to start from, and pages about them.

set(pages ${PROJECT_BINARY_DIR}/pages)

# The date of manual pages is that of the newest entry in the changelog.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/changelog changed REGEX "^ -- ")
list(GET changed 0 changed)
string(REGEX MATCH "([0-9]+) ([A-Z][a-z][a-z]) ([0-9]+)" changed "${changed}")
set(months - Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec)
list(FIND months ${CMAKE_MATCH_2} month)
if(month LESS 10)
  set(month 0${month})
endif()
set(date ${CMAKE_MATCH_3}-${month}-${CMAKE_MATCH_1})

# Without times, so that the same sources give the same files.
add_custom_command(OUTPUT ${pages}/written
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}
  COMMAND write_pages ${pages} ${date}
  COMMAND sh -c "gzip -9n ${pages}/*.1"
  COMMAND ${CMAKE_COMMAND} -E touch ${pages}/written
  DEPENDS write_pages VERBATIM)
add_custom_target(pages ALL DEPENDS ${pages}/written)
add_dependencies(installed tessera pages)

install(TARGETS tessera COMPONENT program)
install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program FILES_MATCHING PATTERN *.1.gz)
install(FILES ${pages}/tessera DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
install(FILES ${pages}/tessera.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
install(FILES ${pages}/_tessera DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models ${PROJECT_SOURCE_DIR}/hostfiles DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera
  COMPONENT program PATTERN *.md EXCLUDE)

# Pages to read, where their links to each other find them. The program that they speak of is the installed one.
set(texts ${PROJECT_BINARY_DIR}/texts)
file(GLOB_RECURSE text_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/engine/*.md
  ${PROJECT_SOURCE_DIR}/hostfiles/*.md ${PROJECT_SOURCE_DIR}/models/*.md ${PROJECT_SOURCE_DIR}/partitioner/*.md ${PROJECT_SOURCE_DIR}/partitioner/*.svg)
list(TRANSFORM text_files PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE text_sources)
add_custom_command(OUTPUT ${texts}.written
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${texts}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${texts}
  COMMAND cp --parents ${text_files} ${texts}
  COMMAND find ${texts} -name *.md -exec sed -i s,build/release/tessera,tessera,g {} +
  COMMAND ${CMAKE_COMMAND} -E touch ${texts}.written
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} DEPENDS ${text_sources} VERBATIM)
add_custom_target(texts ALL DEPENDS ${texts}.written)
install(DIRECTORY ${texts}/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera COMPONENT program)
