# Examples (C11 and C++17, against the shared library alone) and, in builds whose figures mean something, benchmarks.
#
#   examples/<name>.c, .cpp, or all of these in examples/<name>/ -> build/<preset>/examples/<name>
#   examples/races/<name>.c, .cpp -> build/<preset>/examples/races/<name>, which has a bug, and with -DFIXED <name>_fixed
#   examples/go/<name>.cpp -> build/<preset>/examples/go/<name>, together with the sources of examples/go/support
#   bench/<name>.c, .cpp                     -> build/<preset>/bench/<name>
#   bench/peers/<name>.cpp                   -> build/<preset>/bench/peers/<name>; Boost is linked statically

# mcrt_add_example(NAME DIRECTORY SOURCE...)
function(mcrt_add_example name directory)
    add_executable(example_${name} ${ARGN})
    set_target_properties(example_${name} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${directory} CXX_STANDARD 17)
    target_link_libraries(example_${name} PRIVATE mcrt_shared mcrt_flags)
    # Nothing runs them there, and they take minutes to compile: by name alone.
    if(MC_SANITIZE OR MC_VALGRIND)
        set_target_properties(example_${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
    endif()
endfunction()

file(GLOB examples CONFIGURE_DEPENDS LIST_DIRECTORIES true ${CMAKE_SOURCE_DIR}/examples/*)
foreach(example IN LISTS examples)
    cmake_path(GET example STEM name)
    set(sources ${example})
    if(IS_DIRECTORY ${example})
        file(GLOB sources CONFIGURE_DEPENDS ${example}/*.c ${example}/*.cpp)
    elseif(NOT example MATCHES "\\.(c|cpp)$")
        continue()
    endif()
    if(sources AND NOT name MATCHES "^(races|go)$")
        mcrt_add_example(${name} examples ${sources})
    endif()
endforeach()

file(GLOB races CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/races/*.c ${CMAKE_SOURCE_DIR}/examples/races/*.cpp)
foreach(source IN LISTS races)
    cmake_path(GET source STEM name)
    mcrt_add_example(${name} examples/races ${source})
    mcrt_add_example(${name}_fixed examples/races ${source})
    target_compile_definitions(example_${name}_fixed PRIVATE FIXED)
endforeach()

file(GLOB tour CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/go/*.cpp)
file(GLOB tour_support CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/go/support/*.cpp)
if(tour)
    add_library(example_go_support OBJECT ${tour_support})
    set_target_properties(example_go_support PROPERTIES CXX_STANDARD 17)
    target_link_libraries(example_go_support PRIVATE mcrt_shared mcrt_flags)
endif()
foreach(source IN LISTS tour)
    cmake_path(GET source STEM name)
    mcrt_add_example(go_${name} examples/go ${source})
    set_target_properties(example_go_${name} PROPERTIES OUTPUT_NAME ${name})
    target_link_libraries(example_go_${name} PRIVATE example_go_support)
endforeach()

if(MC_SANITIZE OR MC_DEBUG)
    return()
endif()

function(mcrt_add_bench target source directory)
    cmake_path(GET source STEM name)
    add_executable(${target} ${source})
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${directory})
    target_link_libraries(${target} PRIVATE mcrt_flags)
endfunction()

file(GLOB benches CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*.c ${CMAKE_SOURCE_DIR}/bench/*.cpp)
foreach(source IN LISTS benches)
    cmake_path(GET source STEM name)
    mcrt_add_bench(bench_${name} ${source} bench)
    target_link_libraries(bench_${name} PRIVATE mcrt_shared)
endforeach()

find_library(BOOST_FIBER_ARCHIVE NAMES libboost_fiber.a DOC "static Boost.Fiber (Debian: libboost-fiber-dev)")
file(GLOB peers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/peers/*.cpp)
foreach(source IN LISTS peers)
    cmake_path(GET source STEM name)
    file(STRINGS ${source} uses_fiber REGEX "#include <boost/fiber" LIMIT_COUNT 1)
    if(uses_fiber AND NOT BOOST_FIBER_ARCHIVE)
        message(STATUS "bench/peers/${name}: left out, it needs Boost.Fiber")
        continue()
    endif()
    mcrt_add_bench(peer_${name} ${source} bench/peers)
    if(uses_fiber)
        target_link_libraries(peer_${name} PRIVATE ${BOOST_FIBER_ARCHIVE})
    endif()
    target_link_libraries(peer_${name} PRIVATE ${BOOST_CONTEXT_ARCHIVE})
endforeach()
