# The context switch: the three assembler objects (make, jump, ontop) of Boost.Context's static library, and nothing else
# of it. They are linked into libmcrt.so, where the symbol map hides them, and put into libmcrt.a; so neither needs Boost
# at run time. The rest of the archive (stack_traits) is C++ that we do not call.
#
# Sets fcontext_objects. The names differ by processor and ABI (jump_x86_64_sysv_elf_gas.o, jump_arm64_aapcs_elf_gas.o),
# hence the patterns.
find_library(BOOST_CONTEXT_ARCHIVE NAMES libboost_context.a REQUIRED
    DOC "static Boost.Context (Debian: libboost-context-dev)")

set(fcontext_dir ${CMAKE_BINARY_DIR}/fcontext)
execute_process(COMMAND ${CMAKE_AR} t ${BOOST_CONTEXT_ARCHIVE}
    OUTPUT_VARIABLE fcontext_members OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" fcontext_members "${fcontext_members}")
list(FILTER fcontext_members INCLUDE REGEX "^(make|jump|ontop)_.*\\.o$")
list(LENGTH fcontext_members fcontext_count)
if(NOT fcontext_count EQUAL 3)
    message(FATAL_ERROR "${BOOST_CONTEXT_ARCHIVE}: expected one make_*.o, jump_*.o and ontop_*.o, found: ${fcontext_members}")
endif()

file(MAKE_DIRECTORY ${fcontext_dir})
execute_process(COMMAND ${CMAKE_AR} x ${BOOST_CONTEXT_ARCHIVE} ${fcontext_members}
    WORKING_DIRECTORY ${fcontext_dir} COMMAND_ERROR_IS_FATAL ANY)
list(TRANSFORM fcontext_members PREPEND ${fcontext_dir}/ OUTPUT_VARIABLE fcontext_objects)
set_source_files_properties(${fcontext_objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
