#!/usr/bin/env bash
# That every mutant can still be applied: its file is there, and its search text occurs in it once. Whoever changes code
# that a mutant weakens has to say what the mutant is now.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
compgen -G 'mutants/*.mut' >/dev/null || exit 77
exec scripts/mutants --check
