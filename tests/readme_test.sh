#!/usr/bin/env bash
# That the README's programs, the one in C and the one in C++, compile as they stand there, without warnings, and print what the
# README says they do; linked with the shared library and with the archive.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# block LANGUAGE: the first fenced block of that language; output LANGUAGE: the first bare block behind it
block() { awk -v fence="\`\`\`$1" '!done && $0 == fence { on = 1; next } on && /^```/ { done = 1; on = 0 } on' "$MCRT_SOURCE_DIR/README.md"; }
output() {
    awk -v fence="\`\`\`$1" '$0 == fence { inside = 1; next } inside && /^```$/ { inside = 0; program = 1; next }
        program && !on && /^```$/ { on = 1; next } on && /^```$/ { exit } on' "$MCRT_SOURCE_DIR/README.md"
}

# try LANGUAGE SUFFIX COMPILER FLAGS...
try() {
    local language=$1 source=$work/program.$2 compile
    shift 2
    block "$language" >"$source"
    output "$language" >"$work/expected"
    [[ -s $source && -s $work/expected ]]
    compile=("$@" -Wall -Wextra -Wpedantic -Werror -I "$MCRT_SOURCE_DIR/include" "$source" -o "$work/program")
    "${compile[@]}" "$MCRT_LIBRARY" -Wl,-rpath,"$(dirname "$MCRT_LIBRARY")"
    "$work/program" | diff "$work/expected" -
    "${compile[@]}" "$MCRT_ARCHIVE" -lstdc++ -pthread
    "$work/program" | diff "$work/expected" -
}
try c c "${CC:-cc}" -std=c11
try cpp cpp "${CXX:-c++}" -std=c++17
echo "the README's programs print what the README says"
