# For tests of a command, sourced: a directory of their own that they are in, and checks that are counted.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
checks=0
failures=0

check() { # check NAME CONDITION...
    checks=$((checks + 1))
    local name=$1
    shift
    "$@" && return
    echo "FAIL $name"
    failures=$((failures + 1))
    [[ ! -s out ]] || sed 's/^/     out: /' out | head -n 30
    [[ ! -s err ]] || sed 's/^/     err: /' err | head -n 10
}
