#!/usr/bin/env bash
# Compares examples/sieve with trial division by awk: several numbers of primes, on one thread, on executors and in simulation; and
# what it says to a command line that is wrong. The program itself complains when a microthread's channel is left.
set -euo pipefail
sieve=$MCRT_BINARY_DIR/examples/sieve
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() { printf '%s\n' "$*" >&2; exit 1; }

# primes COUNT: by trial division
primes() {
    awk -v count="$1" 'BEGIN {
        for (n = 2; found < count; n++) {
            for (d = 2; d * d <= n && n % d != 0; d++);
            if (d * d > n) { print n; found++ }
        }
    }'
}

# prints EXPECTED ARGUMENT...: that and nothing else, with status 0
prints() {
    local expected=$1
    shift
    "$sieve" "$@" >"$work/out" 2>"$work/err" || die "sieve $*: status $?"
    cmp "$work/out" "$expected" || die "sieve $*: other numbers"
    [[ ! -s $work/err ]] || die "sieve $*: $(cat "$work/err")"
}

for count in 0 1 2 3 100 1000; do
    primes "$count" >"$work/$count"
    prints "$work/$count" "$count"
    for executors in 0 1 2 8; do
        prints "$work/$count" --executors "$executors" "$count"
    done
done
prints "$work/1000"
for seed in 1 2 3 4 5 6; do
    MCRT_SEED=$seed prints "$work/100" 100
    MCRT_SEED=$seed prints "$work/100" --executors 2 100
done

for arguments in -1 5001 x 1x '1 2' 99999999999999999999 "''" -x --executors '--executors x 1' '--executors -1 1' '--executors 1025 1' \
    --unknown '-- -5'; do
    status=0
    eval "\"\$sieve\" $arguments" >"$work/out" 2>"$work/err" || status=$?
    [[ $status == 2 && ! -s $work/out ]] || die "sieve $arguments: status $status, $(wc -c <"$work/out") bytes"
    grep -q '^usage: sieve ' "$work/err" || die "sieve $arguments: no usage"
done

status=0
"$sieve" 10 >/dev/full 2>"$work/err" || status=$?
[[ $status == 1 ]] && grep -q 'standard output' "$work/err" || die "no space for the output: status $status"
echo "the sieve's primes are those of trial division"
