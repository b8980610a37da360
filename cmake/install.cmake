# make install PREFIX=…: command, library, header, man page, completion, pkg-config file
install(TARGETS fettle RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS fettle_shared fettle_static LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/fettle.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES doc/fettle.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES tools/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME fettle)
install(FILES tools/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _fettle)
install(FILES tools/completion.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME fettle.fish)
# written at install time: it names the prefix that is installed to
install(CODE "
  file(WRITE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig/fettle.pc\"
\"prefix=\${CMAKE_INSTALL_PREFIX}
libdir=\\\${prefix}/${CMAKE_INSTALL_LIBDIR}
includedir=\\\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}

Name: fettle
Description: makes ONNX models small and fast without breaking them
Version: ${PROJECT_VERSION}
Libs: -L\\\${libdir} -lfettle
Cflags: -I\\\${includedir}
\")")
