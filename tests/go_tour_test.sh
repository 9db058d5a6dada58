#!/usr/bin/env bash
# That the programs of examples/go print what stands beside them, on one thread, on executors and in simulation; that the Go programs
# print the same, where there is Go; and that docs/go.md shows what stands in these programs.
set -euo pipefail
export LC_ALL=C
sources=$MCRT_SOURCE_DIR/examples/go
programs=$MCRT_BINARY_DIR/examples/go
document=$MCRT_SOURCE_DIR/docs/go.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() { printf '%s\n' "$*" >&2; exit 1; }

# prints NAME COMMAND...: what stands in NAME.txt, and nothing on standard error
prints() {
    local name=$1
    shift
    "$@" >"$work/out" 2>"$work/err" || die "$*: status $?: $(cat "$work/err")"
    diff "$sources/$name.txt" "$work/out" || die "$*: prints something else"
    [[ ! -s $work/err ]] || die "$*: $(cat "$work/err")"
}

# --- the programs here ---

count=0
for source in "$sources"/*.cpp; do
    name=$(basename "$source" .cpp)
    program=$programs/$name
    prints "$name" "$program"
    for seed in {1..20}; do
        prints "$name" env MCRT_SEED="$seed" "$program"
    done
    count=$((count + 1))
    [[ $name != gomaxprocs ]] || continue # it sees to its executors itself
    for executors in 1 2 8; do
        prints "$name" env GO_EXECUTORS=$executors "$program"
    done
    for seed in {1..20}; do
        prints "$name" env MCRT_SEED="$seed" GO_EXECUTORS=2 "$program"
    done
done
[[ $count -gt 20 ]] || die "$sources has $count programs"

# --- the Go programs ---

gone=0
if command -v go >/dev/null && (cd "$work" && printf 'package main\nfunc main() {}\n' >probe.go && GO111MODULE=off go run probe.go) >/dev/null 2>&1; then
    for source in "$sources"/*.go; do
        ! grep -q golang.org "$source" || continue # not of the standard library
        (cd "$work" && GO111MODULE=off go build -o program "$source")
        prints "$(basename "$source" .go)" "$work/program"
        gone=$((gone + 1))
    done
fi

# --- the document ---

# A fenced block of go or cpp belongs to the program that the heading above it names: its lines stand there one after another,
# whatever the indentation and the empty lines between them.
blocks=$(awk -v sources="$sources" '
function bare(line) { gsub(/^[ \t]+|[ \t]+$/, "", line); return line }
function wrong(what) { print "go.md: " what; failed = 1; exit }
function check(    file, line, text, n, at, k) {
    file = sources "/" name "." language
    split("", text)
    while ((getline line <file) > 0) if (bare(line) != "") text[++n] = bare(line)
    close(file)
    for (at = 1; at <= n; at++) {
        for (k = 1; k <= lines && text[at + k - 1] == block[k]; k++);
        if (k > lines) return
    }
    wrong("not in " file ": " block[1])
}
/^## / { heading = $0; name = match($0, /`[a-z_]+`/) ? substr($0, RSTART + 1, RLENGTH - 2) : "" }
/^```(go|cpp)$/ { language = substr($0, 4); inside = 1; lines = 0; next }
inside && /^```$/ {
    inside = 0
    checked++
    if (name == "") wrong("no program for what stands below " heading)
    check()
    next
}
inside && bare($0) != "" { block[++lines] = bare($0) }
END { if (!failed) print checked + 0 }' "$document")
[[ $blocks =~ ^[0-9]+$ && $blocks -gt 10 ]] || die "$blocks"

# A row of the table whose last cell is a program: each piece of code in the second cell stands in the Go program, and each in the third
# in the program here. What the fourth cell calls is declared in a header.
rows=0
while IFS='|' read -r _ construct go here c program _; do
    name=$(sed -n 's/.*`\([a-z_]*\)`.*/\1/p' <<<"$program")
    [[ -n $name ]] || continue
    while IFS= read -r code; do
        [[ -z $code ]] || grep -qF -- "$code" "$sources/$name.go" || die "go.md: not in $name.go: $code"
    done < <(grep -o '`[^`]*`' <<<"$go" | tr -d '`')
    while IFS= read -r code; do
        [[ -z $code ]] || grep -qF -- "$code" "$sources/$name.cpp" || die "go.md: not in $name.cpp: $code"
    done < <(grep -o '`[^`]*`' <<<"$here" | tr -d '`')
    while IFS= read -r called; do
        [[ -z $called ]] || grep -rqF -- "$called" "$MCRT_SOURCE_DIR/include/mc" || die "go.md: no header has $called ($construct)"
    done < <(grep -o '`[^`]*`' <<<"$c" | grep -o '\(mc\|csp\)_[a-z_]*(' || true)
    rows=$((rows + 1))
done <"$document"
for source in "$sources"/*.cpp; do
    grep -q "\`$(basename "$source" .cpp)\`" "$document" || die "go.md: does not tell of $source"
done
echo "$count programs print what they should, $gone in Go too; $blocks blocks and $rows rows of go.md stand in them"
