#!/usr/bin/env bash
# That examples/typestate_pingpong, which is what a compiler emits, plays its rounds in its order, with no box left; that mcrt reads
# the descriptors in its binary; and that the command line is checked.
source "$(dirname "${BASH_SOURCE[0]}")/lib/checks.bash"
example=$MCRT_BINARY_DIR/examples/typestate_pingpong

expected() {
    cat <<'TEXT'
3: 3 is odd
2: 2 is even
1: 1 is odd
done
10 steps, 0 blocks left
TEXT
}

"$example" >out 2>err
check "three rounds" diff out <(expected)
"$example" 10000 >out 2>err
check "ten thousand rounds leave nothing" grep -qx '30001 steps, 0 blocks left' out
for bad in 0 1000001 x ''; do
    status=0
    "$example" "$bad" >out 2>err || status=$?
    check "rounds '$bad' are refused" test "$status" = 2
done

# A descriptor in the binary's read-only data is a descriptor file: from its first byte to where the next thing begins.
offset=$(LC_ALL=C grep -aboP 'MCHD\x01\0\0\0\x04\0\0\0Pong' "$example" | head -n 1 | cut -d : -f 1)
length=$((16 + 16 + 24 + 11 + 17 + 12 + 40)) # head, counts, a state and an event with their names, a row
tail -c "+$((offset + 1))" "$example" | head -c "$length" >pong.mchd
"$MCRT_BINARY_DIR/mcrt" descriptor show pong.mchd >out 2>err || true
check "mcrt shows Pong's descriptor" grep -qx 'descriptor Pong' out
check "and its row" grep -Eq '^ +Serving +Question +any +thunk 4 +-$' out

echo "typestate_pingpong: $checks checks, $failures failed"
((failures == 0))
