#!/usr/bin/env bash
# The command `mcrt descriptor`: descriptors are made of JSON and shown, there and back to the byte, and what is none is told with
# its place. The example and the output in docs/machines.md are what the command makes.
set -u -o pipefail
export LC_ALL=C

mcrt=${MCRT_BINARY_DIR:?}/mcrt
docs=${MCRT_SOURCE_DIR:?}/docs/machines.md
# shellcheck source=tests/lib/checks.bash
source "${MCRT_SOURCE_DIR:?}/tests/lib/checks.bash"

run() { # runs mcrt descriptor; leaves out, err, status
    "$mcrt" descriptor "$@" >out 2>err
    status=$?
}

status_is() { [[ $status == "$1" ]]; }
says() { grep -q -e "$1" out err; }
same() { cmp -s "$1" "$2"; }

# documented MARK: the block of the document that follows the line which ends with `MARK`:
documented() {
    awk -v mark="$1" '/^```/ { if (on) exit; if (seen) { on = 1; next } } on { print } index($0, mark) { seen = 1 }' "$docs"
}

# --- the example of the document ----------------------------------------------------------------------------------------------

documented 'traffic_light.json`:' >traffic_light.json
check "the document has an example" [ -s traffic_light.json ]
run build traffic_light.json
check "which builds" status_is 0
check "in silence" [ ! -s out -a ! -s err ]
check "beside it" [ -s traffic_light.mchd ]
run show traffic_light.mchd
documented 'traffic_light.mchd`:' >wanted
check "is shown as the document has it" same out wanted
run show traffic_light.json --dot
documented 'traffic_light.json --dot`:' >wanted
check "and drawn" same out wanted
check "as the example has it" same traffic_light.json "$MCRT_SOURCE_DIR/examples/traffic_light/traffic_light.json"
run build traffic_light.json --c
check "whose bytes are those" same traffic_light.h "$MCRT_SOURCE_DIR/examples/traffic_light/traffic_light.h"
"$MCRT_BINARY_DIR/examples/traffic_light" >out 2>err
cat >wanted <<'TEXT'
green
amber, for somebody who walks
(stays)
red
green
blinking
(stays)
red
green
fault: no row for that
7 changes
TEXT
check "and which goes through its states" same out wanted

# --- there and back -----------------------------------------------------------------------------------------------------------

run show traffic_light.mchd --json
check "as JSON" status_is 0
cp out again.json
check "which other readers read" python3 -c 'import json; json.load(open("again.json"))'
run build again.json
check "builds the same" same traffic_light.mchd again.mchd
run build traffic_light.json -o -
check "on standard output too" same out traffic_light.mchd

# Bytes and numbers that JSON can not have as they are.
python3 - <<'PY'
import struct
def text(t): return struct.pack("<I", len(t)) + t
top = 2**64 - 1
open("odd.mchd", "wb").write(b"MCHD" + struct.pack("<I", 1) + text(b"\xff\x00\"") + struct.pack("<4I", 2, 1, 2, 1)
    + struct.pack("<3Q", top, 2**53 + 1, 2**63) + text(b"0x1") + struct.pack("<3Q", 0, 0, 0) + text(b"")
    + struct.pack("<QQB", top, 1, 1) + text(b"") + text(b"\x80")
    + struct.pack("<5Q", top, top, top, 1, 2) + struct.pack("<5Q", 0, 5, 0, 0, 0) + text(b"a/b") + struct.pack("<Q", 9))
PY
run show odd.mchd
check "what nobody writes is shown" status_is 0
check "with its doubts" says 'rows\[1\]: event 5 is not in the descriptor'
run show odd.mchd --json
cp out odd_again.json
run build odd_again.json -o odd_again.mchd
check "and built again" status_is 0
check "to the byte" same odd.mchd odd_again.mchd
check "with its doubts told" says '^mcrt: odd_again.json: rows\[1\]: has no thunk$'

# --- as C ---------------------------------------------------------------------------------------------------------------------

check "a header" [ -s traffic_light.h ]
cat >embeds.c <<'C'
#include "traffic_light.h"
#include <mc/machine.h>
#include <stdio.h>
int main(void) {
    fwrite(traffic_light_descriptor, 1, sizeof traffic_light_descriptor, stdout);
    return mc_machine_descriptor_parse(traffic_light_descriptor, sizeof traffic_light_descriptor, NULL, NULL, NULL, 0);
}
C
check "which compiles" cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$MCRT_SOURCE_DIR/include" embeds.c -o embeds \
    "$MCRT_LIBRARY" -Wl,-rpath,"$(dirname "$MCRT_LIBRARY")"
./embeds >out 2>err
check "and is a descriptor" [ $? = 0 ]
check "the same" same out traffic_light.mchd

# --- what is none -------------------------------------------------------------------------------------------------------------

head -c 100 traffic_light.mchd >cut.mchd
run show cut.mchd
check "half a descriptor is none" status_is 2
check "and where it ends is told" says '^mcrt: cut.mchd: no descriptor: offset 24: 4 states, 4 events, 12 rows and 0 roles need'
{ cat traffic_light.mchd; printf x; } >long.mchd
run show long.mchd
check "nor one with a byte too many" says 'offset [0-9]*: 1 bytes too many'
: >empty
run show empty
check "nor is nothing" says 'does not begin with "MCHD"'
for file in . missing /proc/self/mem; do
    run show "$file"
    check "nor $file" status_is 2
done
printf '{\n  "format": "mcrt descriptor",\n  "name" "x"\n}\n' >bad.json
run build bad.json
check "bad JSON has a line" says '^mcrt: bad.json: line 3, column [0-9]*: '
check "and makes nothing" [ ! -e bad.mchd ]
sed 's/"event": "Timer"/"event": "Timr"/' traffic_light.json >typo.json
run build typo.json
check "a wrong name has a key" says '^mcrt: typo.json: rows\[0\].event: no event is named "Timr"'
check "and makes nothing, either" [ ! -e typo.mchd ]
run build traffic_light.json -o traffic_light.json
check "the JSON is not written over" status_is 2
check "by itself" same <(documented 'traffic_light.json`:') traffic_light.json
run build traffic_light.json -o nowhere/x
check "nor written where nothing can be" says '^mcrt: cannot write nowhere/x'
python3 -c 'print("[" * 1000000)' >deep.json
run show deep.json
check "depth is survived" status_is 2
python3 -c 'print("{\"a\":" + "[" * 1000000 + "]" * 1000000 + "}")' >deep.json
run show deep.json
check "inside of an object too" status_is 2
for arguments in "" "show" "build" "show traffic_light.mchd --json --dot" "show --bogus traffic_light.mchd" "other"; do
    # shellcheck disable=SC2086 # words on purpose
    run $arguments
    check "usage: mcrt descriptor $arguments" status_is 2
done
run show --help
check "help" says '^Usage: mcrt descriptor show FILE'
"$mcrt" descriptor show traffic_light.mchd >/dev/full 2>err
check "what can not be written is told" [ $? = 2 ]
MCRT_SEED=1 "$mcrt" descriptor show traffic_light.mchd >out 2>err
check "the command itself is never simulated" [ $? = 0 -a ! -s err ]

echo "$((checks - failures)) passed, $failures failed"
[[ $failures == 0 ]]
