#!/bin/bash
# Compares examples/wordcount with find, tr, sort and uniq, and tries what a tree can do to it.
#
#   tests/wordcount_test.sh [WORDCOUNT [TREE]]     WORDCOUNT: the program; TREE: a real tree (default /usr/include/linux)
#
# WORDCOUNT_RUNNER, when set, is put before the program, such as "valgrind -q --error-exitcode=9".
set -u -o pipefail
export LC_ALL=C

wordcount=${1:-${MCRT_BINARY_DIR:?give the path of wordcount}/examples/wordcount}
tree=${2:-/usr/include/linux}
runner=${WORDCOUNT_RUNNER:-}
failures=0
checks=0

[ -x "$wordcount" ] || { echo "no program $wordcount" >&2; exit 1; }
wordcount=$(readlink -f "$wordcount")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

check() { # check NAME CONDITION...
    checks=$((checks + 1))
    local name=$1
    shift
    if "$@"; then
        echo "ok   $name"
    else
        echo "FAIL $name"
        failures=$((failures + 1))
    fi
}

count() { # runs the program; leaves out, err, status
    $runner "$wordcount" "$@" >out 2>err
    status=$?
}

total_is() { # total_is WORDS DISTINCT FILES BYTES SKIPPED
    [ "$(tail -n 1 out)" = "total $1 distinct $2 files $3 bytes $4 skipped $5" ] ||
        { echo "     expected total $*, got: $(tail -n 1 out | cut -c1-200)"; false; }
}

# reference DIR...: leaves words (COUNT WORD, most first, then bytewise) and total. A newline goes between the files, or
# the last word of one and the first of the next would be one.
reference() {
    find -L "$@" -type f -print0 2>/dev/null |
        xargs -0 -r sh -c 'for file; do cat -- "$file"; echo; done' sh 2>/dev/null |
        tr -cs 'A-Za-z' '\n' | tr A-Z a-z | sed '/^$/d' | sort | uniq -c | sed 's/^ *//' | sort -k1,1nr -k2 >words
    reference_total=$(awk '{ words += substr($0, 1, 20) + 0 } END { printf "%d %d", words, NR }' words)
    reference_bytes=$(find -L "$@" -type f -print0 2>/dev/null | xargs -0 -r cat 2>/dev/null | wc -c)
}

top_matches() {
    head -n -3 out | cmp - <(head -n 20 words)
}

# matches NAME SKIPPED DIR...: the program and the reference agree; so many files cannot be read.
matches() {
    local name=$1 skipped=$2 files
    shift 2
    files=$(find -L "$@" -type f -printf x 2>/dev/null | wc -c)
    check "$name: status" [ "$status" = 0 ]
    # shellcheck disable=SC2086 # two words on purpose
    check "$name: total" total_is $reference_total $((files - skipped)) "$reference_bytes" "$skipped"
    check "$name: top 20" top_matches
    check "$name: speed" grep -q '^[0-9]* bytes/s$' <(tail -n 3 out)
}

# --- A tree with everything that could go wrong ---------------------------------------------------------------------------

mkdir -p made/sub/deeper made/empty_dir made/locked
: >made/empty
printf 'no newline at the End' >made/no_newline
printf 'newline name\n' >$'made/new\nline'
head -c 65530 /dev/zero | tr '\0' ' ' >made/border && printf 'overtheborder and on' >>made/border
head -c 300000 /dev/zero | tr '\0' 'Q' >made/one_word
cp "$wordcount" made/binary
printf 'caf\303\251 na\357ve A1B2c3 @[`{ AZaz' >made/bytes
awk 'BEGIN { srand(7); letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    for (i = 0; i < 40000; i++) {
        n = 1 + int(rand() * (i % 50 ? 9 : 40)); word = ""
        while (n-- > 0) word = word substr(letters, 1 + int(rand() * (i % 3 ? 52 : 2)), 1)
        printf "%s%s", word, substr(" \n.-0", 1 + int(rand() * 5), 1)
    } }' >made/random
printf 'deep words here' >made/sub/deeper/text
ln made/no_newline made/sub/hard_link
ln -s ../no_newline made/sub/link_to_file
ln -s sub made/link_to_dir
ln -s .. made/sub/loop
ln -s self made/self
ln -s nowhere made/dangling
ln -s no_newline/below made/through_a_file
mkfifo made/pipe

reference made
for j in 1 2 7; do
    count -j $j made
    matches "made tree, -j $j" 0 made
done
check "a loop is named" grep -q 'made/sub/loop: leads back' err
check "a loop below a link is named too" grep -q 'made/link_to_dir/loop: leads back' err
check "a link to itself is named" grep -q 'made/self: ' err
check "a link through a file is named" grep -q 'made/through_a_file: ' err
check "a dangling link is not" [ "$(grep -c dangling err)" = 0 ]
check "nothing else is said" [ "$(wc -l <err)" = 4 ]

cp out first
count made made/sub/ made/no_newline made
reference made made/sub/ made/no_newline made
matches "directories given twice, and a file" 0 made made/sub/ made/no_newline made

(cd made && $runner "$wordcount" >../out 2>../err)
check "the working directory by default" [ "$(tail -n 1 out)" = "$(tail -n 1 first)" ]

