#!/usr/bin/env bash
# What libmcrt.so looks like from outside, and that no room calls what only abi defines. CTest gives the paths.
#
#   - exports: exactly what the symbol map lists, which is exactly what the public headers declare
#   - needs the C and C++ runtimes and nothing else (Boost.Context is inside); SONAME libmcrt.so.1; cannot be unloaded
#   - one thread-local pointer (and its exit call's flags), reached by the initial-exec model
#   - the exported functions are defined by the objects of abi alone and called by no other room
set -euo pipefail
shopt -s lastpipe # claim runs in this shell, at the end of its pipe
export LC_ALL=C
library=$MCRT_LIBRARY
source=$MCRT_SOURCE_DIR
objects=$MCRT_BINARY_DIR/CMakeFiles
failures=0
claim() { # claim TEXT: reads what is wrong from standard input; nothing is right.
    local wrong
    wrong=$(cat)
    if [[ -n $wrong ]]; then
        printf 'not so: %s\n%s\n' "$1" "$wrong"
        failures=$((failures + 1))
    fi
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed -n 's/^ *\([a-z_0-9]*\);$/\1/p' "$source/src/abi/libmcrt.map" | sort >"$work/map"
grep -hv '^#' "$source"/include/mc/*.h | tr '\n' ' ' | grep -oE 'MC_API [^;({]*\(' | sed 's/ *($//; s/.*[ *]//' | sort -u >"$work/headers"
nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$work/exports"
[[ -s $work/map ]] || echo 'src/abi/libmcrt.map lists nothing' | claim 'the map is read'
diff "$work/headers" "$work/map" | claim 'the map (>) lists what the headers (<) declare' || true
diff "$work/map" "$work/exports" | claim 'the library exports (>) what the map (<) lists' || true

readelf -dW "$library" >"$work/dynamic"
sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$work/dynamic" |
    { grep -vE '^(libc|libstdc\+\+|libm|libgcc_s|ld-linux[-a-z0-9_]*)\.so\.[0-9]+$' || true; } |
    claim 'it needs only the C and C++ runtimes'
grep -q 'SONAME.*\[libmcrt\.so\.1\]' "$work/dynamic" || echo 'no SONAME libmcrt.so.1' | claim 'SONAME'
grep -q 'NODELETE' "$work/dynamic" || echo 'no NODELETE' | claim 'a dlclose leaves it loaded'
{ grep 'TEXTREL' "$work/dynamic" || true; } | claim 'no text relocation'
readelf -lW "$library" | awk '$1 == "TLS" && $6 !~ /^0x0000(08|10)$/ { print "TLS segment of " $6 " bytes" }' |
    claim 'one thread-local pointer'
{ readelf -rW "$library" | grep -E 'DTPMOD|TLSDESC' || true; } | claim 'thread-locals are reached by the initial-exec model'

# Undefined (U) or defined (T) in the objects of a room; the abi room may do both.
for directory in "$objects"/room_*.dir; do
    room=${directory##*/room_}
    room=${room%.dir}
    [[ $room != abi ]] || continue
    find "$directory" -name '*.o' -exec nm -A {} + 2>/dev/null | awk '{ print $NF, $0 }' | sort >"$work/room"
    join "$work/map" "$work/room" | cut -d' ' -f2-
done | claim 'the exported functions are defined in abi and called by no room'

if [[ $failures != 0 ]]; then exit 1; fi
printf '%s exported functions\n' "$(wc -l <"$work/exports")"
