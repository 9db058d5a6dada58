#!/usr/bin/env bash
# csp_migration.c under every compiler that is here, from -O0 to -O3, as position-independent code and not, with link-time
# optimisation against the archive: a compiler that keeps a thread-local's address across a switch shows there.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compilers=(gcc)
clang=$( (compgen -c clang; compgen -c clang-) | grep -xE 'clang(-[0-9]+)?' | sort -V | head -n 1 || true)
[[ -z $clang ]] || compilers+=("$clang")
shared=("$MCRT_LIBRARY" -Wl,-rpath,"$(dirname "$MCRT_LIBRARY")")
archive=("$MCRT_ARCHIVE" -lstdc++ -pthread)

try() { # try NAME COMPILER FLAGS... : builds and runs
    local name=$1
    shift
    if ! "$@" -std=c11 -Wall -Wextra -I "$MCRT_SOURCE_DIR/include" "$MCRT_SOURCE_DIR/tests/csp_migration.c" "${link[@]}" -o "$work/program"; then
        echo "FAIL $name: does not build"
        return 1
    fi
    "$work/program" >"$work/out" || { echo "FAIL $name"; return 1; }
    echo "ok   $name: $(cat "$work/out")"
}

for compiler in "${compilers[@]}"; do
    for level in -O0 -O2 -O3; do
        link=("${shared[@]}")
        try "$compiler $level" "$compiler" $level
        try "$compiler $level -fPIC" "$compiler" $level -fPIC
        link=("${archive[@]}")
        try "$compiler $level, archive" "$compiler" $level
        [[ $compiler != gcc ]] || try "$compiler $level -flto, archive" "$compiler" $level -flto
    done
done
