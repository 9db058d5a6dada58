#!/usr/bin/env bash
# That examples/ledger makes and loses no money, and gives each line of a file one outcome: without faults as awk has it, where that
# does not depend on the order; with many seeds of faults, on executors and in simulation. Then what it says to bad input.
source "$(dirname "${BASH_SOURCE[0]}")/lib/checks.bash"
ledger=$MCRT_BINARY_DIR/examples/ledger
[[ -x $ledger ]] || { echo "no program $ledger" >&2; exit 1; }
export LC_ALL=C

run() { # run ARGUMENT...: leaves out, err, status
    status=0
    timeout 100 "$ledger" "$@" >out 2>err || status=$?
}

# says OK REFUSED: with no faults
says() { [[ $status == 0 && ! -s err && $(tail -n 1 out) == "balance 10000000 10000000 transfers $1 $2 faults 0 dead 0" ]]; }

# adds_up LINES: no money was made or lost, each line has an outcome, and what is counted by kind are the totals
adds_up() {
    [[ $status == 0 && ! -s err ]] && awk -v lines="$1" '
        $1 == "fault" { faults += $2 }
        $1 == "dead" { dead += $2 }
        { last = $0 }
        END {
            n = split(last, word, " ")
            exit !(n == 10 && last ~ /^balance 10000000 10000000 transfers [0-9]+ [0-9]+ faults [0-9]+ dead [0-9]+$/ &&
                word[5] + word[6] == lines && word[8] == faults && word[10] == dead)
        }' out
}

# --- without faults -------------------------------------------------------------------------------------------------------

# Amounts so small that nothing is refused, and every seventh one more than there is at all.
awk 'BEGIN {
    srand(5)
    print "from,to,amount"
    split("10000001 4294967295 4294967296 4294967301 18446744073709551615", large, " ")
    for (i = 0; i < 20000; i++)
        printf "%d,%d,%s\n", rand() * 1000, rand() * 1000, i % 7 == 0 ? large[1 + i % 5] : int(rand() * 90)
}' >small.csv
# Half of the accounts pay, each always the same, and the other half is paid: so many times as the opening balance is enough for.
awk 'BEGIN {
    srand(6)
    print "from,to,amount"
    for (i = 0; i < 20000; i++) {
        from = int(rand() * 500)
        print from "," 500 + int(rand() * 500) "," 3000 - from * 6
    }
}' >one_way.csv

# expected FILE: OK REFUSED; and nothing if that depends on the order
expected() {
    awk -F, '
        NR == 1 { next }
        $3 > 10000000 { refused++; next }
        { paid[$1] += $3; paid_into[$2] = 1; times[$1]++; if ($1 in amount && amount[$1] != $3) varies[$1] = 1; amount[$1] = $3 }
        END {
            for (from in paid) {
                most = paid[from] <= 10000 ? times[from] : int(10000 / amount[from])
                if (paid[from] > 10000 && (from in varies || from in paid_into)) exit
                ok += most; refused += times[from] - most
            }
            print ok + 0, refused + 0
        }' "$1"
}

for file in small one_way; do
    read -r ok refused <<<"$(expected $file.csv)"
    check "awk knows the outcome of $file" test $((ok + refused)) = 20000 -a "$refused" -gt 0
    for executors in 1 2 8; do
        run "$file.csv" --executors $executors
        check "$file on $executors executors" says "$ok" "$refused"
    done
    run "$file.csv"
    check "$file on all processors" says "$ok" "$refused"
    MCRT_SEED=3 run "$file.csv"
    check "$file in simulation" says "$ok" "$refused"
done

printf 'from,to,amount' >none.csv
run none.csv
check "no transfers" says 0 0
printf 'from,to,amount\r\n7,7,10000\r\n007,7,10001' >to_itself.csv
run to_itself.csv
check "an account pays itself what it has, and no more; lines may end otherwise" says 1 1
run <(cat small.csv)
check "a pipe is a file" says $(expected small.csv)

# --- with faults ----------------------------------------------------------------------------------------------------------

"$ledger" --generate 20000 1 many.csv
check "there are 20,000 lines and a header" test "$(wc -l <many.csv)" = 20001
run many.csv --executors 2
check "many, without faults" adds_up 20000
check "some are refused" awk '/^balance/ { exit !($6 > 100 && $6 < 10000) }' out
run many.csv --faults 1
check "many, on all processors" adds_up 20000
for seed in $(seq 20); do
    for executors in 1 2; do
        run many.csv --faults "$seed" --executors $executors
        check "many, faults $seed on $executors executors" adds_up 20000
        cat out >>reports
    done
done
# What is said to be refused beyond what awk has is what faults have undone; and those are few.
read -r ok refused <<<"$(expected one_way.csv)"
for seed in 1 2 3 4 5; do
    run one_way.csv --faults "$seed" --executors 2
    check "one way, faults $seed" adds_up 20000
    check "one way, faults $seed: no more is done than there is money for" awk -v ok="$ok" \
        '/ undone, / { undone = $2 } /^balance/ { exit !($5 <= ok && $5 + undone >= ok) }' out
done

# each_kind REPORTS: each kind of fault, and what must come of it, has occurred; all of them are named in each report
each_kind() {
    awk '$1 == "fault" || $1 == "then" || $1 == "dead" { n = $2; $2 = ""; sum[$0] += n }
        /relay that had ended/ { next } # only if two executors are about
        END {
            for (what in sum) if (what !~ /relay that had ended/) { kinds += what ~ /^fault/; if (sum[what] == 0) { print what; exit 1 } }
            exit !(kinds == 7 && "dead  to a mailbox that was full" in sum && "dead  in answer to a request that had ended" in sum)
        }' "$1"
}
check "each kind of fault occurs" each_kind reports

