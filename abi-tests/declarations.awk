# declarations.awk: what the headers declare, from `cc -E` of mc/mc.h on standard input. A line each:
#   function NAME | struct TAG | field TAG NAME | enumerator NAME
# TAG is a struct's typedef name, or "struct NAME" when it has none of its own. POSIX awk. The headers are C without
# bitfields and nested structs, and with function bodies in `static inline` alone, which no library exports; what it does
# not understand, it names and fails.

/^# [0-9]+ "/ { ours = ($3 ~ /(^"|\/)mc\/[a-z_]+\.h"$/); next }
ours { text = text " " $0 }

function trimmed(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); gsub(/[ \t]+/, " ", s); return s }
function last_name(s) {
    s = trimmed(s)
    sub(/(\[[^\]]*\])+$/, "", s)
    sub(/^.*[^A-Za-z0-9_]/, "", s)
    return s
}
function fail(what) { print "declarations.awk: cannot read: " what > "/dev/stderr"; failed = 1 }

# The name of a field: the one of (*name)(...), or the last.
function field_name(s) {
    s = trimmed(s)
    if (match(s, /\( ?\* ?[A-Za-z_][A-Za-z0-9_]* ?\)/)) {
        s = substr(s, RSTART, RLENGTH)
        gsub(/[^A-Za-z0-9_]/, "", s)
        return s
    }
    return last_name(s)
}

function structure(s, tag, name,    body, count, fields, i) {
    body = s
    sub(/^[^{]*\{/, "", body)
    sub(/\}[^}]*$/, "", body)
    if (body ~ /[{}]/) { fail(s); return }
    tag = name = s
    sub(/^.*struct /, "", tag)
    sub(/ ?\{.*$/, "", tag)
    sub(/^.*\}/, "", name)
    name = trimmed(name)
    # "typedef struct tag {...} *name" makes a pointer's name, not the struct's.
    if (s !~ /^typedef/ || name ~ /\*/) name = "struct " tag
    print "struct " name
    count = split(body, fields, ";")
    for (i = 1; i <= count; i++)
        if (trimmed(fields[i]) != "") print "field " name " " field_name(fields[i])
}

function enumeration(s,    count, names, i) {
    sub(/^[^{]*\{/, "", s)
    sub(/\}.*$/, "", s)
    count = split(s, names, ",")
    for (i = 1; i <= count; i++) {
        sub(/=.*$/, "", names[i])
        if (trimmed(names[i]) != "") print "enumerator " trimmed(names[i])
    }
}

function declaration(s) {
    s = trimmed(s)
    gsub(/__attribute__ ?\(\( ?visibility ?\("default"\) ?\)\) ?/, "", s)
    sub(/ ?__attribute__ ?\(\( ?format ?\([^)]*\) ?\)\)/, "", s)
    s = trimmed(s)
    if (s == "") return
    if (s ~ /__attribute__/) fail(s)
    else if (s ~ /^(typedef )?struct [A-Za-z0-9_]* ?\{/) structure(s)
    else if (s ~ /^(typedef )?enum [A-Za-z0-9_]* ?\{/ || s ~ /^enum \{/) enumeration(s)
    else if (s ~ /^typedef /) return
    else if (s ~ /^[A-Za-z_].*\(.*\)$/ && s !~ /[{}=]/) {
        sub(/ ?\(.*$/, "", s)
        print "function " last_name(s)
    }
    else fail(s)
}

END {
    depth = 0
    from = 1
    for (at = 1; at <= length(text); at++) {
        c = substr(text, at, 1)
        if (c == "{") depth++
        if (c == "}") {
            depth--
            if (depth == 0 && trimmed(substr(text, from, at - from)) ~ /^static inline /) from = at + 1
        }
        if (c == ";" && depth == 0) {
            declaration(substr(text, from, at - from))
            from = at + 1
        }
    }
    if (trimmed(substr(text, from)) != "" || depth != 0) fail(substr(text, from, 200))
    exit failed
}
