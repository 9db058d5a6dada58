#!/usr/bin/env bash
# That examples/hedge takes the first answer, the first error, and no longer than it may; and that nobody was left: then it ends with 0.
set -euo pipefail
output=$("$MCRT_BINARY_DIR/examples/hedge")
diff - <(printf '%s\n' "$output") <<'TEXT'
one is fast: rome
one fails: input or output error
none in time: deadline passed
TEXT
echo "hedge takes the first of each"
