#!/usr/bin/env bash
# Compares every number that examples/pipeline reports with what awk and sort say, for generated and for nasty logs; on one thread, on
# executors and in simulation, where all must say the same. Then what the generator promises, and what is said to bad input.
set -euo pipefail
export LC_ALL=C
pipeline=$MCRT_BINARY_DIR/examples/pipeline
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
logs=0

die() { printf '%s\n' "$*" >&2; exit 1; }

# reference LOG TOP [CLASS [METHOD]]: the report, by other means
reference() {
    awk -v class="${3:-}" -v method="${4:-}" '
    # Sets address, verb, path, status, bytes, micros. What stands behind a backslash is masked, so that quotes are what they seem.
    function good(line,    masked, first, second, head, what, tail, word) {
        sub(/\r$/, "", line)
        if (line ~ /[\001-\037\177]/) return 0
        masked = line
        gsub(/\\./, "__", masked)
        first = index(masked, "\"")
        second = index(substr(masked, first + 1), "\"")
        if (!first || !second) return 0
        head = substr(line, 1, first - 1)
        what = substr(line, first + 1, second - 1)
        tail = substr(masked, first + second + 1)
        if (head !~ /^[^ ]+ [^ ]+ [^ ]+ \[[0-9][0-9]\/[A-Z][a-z][a-z]\/[0-9][0-9][0-9][0-9]:[0-9][0-9]:[0-9][0-9]:[0-9][0-9] [-+][0-9][0-9][0-9][0-9]\] $/)
            return 0
        if (what !~ /^[A-Z]+ [^ ]+ HTTP\/[0-9]\.[0-9]$/) return 0
        if (tail !~ /^ [1-5][0-9][0-9] ([0-9]+|-) ("[^"]*" "[^"]*" )?[0-9]+$/) return 0
        address = head; sub(/ .*/, "", address)
        split(what, word, " "); verb = word[1]; path = word[2]; sub(/\?.*/, "", path)
        split(tail, word, " "); status = word[1]; bytes = word[2]
        micros = tail; sub(/.* /, "", micros)
        return path != "" && length(bytes) <= 15 && length(micros) <= 15
    }
    length($0) > 65536 || !good($0) { rejected++; next }
    (class && substr(status, 1, 1) != class) || (method && verb != method) { filtered++; next }
    { requests++; sum += bytes; print status, bytes + 0, micros, address, path >"requests" }
    END {
        printf "lines %.0f\nrejected %.0f\nfiltered %.0f\nrequests %.0f\nbytes %.0f\n", NR, rejected, filtered, requests, sum
        close("requests")
    }' "$1"
    [[ -e requests ]] || return 0
    awk '{ n[$1]++ } END { for (status in n) print "status", status, n[status] }' requests | sort
    cut -d' ' -f3 requests | sort -n | awk '{ value[NR] = $1 } END {
        for (p = 50; p < 100; p += p == 50 ? 40 : 9) print "micros p" p, value[int((NR * p + 99) / 100)]
        print "micros max", value[NR]
    }'
    local field
    for field in 4 5; do
        awk -v f=$field '{ n[$f]++; sum[$f] += $2 } END { for (name in n) printf "%d %s %.0f\n", n[name], name, sum[name] }' requests |
            sort -k1,1nr -k2,2 | awk -v top="$2" -v what="$([[ $field == 4 ]] && echo address || echo path)" \
            'NR <= top { print what, $2, $1, $3 }'
    done
    rm requests
}

# matches LOG [ARGUMENT...]: both reports are the same, with and without executors. TOP, CLASS, METHOD: what is asked for.
matches() {
    local log=$1 executors mode
    shift
    reference "$log" "${TOP:-10}" "${CLASS:-}" "${METHOD:-}" >expected
    for executors in none 0 1 2 8; do
        mode=(--executors "$executors")
        [[ $executors != none ]] || mode=()
        "$pipeline" "${mode[@]}" "$@" "$log" >report 2>err || die "pipeline ${mode[*]} $* $log: status $?: $(cat err)"
        [[ ! -s err ]] || die "pipeline ${mode[*]} $* $log: $(cat err)"
        diff expected report || die "pipeline ${mode[*]} $* $log: the numbers above are not those of awk"
    done
    logs=$((logs + 1))
}

