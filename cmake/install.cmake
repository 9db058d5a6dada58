# cmake --install build/release [--prefix P]: both libraries, the headers, a pkg-config file, and the command.
install(TARGETS mcrt_shared mcrt_static
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS mcrt RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/mc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
configure_file(${CMAKE_SOURCE_DIR}/cmake/mcrt.pc.in ${CMAKE_BINARY_DIR}/mcrt.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/mcrt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
