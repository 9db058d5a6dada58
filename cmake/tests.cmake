# Tests, run by CTest.
#
#   src/<room>/*_test.cpp  -> mc_test_<room>: linked with the objects of all rooms, so it sees what is hidden. In the sys
#                             build only *_sys_test.cpp, and all of testing.
#                             src/mcrt, the command's room, has its own objects, and none of the library's.
#   tests/*.cpp, *.c       -> test_<name>: whole programs against libmcrt.so; status 0 passes, 77 skips. One that includes
#                             "testing/test.hpp" gets the test runner, others bring their own main.
#   tests/*.sh             -> test_<name>: run by bash; the same statuses.
#   abi-tests/*.c, *.cpp   -> abi_<name>: against libmcrt.so alone; the same statuses.
#
# The runner is Criterion, or, with MC_TEST_FORK, src/testing/test_main.cpp. In both each test is a process of its own.
# The sanitizers and Valgrind need ours: Criterion judges a test before its process has exited, so that a leak found at
# exit fails nothing, and its process arena does not start under ThreadSanitizer.

find_package(PkgConfig REQUIRED)
add_library(mcrt_test_runner INTERFACE)
target_include_directories(mcrt_test_runner INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
if(MC_TEST_FORK)
    target_compile_definitions(mcrt_test_runner INTERFACE MC_TEST_FORK=1)
    target_sources(mcrt_test_runner INTERFACE ${CMAKE_SOURCE_DIR}/src/testing/test_main.cpp)
else()
    pkg_check_modules(criterion REQUIRED IMPORTED_TARGET criterion)
    target_link_libraries(mcrt_test_runner INTERFACE PkgConfig::criterion)
endif()

set(memcheck "")
if(MC_VALGRIND)
    find_program(VALGRIND valgrind REQUIRED)
    set(memcheck ${VALGRIND} -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite
        --trace-children=no --child-silent-after-fork=no
        --soname-synonyms=somalloc=nouserintercepts # a test's own operator new is the one that is called
        --suppressions=${CMAKE_SOURCE_DIR}/cmake/valgrind.supp)
endif()

set(sanitizer_env
    "ASAN_OPTIONS=abort_on_error=0:detect_stack_use_after_return=0:strict_string_checks=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=halt_on_error=1:atexit_sleep_ms=10:second_deadlock_stack=1:suppressions=${CMAKE_SOURCE_DIR}/cmake/tsan.supp")

# mcrt_add_test(NAME target): what every entry has in common.
function(mcrt_add_test name target)
    set(args "")
    if("runner" IN_LIST ARGN)
        # One test at a time: with more, Criterion loses the timeout of a test beside which a shorter one runs out. CTest
        # runs the entries side by side instead.
        set(args --verbose -j1)
        if(MC_TEST_FILTER)
            list(APPEND args --filter ${MC_TEST_FILTER})
        endif()
    endif()
    add_test(NAME ${name} COMMAND ${memcheck} $<TARGET_FILE:${target}> ${args})
    mcrt_test_properties(${name})
endfunction()

function(mcrt_test_properties name)
    set(environment ${sanitizer_env} "MCRT_SOURCE_DIR=${CMAKE_SOURCE_DIR}" "MCRT_BINARY_DIR=${CMAKE_BINARY_DIR}")
    if(TARGET mcrt_shared)
        list(APPEND environment "MCRT_LIBRARY=$<TARGET_FILE:mcrt_shared>" "MCRT_ARCHIVE=$<TARGET_FILE:mcrt_static>")
    endif()
    set_tests_properties(${name} PROPERTIES
        TIMEOUT ${MC_TEST_EXE_TIMEOUT} SKIP_RETURN_CODE 77 ENVIRONMENT "${environment}")
endfunction()

foreach(room IN LISTS test_rooms)
    add_executable(mc_test_${room} ${room_${room}_tests} ${all_objects})
    target_link_libraries(mc_test_${room} PRIVATE mcrt_room_flags mcrt_test_runner)
    mcrt_add_test(mc_test_${room} mc_test_${room} runner)
endforeach()
# A switch hands over what lies in a frame of the stack that is left: not of one of ASan's.
if(MC_SANITIZE MATCHES "address" AND TARGET mc_test_fiber)
    add_test(NAME mc_test_fiber_use_after_return
        COMMAND mc_test_fiber --verbose -j1 --filter "@(Context|Exception)/*")
    mcrt_test_properties(mc_test_fiber_use_after_return)
    set_property(TEST mc_test_fiber_use_after_return APPEND PROPERTY ENVIRONMENT
        "ASAN_OPTIONS=abort_on_error=0:detect_stack_use_after_return=1:strict_string_checks=1")
endif()
# Templates of templates: what a sanitizer adds to them takes minutes to optimise, and saves seconds.
if(MC_SANITIZE AND TARGET mc_test_hpp)
    target_compile_options(mc_test_hpp PRIVATE -O0 -fno-var-tracking)
endif()

# What follows needs the shared library.
if(MC_SYS)
    return()
endif()

# The insides of the command, which is no part of the library.
file(GLOB command_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/mcrt/*_test.cpp)
add_executable(mc_test_mcrt ${command_tests})
target_link_libraries(mc_test_mcrt PRIVATE mcrt_command_parts mcrt_test_runner)
mcrt_add_test(mc_test_mcrt mc_test_mcrt runner)

file(GLOB programs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*.cpp ${CMAKE_SOURCE_DIR}/tests/*.c)
foreach(source IN LISTS programs)
    cmake_path(GET source STEM name)
    string(REGEX REPLACE "_test$" "" name ${name})
    add_executable(test_${name} ${source})
    target_link_libraries(test_${name} PRIVATE mcrt_shared mcrt_flags)
    file(STRINGS ${source} uses_runner REGEX "#include \"testing/test\\.hpp\"" LIMIT_COUNT 1)
    if(uses_runner)
        target_link_libraries(test_${name} PRIVATE mcrt_test_runner)
        mcrt_add_test(test_${name} test_${name} runner)
    else()
        mcrt_add_test(test_${name} test_${name})
    endif()
endforeach()

if(MC_TEST_FORK AND NOT MC_VALGRIND AND NOT MC_SANITIZE MATCHES "thread") # of the checkers, one has time for it
    add_test(NAME simulated COMMAND ${CMAKE_SOURCE_DIR}/scripts/simulated ${CMAKE_BINARY_DIR} 12) # 10 and 11 have failed once
    mcrt_test_properties(simulated)
endif()

set(scripts "")
if(NOT MC_SANITIZE AND NOT MC_VALGRIND) # they look at files and would say the same again
    file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*.sh)
endif()
foreach(source IN LISTS scripts)
    cmake_path(GET source STEM name)
    string(REGEX REPLACE "_test$" "" name ${name})
    add_test(NAME test_${name} COMMAND bash ${source})
    mcrt_test_properties(test_${name})
endforeach()

file(GLOB abi_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/abi-tests/*.c ${CMAKE_SOURCE_DIR}/abi-tests/*.cpp)
add_custom_target(abi_programs)
foreach(source IN LISTS abi_sources)
    cmake_path(GET source STEM name)
    add_executable(abi_${name} ${source})
    # as-needed: a program that only loads the library at run time is not to be linked with it.
    target_link_options(abi_${name} PRIVATE -Wl,--as-needed)
    target_link_libraries(abi_${name} PRIVATE mcrt_shared mcrt_flags ${CMAKE_DL_LIBS})
    add_dependencies(abi_programs abi_${name})
    mcrt_add_test(abi_${name} abi_${name})
endforeach()
