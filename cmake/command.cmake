# The command mcrt (src/mcrt): reads recordings and runs programs; reads descriptors by a function of the library's, which it gets,
# with what that needs, from the archive: it serves programs that are linked with another library than its own. CLI11 and
# RapidJSON are headers alone.
#
# What it runs is linked with the shared library, so that whoever asks for the target mcrt gets that too.
file(GLOB command_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/mcrt/*.cpp)
list(FILTER command_sources EXCLUDE REGEX "(_test|/main)\\.cpp$")

find_package(CLI11 REQUIRED)
add_library(mcrt_command_parts OBJECT ${command_sources}) # its tests have them too
target_include_directories(mcrt_command_parts PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(mcrt_command_parts PUBLIC mcrt_flags CLI11::CLI11 mcrt_static)

add_executable(mcrt ${CMAKE_SOURCE_DIR}/src/mcrt/main.cpp)
set_target_properties(mcrt PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
target_link_libraries(mcrt PRIVATE mcrt_command_parts)
add_dependencies(mcrt mcrt_shared)