# --- generated logs ---

while read -r seed lines malformed; do
    "$pipeline" --generate "log.$seed" --lines "$lines" --seed "$seed" --malformed "$malformed"
    [[ $(wc -l <"log.$seed") == "$lines" ]] || die "seed $seed: $(wc -l <"log.$seed") lines"
    matches "log.$seed"
done <<'TEXT'
1 0 0
2 1 0
3 1 100
4 1000 0
5 1000 100
6 20000 10
18446744073709551615 3000 50
TEXT
TOP=0 matches log.6 --top 0
TOP=1 matches log.6 --top 1
TOP=100000 matches log.6 --top 100000
CLASS=4 matches log.6 --status 4xx
CLASS=1 matches log.6 --status 1xx
METHOD=POST matches log.6 --method POST
CLASS=2 METHOD=HEAD TOP=3 matches log.6 --status 2xx --method HEAD --top 3
METHOD=NONE matches log.6 --method NONE

[[ $(grep -c '^status' <("$pipeline" log.4)) -gt 3 ]] || die "a log of one kind of answer"
"$pipeline" log.4 | grep -qx 'rejected 0' || die "malformed lines, and none were asked for"
"$pipeline" log.5 | grep -qx 'requests 0' || die "good lines, and none were asked for"

# --- nasty ones ---

good='10.0.0.1 - ann [29/Nov/2026:12:00:01 +0000] "GET /a?b=1 HTTP/1.1" 200 512 "-" "agent" 1834'
sed 's/$/\r/' log.4 >crlf && matches crlf
head -c -1 log.4 >no_newline && matches no_newline
printf '%s' "$good" >one_without_newline && matches one_without_newline
printf '\n\n%s\n\n' "$good" >empty_lines && matches empty_lines
{ head -c 300000 "$pipeline" | tr '\000' x; echo; echo "$good"; } >binary && matches binary

# padded BYTES: the good line, its path made longer until it has so many
padded() { awk -v line="$good" -v n="$1" 'BEGIN {
    for (pad = "x"; length(pad) < n; pad = pad pad); sub(/\/a/, "/" substr(pad, 1, n - length(line) + 1), line); print line }'; }
padded 65536 >longest && matches longest
padded 65537 >too_long && matches too_long
{ padded 65535; padded 200000; echo "$good"; padded 131072; padded 65536; padded 131073; padded 65537; } >long && matches long
{ echo "$good"; padded 70000 | tr -d '\n'; } >long_end && matches long_end
{ padded 65537 | sed 's/ 1834$/\r/'; padded 65535 | sed 's/$/\r/'; echo "$good"; } >long_crlf && matches long_crlf
grep -qx 'requests 1' <("$pipeline" longest) && grep -qx 'rejected 1' <("$pipeline" too_long) || die "the longest line is another one"

cat >nearly <<'TEXT'
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 200 512 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 -0130] "GET /a HTTP/2.0" 599 - "" "" 0
::1 - - [29/Nov/2026:12:00:01 +0000] "DELETE /%22?a?b HTTP/1.0" 100 000000000000001 "\"" "\\" 999999999999999
10.0.0.2 - - [29/Nov/2026:12:00:01 +0000] "GET /q\"uote HTTP/1.1" 404 9 "a" "b\\\"c" 7
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 600 512 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 099 512 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 0200 512 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 200 5120000000000000 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 200 512 1000000000000000
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 200 -1 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 200 512 -1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 200 512 "123
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 200 512 "-" 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 200 512 "-" "a" "b" 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 200 512 "-" "a\" 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET  /a HTTP/1.1" 200 512 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1 " 200 512 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "get /a HTTP/1.1" 200 512 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET ?a HTTP/1.1" 200 512 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1" 200 512 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a" 200 512 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "" 200 512 1834
10.0.0.1 - - [29/nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 200 512 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 0000] "GET /a HTTP/1.1" 200 512 1834
10.0.0.1 - - [29/Nov/2026:12:00 +0000] "GET /a HTTP/1.1" 200 512 1834
10.0.0.1 - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 200 512 1834
10.0.0.1  - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 200 512 1834
 10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 200 512 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1" 200 512 1834 
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a	b HTTP/1.1" 200 512 1834
10.0.0.1 - - [29/Nov/2026:12:00:01 +0000] "GET /a HTTP/1.1"200 512 1834
TEXT
matches nearly
grep -qx 'requests 4' <("$pipeline" nearly) || die "four of the lines are good: $("$pipeline" nearly)"
awk 'NR > 1 { line = last; for (i = 1; i <= length(line); i += 3) print substr(line, 1, i - 1) substr(line, i + 1) } { last = $0 }' \
    nearly >without_one && matches without_one