awk 'NR <= 301' many.csv >few.csv
for seed in $(seq 200); do
    MCRT_SEED=$seed run few.csv --faults "$seed"
    check "few, in simulation with seed $seed" adds_up 300
    cat out >>simulated
    tail -n 1 out >last
    if ((seed % 10 == 0)); then
        MCRT_SEED=$seed run few.csv --faults "$seed"
        check "few, in simulation with seed $seed again: the same" diff last <(tail -n 1 out)
    fi
done
check "each kind of fault occurs in simulation" each_kind simulated
check "the schedules of simulation differ" test "$(grep ^balance simulated | sort -u | wc -l)" -gt 50
# Mailboxes have no more room than is needed.
printf 'from,to,amount\n7,7,5\n' >one.csv
printf 'from,to,amount\n7,8,10\n8,7,10\n' >two.csv
for seed in $(seq 50); do
    run one.csv --faults "$seed" --executors 2
    check "one transfer, faults $seed" adds_up 1
    run two.csv --faults "$seed" --executors 2
    check "two transfers, faults $seed" adds_up 2
done

# --- on a terminal --------------------------------------------------------------------------------------------------------

if script -qec true /dev/null </dev/null >/dev/null 2>&1; then # a machine may have no pseudo-terminals
    "$ledger" --generate 1500000 1 long.csv
    script -qec "'$ledger' long.csv --executors 1" /dev/null </dev/null >terminal 2>&1
    check "progress on a terminal" grep -qE $'\r\33\\[K[0-9]+ transfers, [0-9]+ a second, p50' terminal
    rm long.csv
fi

# --- bad input --------------------------------------------------------------------------------------------------------------

# refused STATUS WORDS ARGUMENT...: with that status, words on standard error, and nothing has been run
refused() {
    local expected=$1 words=$2
    shift 2
    run "$@"
    check "ledger $*: status $expected, '$words'" test "$status" = "$expected" -a ! -s out -a "$(grep -cF "$words" err)" = 1
}
refused 2 'missing.csv: No such file' missing.csv
refused 2 '.: Is a directory' .
for header in '' 'from,to' 'from,to,amount,' 'to,from,amount' ' from,to,amount' '1,2,3' 'FROM,TO,AMOUNT'; do
    printf '%s\n1,2,3\n' "$header" >bad.csv
    refused 2 'bad.csv:1: the header is not from,to,amount' bad.csv
done
: >bad.csv
refused 2 'bad.csv:1: the header' bad.csv
malformed() { # malformed WORDS LINE: first, in the middle, and last without an end
    printf 'from,to,amount\n%s\n1,2,3\n' "$2" >bad.csv
    refused 2 "bad.csv:2: $1" bad.csv
    printf 'from,to,amount\n1,2,3\n%s\n1,2,3\n' "$2" >bad.csv
    refused 2 "bad.csv:3: $1" bad.csv
    [[ -n $2 ]] || return
    printf 'from,to,amount\n1,2,3\n%s' "$2" >bad.csv
    refused 2 "bad.csv:3: $1" bad.csv --faults 1
}
for line in '' ',' ',,' '1,2' '1,2,' '1,,3' ',2,3' '1,2,3,' '1,2,3,4' '1;2;3' 'a,2,3' '1,b,3' '1,2,c' '-1,2,3' '1,2,-3' '+1,2,3' ' 1,2,3' \
    '1, 2,3' '1,2,3 ' '1,2,3.0' '1,2,0x3' '"1",2,3' $'1,2,3\r\r' $'1,2,\t3'; do
    malformed 'no line of the form FROM,TO,AMOUNT' "$line"
done
for line in '1000,2,3' '1,1000,3' '65536,2,3' '1,4294967297,3' '18446744073709551615,2,3'; do malformed 'an account above 999' "$line"; done
for line in '1,2,18446744073709551616' '18446744073709551617,2,3' '1,99999999999999999999999,3' '1,2,28446744073709551615'; do
    malformed 'a number above 2^64 - 1' "$line"
done
printf 'from,to,amount\n1,2,3\0\n' >bad.csv
refused 2 'bad.csv:2: no line' bad.csv

for arguments in '' 'small.csv few.csv' 'small.csv --executors' 'small.csv --executors x' 'small.csv --executors -1' \
    'small.csv --executors 1025' 'small.csv --faults' 'small.csv --faults -1' 'small.csv --faults 1x' \
    'small.csv --faults 18446744073709551616' 'small.csv --unknown' '--generate 1 2' '--generate 1 2 a b' '--generate -1 2 made' \
    '--generate 1 x made' '--generate 1 2 made --faults 1' '--generate 2147483649 1 made'; do
    # shellcheck disable=SC2086 # several words on purpose
    refused 2 'usage: ledger' $arguments
done
check "nothing was made" test ! -e made
refused 1 'No such file' --generate 1 2 missing/made
refused 1 'No space left' --generate 1 2 /dev/full
status=0
"$ledger" few.csv >/dev/full 2>err || status=$?
check "no space for the output" test "$status" = 1 -a "$(grep -c 'standard output' err)" = 1
run --help
check "--help" test "$status" = 0 -a "$(grep -c -- --generate out)" = 2

"$ledger" --generate 20000 1 again.csv && "$ledger" --generate 20000 2 other.csv && "$ledger" --generate 0 1 zero.csv
check "the same seed makes the same file" cmp many.csv again.csv
check "which it always was" test "$(cksum <many.csv)" = "3102774253 234065"
check "another one makes another" test "$(cksum <other.csv)" != "$(cksum <many.csv)"
check "a file of no transfers" diff zero.csv <(echo from,to,amount)

echo "$((checks - failures)) passed, $failures failed"
[[ $failures == 0 ]]
