#!/usr/bin/env bash
# That the README's program compiles as it stands there, without warnings, and prints what the README says it does; linked
# with the shared library and with the archive.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# block LANGUAGE: the first fenced block of that language
block() { awk -v fence="\`\`\`$1" '!done && $0 == fence { on = 1; next } on && /^```/ { done = 1; on = 0 } on' "$MCRT_SOURCE_DIR/README.md"; }
block c >"$work/program.c"
# The program's own fence ends where the output's begins: take what follows the first bare pair.
awk '/^```c$/ { inside = 1; next } inside && /^```$/ { inside = 0; program = 1; next }
    program && !on && /^```$/ { on = 1; next } on && /^```$/ { exit } on' "$MCRT_SOURCE_DIR/README.md" >"$work/expected"
[[ -s $work/program.c && -s $work/expected ]]

compile() { ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror -I "$MCRT_SOURCE_DIR/include" "$work/program.c" "$@" -o "$work/program"; }
compile "$MCRT_LIBRARY" -Wl,-rpath,"$(dirname "$MCRT_LIBRARY")"
"$work/program" | diff "$work/expected" -
compile "$MCRT_ARCHIVE" -lstdc++ -pthread
"$work/program" | diff "$work/expected" -
echo "the README's program prints what the README says"