mkdir nothing
count nothing
check "an empty directory" total_is 0 0 0 0 0

# --- What cannot be read --------------------------------------------------------------------------------------------------

mkdir bad
printf 'readable' >bad/good
ln -s /proc/self/mem bad/unreadable # opens, but its first page cannot be read: EIO, for root too
unreadable=1
for file in /sys/bus/*/drivers_probe; do # can be written only: EACCES, for root too
    if [ -f "$file" ] && ! cat "$file" >/dev/null 2>&1; then
        ln -s "$file" bad/unopenable
        unreadable=2
        break
    fi
done
printf 'secret' >bad/secret
chmod 000 bad/secret
mkdir bad/locked
chmod 000 bad/locked
if ! cat bad/secret >/dev/null 2>&1; then # not root
    unreadable=$((unreadable + 1))
fi
reference bad
count bad
matches "unreadable files" $unreadable bad
check "an unreadable file is named" grep -q 'bad/unreadable: Input/output error' err
[ ! -h bad/unopenable ] || check "a file that cannot be opened is named" grep -q 'bad/unopenable: Permission denied' err
[ -r bad/locked ] || check "an unreadable directory is named" grep -q 'bad/locked: Permission denied' err
chmod 700 bad/locked

ln -s loop loop
count missing made/sub/deeper loop made/dangling
check "DIRs that are not there: status 1" [ $status = 1 ]
check "DIRs that are not there: the rest is counted" total_is 3 3 1 15 0
check "DIRs that are not there: named" [ "$(grep -c -e 'wordcount: missing: No such file' -e 'wordcount: loop: ' \
    -e 'wordcount: made/dangling: ' err)" = 3 ]

printf 'x' >$'bad/\033[31m\n'
rm bad/$'\033[31m\n' && ln -s /proc/self/mem $'bad/\033[31m\n'
count bad
check "a name cannot drive the terminal" [ "$(grep -c $'\033' err)" = 0 ]

# Files vanish between the listing of their directory and their turn: stop the program once it reads the first ones.
mkdir vanish
for i in $(seq 60); do truncate -s 64M vanish/file$i; done
$runner "$wordcount" -j 2 vanish >out 2>err &
pid=$!
until ls -l /proc/$pid/fd 2>/dev/null | grep -q vanish/file || ! kill -0 $pid 2>/dev/null; do :; done
kill -STOP $pid
rm -rf vanish
kill -CONT $pid
wait $pid
status=$?
check "files that vanish: status 0" [ $status = 0 ]
read -r _ _ _ _ _ files _ _ _ skipped < <(tail -n 1 out)
check "files that vanish: all accounted for" [ $((files + skipped)) = 60 ]
check "files that vanish: some were skipped, each is named" [ "$skipped" -gt 0 -a \
    "$(grep -c 'vanish/file.*No such file' err)" = "$skipped" ]

# --- Sizes ----------------------------------------------------------------------------------------------------------------

# A path longer than the system's limit.
mkdir long
part=$(printf '%0100d' 0)
(cd long && for _ in $(seq 60); do mkdir "$part" && cd "$part" || exit 1; done && printf 'at the end' >file)
count long
check "a path of 6,000 bytes" total_is 3 3 1 10 0

# A word that does not fit into what memory there may be.
for megabytes in 64 128 256; do
    (ulimit -v $((megabytes * 1024)); "$wordcount" nothing) >/dev/null 2>&1 || continue
    mkdir huge
    head -c "${megabytes}M" /dev/zero | tr '\0' a >huge/word
    (ulimit -v $((megabytes * 1024)); exec "$wordcount" huge) >out 2>err
    status=$?
    check "out of memory: status 1" [ $status = 1 ]
    check "out of memory: said so" grep -q '^wordcount: reader: out of memory' err
    check "out of memory: nothing else" [ "$(wc -l <err)$(wc -c <out)" = 10 ]
    rm -rf huge
    break
done

reference "$tree"
count "$tree"
matches "$tree" 0 "$tree"

# --- The command line, the output -----------------------------------------------------------------------------------------

for arguments in '-x' '-j 0' '-j 1x' '-j' '-j 65'; do
    # shellcheck disable=SC2086 # several words on purpose
    count $arguments made
    [ "$arguments" != -j ] || count -j # its argument missing
    check "wordcount $arguments: usage" [ $status = 2 ]
done
mkdir ./-dash
printf 'dash' >./-dash/file
count -- -dash
check "a name that starts with a dash" total_is 1 1 1 4 0

$runner "$wordcount" made >/dev/full 2>err
check "no space for the output: status 1" [ $? = 1 ]
check "no space for the output: said so" grep -q 'standard output' err

if script -qec true /dev/null </dev/null >/dev/null 2>&1; then # a machine may have no pseudo-terminals
    mkdir zeros
    for i in $(seq 20); do truncate -s 64M zeros/file$i; done
    script -qec "'$wordcount' zeros" /dev/null </dev/null >terminal 2>&1
    check "a progress bar on a terminal" grep -q $'\r\\[[# ]*\\] *[0-9]*%' terminal
    rm -rf zeros
fi

echo "$((checks - failures)) passed, $failures failed"
[ $failures = 0 ]
