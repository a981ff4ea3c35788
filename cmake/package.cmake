# cmake --install: programs, libraries, headers, and a package that find_package(rutter) finds. A program that builds
# engines links rutter::rutter; one that only runs them links rutter::runtime, which needs neither LLVM nor the compiler.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rutter)
set_target_properties(rutter_runtime PROPERTIES EXPORT_NAME runtime)
install(TARGETS rutter rutter_runtime EXPORT rutter LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT rutter NAMESPACE rutter:: FILE rutterTargets.cmake DESTINATION ${package_dir})
install(DIRECTORY include/rutter DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET rutter_cpu)
  # Opened at run time from beside librutter.so: nothing links it.
  install(TARGETS rutter_cpu LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET rutter-cli)
  install(TARGETS rutter-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET rutter-worker)
  install(TARGETS rutter-worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/rutter)
endif()
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
configure_package_config_file(cmake/rutterConfig.cmake.in ${CMAKE_BINARY_DIR}/rutterConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/rutterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/rutterConfig.cmake ${CMAKE_BINARY_DIR}/rutterConfigVersion.cmake
  DESTINATION ${package_dir})
