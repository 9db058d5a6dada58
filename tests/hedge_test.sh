#!/usr/bin/env bash
# That examples/hedge takes the first answer, the first error, and no longer than it may; and ends, so that nobody was left.
set -euo pipefail
diff - <("$MCRT_BINARY_DIR/examples/hedge") <<'TEXT'
one is fast: rome
one fails: input or output error
none in time: deadline passed
TEXT
echo "hedge takes the first of each"
