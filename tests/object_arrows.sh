#!/usr/bin/env bash
# What include_arrows.sh cannot see, read from the built objects: which room defines and calls the exported functions, and
# what the library keeps in each thread. CTest gives the paths. (What the library looks like from outside is
# abi-tests/run's business.)
#
#   - the exported functions are defined by the objects of abi alone, and no other room calls them
#   - one thread-local pointer (with the flags of its exit call), reached by the initial-exec model
set -euo pipefail
shopt -s lastpipe # claim runs in this shell, at the end of its pipe
export LC_ALL=C
library=$MCRT_LIBRARY
objects=$MCRT_BINARY_DIR/CMakeFiles
failures=0
claim() { # claim TEXT: reads what is wrong from standard input; nothing is right
    local wrong
    wrong=$(cat)
    if [[ -n $wrong ]]; then
        printf 'not so: %s\n%s\n' "$1" "$wrong"
        failures=$((failures + 1))
    fi
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed -n 's/^ *\([a-z_0-9]*\);$/\1/p' "$MCRT_SOURCE_DIR/src/abi/libmcrt.map" | sort >"$work/names"
[[ -s $work/names ]] || echo 'no names' | claim 'the symbol map can be read'

# users ROOM: the exported names that its objects define or call
users() {
    find "$objects/room_$1.dir" -name '*.o' -exec nm -A {} + | awk '{ print $NF, $0 }' | sort | join "$work/names" - | cut -d' ' -f2-
}
[[ -n $(users abi) ]] || echo 'none' | claim 'abi defines exported functions'
for directory in "$objects"/room_*.dir; do
    room=${directory##*/room_}
    room=${room%.dir}
    [[ $room == abi ]] || users "$room"
done | claim 'the exported functions are defined in abi and called by no room'

readelf -lW "$library" | awk '$1 == "TLS" && $6 !~ /^0x0000(08|10)$/ { print "TLS segment of " $6 " bytes" }' |
    claim 'one thread-local pointer'
{ readelf -rW "$library" | grep -E 'DTPMOD|TLSDESC' || true; } | claim 'thread-locals are reached by the initial-exec model'

[[ $failures == 0 ]]
