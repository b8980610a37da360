# make install PREFIX=…: command, libraries, header, manual, completions, pkg-config file, CMake package, and the runtime
# unless it is the system's. Nothing that is installed names the prefix, so it can be moved.
set(docdir ${CMAKE_INSTALL_DATADIR}/doc/fettle)
set_target_properties(fettle PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

install(TARGETS fettle RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS fettle_shared EXPORT fettle LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# of make mpi; install(FILES ... OPTIONAL) would make the folder in any case
install(CODE "if(EXISTS \"${CMAKE_BINARY_DIR}/fettle_mpi.so\")
  file(INSTALL \"${CMAKE_BINARY_DIR}/fettle_mpi.so\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/fettle\")
endif()")
install(FILES ${static_library} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/fettle.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(man_dir)
  install(DIRECTORY ${man_dir}/man1 ${man_dir}/man5 DESTINATION ${CMAKE_INSTALL_MANDIR})
endif()
install(FILES LICENSE DESTINATION ${docdir})
install(FILES tools/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME fettle)
install(FILES tools/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _fettle)
install(FILES tools/completion.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME fettle.fish)

# OpenBLAS, LAPACKE and libcurl by name: their own pkg-config files would ask for gfortran, or for all that libcurl is made of
set(requires_private ${deps_modules})
list(REMOVE_ITEM requires_private openblas lapacke)
set(libs_private openblas lapacke dnnl ${OpenMP_C_LIB_NAMES} ${CMAKE_DL_LIBS} m)
if(curl_FOUND)
  list(APPEND libs_private curl)
endif()
if(deflate_FOUND)
  list(APPEND requires_private libdeflate)
endif()
list(TRANSFORM libs_private PREPEND -l REGEX "^[^-]")
if(ort_root STREQUAL "system")
  list(APPEND requires_private libonnxruntime)
else()
  # the runtime: the file itself, under the name that the library asks for
  get_filename_component(ort_file ${ort_library} REALPATH)
  install(FILES ${ort_file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/fettle RENAME libonnxruntime.so.1)
  foreach(notice LICENSE ThirdPartyNotices.txt)
    install(FILES ${ort_root}/${notice} DESTINATION ${CMAKE_INSTALL_LIBDIR}/fettle RENAME onnxruntime-${notice} OPTIONAL)
  endforeach()
  set_target_properties(fettle_shared PROPERTIES INSTALL_RPATH "$ORIGIN/fettle")
  list(PREPEND libs_private "-L\${libdir}/fettle" -l:libonnxruntime.so.1 "-Wl,-rpath,\${libdir}/fettle")
endif()
list(JOIN requires_private " " requires_private)
list(JOIN libs_private " " libs_private)
string(REGEX REPLACE "[^/]+" ".." prefix_from_pc ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
configure_file(cmake/fettle.pc.in fettle.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/fettle.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# find_package(fettle): the target fettle::fettle
include(CMakePackageConfigHelpers)
set_target_properties(fettle_shared PROPERTIES EXPORT_NAME fettle)
install(EXPORT fettle FILE fettle-config.cmake NAMESPACE fettle:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fettle)
write_basic_package_version_file(fettle-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/fettle-config-version.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fettle)

# last: the list of files, for make uninstall
install(CODE "
  set(list ${docdir}/installed)
  foreach(file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
    file(RELATIVE_PATH file \${CMAKE_INSTALL_PREFIX} \${file})
    string(APPEND list \"\\n\${file}\")
  endforeach()
  file(WRITE \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${docdir}/installed \"\${list}\\n\")")
