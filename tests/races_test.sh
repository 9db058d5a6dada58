#!/usr/bin/env bash
# That simulation finds each bug in examples/races within 2,000 seeds (which seed it is, is the scheduler's affair), and nothing in
# 200 runs of each corrected twin. A run is wrong when it says so by its status or a signal, or its recording has a failure.
set -euo pipefail
races=$MCRT_BINARY_DIR/examples/races
ulimit -c 0 # aborts are what is looked for
memory=/dev/shm # 1,500 recordings are written and thrown away: not on a disk, where there is a choice
work=$(mktemp -d -p "$([[ -w $memory ]] && echo $memory || echo "${TMPDIR:-/tmp}")")
trap 'rm -rf "$work"' EXIT

die() { printf '%s\n' "$*" >&2; exit 1; }

# run PROGRAM SEED: its status; what it says is in $work/said.
run() { MCRT_SEED=$2 MCRT_RECORD=$work/$2 "$races/$1" >"$work/said" 2>&1; }

# failures: how many of the recordings have one. The eighth word of a header is mc_sim_recording.failure.
failures() { head -q -c 32 "$work"/[0-9]* | od -An -v -tu4 -w32 | awk '$8 != 0 { n++ } END { print n + 0 }'; }

# first_failing PROGRAM LAST: the first seed that fails, or nothing.
first_failing() {
    local seed
    for ((seed = 1; seed <= $2; ++seed)); do
        rm -f "$work"/[0-9]*
        if ! run "$1" "$seed" || [[ $(failures) != 0 ]]; then
            echo "$seed"
            return
        fi
    done
} 2>/dev/null # where the shell tells of each abort

passes() {
    local seed
    rm -f "$work"/[0-9]*
    for ((seed = 1; seed <= $2; ++seed)); do
        run "$1" "$seed" || die "$1 fails with MCRT_SEED=$seed: $(cat "$work/said")"
    done
    [[ $(failures) == 0 ]] || die "$1 passes, and $(failures) of its recordings have a failure"
}

bugs=0
for twin in "$races"/*_fixed; do
    name=$(basename "$twin" _fixed)
    seed=$(first_failing "$name" 2000)
    [[ -n $seed ]] || die "$name fails with none of the seeds 1 to 2000"
    passes "${name}_fixed" 200
    echo "$name fails with MCRT_SEED=$seed, ${name}_fixed passes"
    bugs=$((bugs + 1))
done
[[ $bugs -gt 0 ]] || die "$races has no programs"