"$pipeline" log.4 >report
cat log.4 | "$pipeline" /dev/stdin | diff report -

# --- simulation ---

for log in log.1 log.2 log.6 nearly; do
    "$pipeline" "$log" >expected
    for seed in 1 2 3 4 5 6; do
        MCRT_SEED=$seed "$pipeline" "$log" 2>err | diff expected - && [[ ! -s err ]] || die "$log with MCRT_SEED=$seed: $(cat err)"
        MCRT_SEED=$seed "$pipeline" --executors 2 "$log" 2>err | diff expected - && [[ ! -s err ]] || die "$log with MCRT_SEED=$seed: $(cat err)"
    done
done

# --- the generator ---

"$pipeline" --generate again --lines 1000 --seed 4 && cmp again log.4
"$pipeline" --generate other --lines 1000 --seed 5
! cmp -s other log.4 || die "two seeds, and the same log"
[[ $(cksum <log.6) == "3478136171 2589119" ]] || die "seed 6 is another log than it was: $(cksum <log.6)"

# --- bad input ---

# refused STATUS WORDS ARGUMENT...: with that status, words on standard error, and no report
refused() {
    local expected=$1 words=$2 status=0
    shift 2
    "$pipeline" "$@" >out 2>err || status=$?
    [[ $status == "$expected" && ! -s out ]] || die "pipeline $*: status $status, $(wc -c <out) bytes"
    grep -q "$words" err || die "pipeline $*: $(cat err)"
}
refused 2 'missing: No such file' missing
refused 2 'Is a directory' .
refused 2 'Not a directory' log.4/below
refused 2 'Input/output error' /proc/self/mem
refused 2 'Input/output error' --executors 2 /proc/self/mem
echo "$good" >secret
chmod 000 secret
for file in secret /sys/bus/*/drivers_probe; do # the latter can be written only, for root too
    [[ -f $file ]] && ! cat "$file" >/dev/null 2>&1 || continue
    refused 2 'Permission denied' "$file"
    break
done
refused 2 usage
refused 2 usage log.4 log.5
for arguments in '--executors' '--executors x' '--executors -1' '--executors 1025' '--top' '--top -1' '--top 1x' '--top 1000001' \
    '--status 6xx' '--status 4' '--status' '--method' '--unknown' '--lines 1' '--seed 1' '--malformed 1'; do
    # shellcheck disable=SC2086 # several words on purpose
    refused 2 'usage: ' log.4 $arguments
done
refused 2 usage log.4 --method ''
for arguments in '' '--lines 1' '--seed 1' '--lines x --seed 1' '--lines 1 --seed -1' '--lines 1 --seed 18446744073709551616' \
    '--lines 1000000001 --seed 1' '--lines 1 --seed 1 --malformed 101' '--lines 1 --seed 1 --top 1' '--lines 1 --seed 1 log.4'; do
    # shellcheck disable=SC2086
    refused 2 usage --generate made $arguments
    [[ ! -e made ]] || die "--generate made $arguments: made it"
done
refused 2 'Is a directory' --generate . --lines 1 --seed 1
refused 2 'No such file' --generate missing/log --lines 1 --seed 1
refused 1 'No space left' --generate /dev/full --lines 1 --seed 1
status=0
"$pipeline" log.4 >/dev/full 2>err || status=$?
[[ $status == 1 ]] && grep -q 'standard output' err || die "no space for the report: status $status"
echo "the pipeline reports of $logs logs what awk and sort do"
