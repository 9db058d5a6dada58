#!/usr/bin/env bash
# Who may include whom. Reads every #include of src and include/mc and fails on one that the tables below do not allow:
# an arrow that points the wrong way, a sibling, a header that belongs behind another. docs/architecture.md draws the
# same arrows.
#
# First it proves itself: planted files, one mistake each, must be found, and planted good ones must not.
set -euo pipefail
export LC_ALL=C

# check ROOT: prints one line for each include that is not allowed; nothing when all are.
check() {
    find "$1/src" "$1/include" -type f \( -name '*.cpp' -o -name '*.hpp' -o -name '*.h' -o -name '*.c' \) | sort |
        while read -r file; do
            awk -v path="${file#"$1"/}" '
                # Rooms a room sees, beside itself.
                function tables(   everything) {
                    sees["base"] = ""
                    sees["fiber"] = "base"
                    sees["sched"] = "base fiber"
                    sees["csp"] = sees["actor"] = sees["io"] = sees["sim"] = "base fiber sched"
                    sees["machine"] = "base"
                    everything = "base fiber sched csp actor io sim machine"
                    sees["compose"] = everything
                    sees["supervise"] = everything " compose"
                    sees["inspect"] = everything " compose supervise"
                    sees["abi"] = everything " compose supervise inspect"
                    sees["mcrt"] = ""
                    sees["hpp"] = "base"
                    sees["testing"] = "base fiber"
                    # Public headers a room sees beside mc/base.h, for types and constants; abi and mcrt see all.
                    own["fiber"] = "runtime.h inspect.h"
                    own["sched"] = "runtime.h inspect.h op.h scope.h sync.h"
                    own["csp"] = "csp.h"
                    own["actor"] = "actor.h"
                    own["machine"] = "machine.h bridge.h"
                    own["compose"] = "machine.h"
                    own["io"] = "io.h node.h cq.h op.h"
                    own["sim"] = "sim.h"
                    own["supervise"] = "supervisor.h"
                    own["inspect"] = "inspect.h"
                    # Headers of others that one place alone may include: a pattern of paths.
                    only["uv.h"] = "^src/io/"
                    only["rapidjson/writer.h"] = "^src/inspect/|^src/mcrt/descriptor_json\\.cpp$"
                    only["rapidjson/prettywriter.h"] = "^src/mcrt/failure\\.cpp$|_test\\.cpp$"
                    only["rapidjson/error/en.h"] = "^src/mcrt/descriptor_json\\.cpp$"
                    only["rapidjson/document.h"] = only["rapidjson/stringbuffer.h"] = \
                        "^src/mcrt/failure\\.cpp$|^src/mcrt/descriptor_json\\.cpp$|_test\\.cpp$"
                    only["CLI/CLI.hpp"] = "^src/mcrt/arguments\\.cpp$"
                    only["atomic"] = only["mutex"] = only["condition_variable"] = only["thread"] = \
                        only["shared_mutex"] = only["future"] = only["semaphore"] = only["barrier"] = only["latch"] = \
                        only["stop_token"] = "^src/base/sync[a-z_]*\\.[ch]pp$|^src/testing/systematic[a-z_]*\\.[ch]pp$"
                }
                function contains(list, word) { return index(" " list " ", " " word " ") != 0 }
                function bad(why) { print path ":" FNR ": " $0 "   <- " why }
                # A public header: its siblings, and headers that a C11 or C++11 compiler has.
                function public_header(name, quoted) {
                    if (name ~ /^mc\//) return
                    if (quoted && name !~ /\//) return
                    if (path ~ /\.h$/ && !contains("stdint.h stddef.h stdarg.h limits.h", name))
                        bad("a public C header includes C headers that define types, and no others")
                    else if (quoted || name ~ /\//)
                        bad("a public header includes public headers and the standard library alone")
                }
                function room_file(name, quoted,   target) {
                    if (name in only) {
                        if (path !~ only[name]) bad("belongs behind " only[name])
                        return
                    }
                    if (name ~ /^criterion\//) {
                        if (path != "src/testing/test.hpp") bad("tests include testing/test.hpp")
                        return
                    }
                    if (name ~ /^mc\//) {
                        if (!(room == "abi" || room == "mcrt" || is_test || name == "mc/base.h" ||
                              contains(own[room], substr(name, 4)))) bad("not a public header of this room")
                        return
                    }
                    target = name
                    sub(/\/.*/, "", target)
                    if (!(target in sees) || target == name) {
                        if (quoted) bad("write it as \"room/file.hpp\"")
                        return
                    }
                    if (!quoted) bad("a room is included in quotes")
                    else if (target == room || contains(sees[room], target)) return
                    else if (target == "testing" && is_test) return
                    # The one place where the library turns into its systematic twin.
                    else if (target == "testing" && path ~ /^src\/base\/sync\.[ch]pp$/) return
                    else bad(room " does not see " target)
                }
                BEGIN {
                    tables()
                    room = path
                    if (!sub(/^src\//, "", room)) room = ""
                    else if (!sub(/\/.*/, "", room)) { print path ": a source belongs into a room"; exit }
                    else if (!(room in sees)) { print path ": the table does not know room " room; exit }
                    is_test = path ~ /_test\.cpp$|\/test_[a-z_]*\.hpp$/ # tests, and what the tests of a room share
                }
                /^[ \t]*#[ \t]*include/ {
                    name = $0
                    sub(/^[ \t]*#[ \t]*include[ \t]*/, "", name)
                    quoted = name ~ /^"/
                    if (!sub(/^["<]/, "", name)) { bad("not a name in quotes or angle brackets"); next }
                    sub(/[">].*/, "", name)
                    if (name ~ /(^|\/)\.\.?\//) bad("relative")
                    else if (room == "") public_header(name, quoted)
                    else room_file(name, quoted)
                }' "$file"
        done
}

# plant PATH INCLUDE EXPECTED: a tree with that one file must get EXPECTED complaints (0 or 1).
planted=0
plant() {
    local found
    rm -rf "$tree"
    mkdir -p "$tree/src" "$tree/include" "$tree/$(dirname "$1")"
    printf '// a file\n%s\n' "$2" >"$tree/$1"
    found=$(check "$tree" | wc -l)
    if [[ $found != "$3" ]]; then
        printf 'the test itself is wrong: %s with %s: %s complaints, not %s\n' "$1" "$2" "$found" "$3"
        exit 1
    fi
    planted=$((planted + 1))
}

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

plant src/base/list.hpp '#include "base/assert.hpp"' 0
plant src/base/list.hpp '#include "fiber/stack.hpp"' 1
plant src/base/list.hpp '  #  include "sched/task.hpp"' 1
plant src/base/list.hpp '#include <mc/base.h>' 0
plant src/base/list.hpp '#include <mc/csp.h>' 1
plant src/base/list.hpp '#include <atomic>' 1
plant src/base/list.hpp '#include <vector>' 0
plant src/base/sync.hpp '#include <atomic>' 0
plant src/base/sync.cpp '#include <thread>' 0
plant src/base/sync.hpp '#include "testing/systematic_sync.hpp"' 0
plant src/base/list.hpp '#include "testing/systematic_sync.hpp"' 1
plant src/base/list_test.cpp '#include "testing/test.hpp"' 0
plant src/base/list_test.cpp '#include <criterion/criterion.h>' 1
plant src/base/list_test.cpp '#include <thread>' 1
plant src/base/list_test.cpp '#include "csp/channel.hpp"' 1
plant src/testing/test.hpp '#include <criterion/criterion.h>' 0
plant src/testing/systematic_ops.hpp '#include <atomic>' 0
plant src/testing/test_main.cpp '#include <mutex>' 1
plant src/testing/systematic.cpp '#include "csp/channel.hpp"' 1
plant src/fiber/context.cpp '#include <boost/context/detail/fcontext.hpp>' 0
plant src/fiber/context.cpp '#include "list.hpp"' 1
plant src/fiber/context.cpp '#include "../base/list.hpp"' 1
plant src/fiber/context.cpp '#include <base/list.hpp>' 1
plant src/fiber/context.cpp '#include CONTEXT_HEADER' 1
plant src/sched/executor.cpp '#include "fiber/context.hpp"' 0
plant src/sched/executor.cpp '#include "csp/channel.hpp"' 1
plant src/sched/executor.cpp '#include <mc/csp.h>' 1
plant src/sched/op_word.hpp '#include <mc/op.h>' 0
plant src/fiber/context.cpp '#include <mc/op.h>' 1
plant src/csp/channel.cpp '#include "sched/park.hpp"' 0
plant src/csp/channel.cpp '#include <mc/csp.h>' 0
plant src/csp/channel.cpp '#include "actor/mailbox.hpp"' 1
plant src/csp/channel.cpp '#include "abi/wall.hpp"' 1
plant src/csp/channel.cpp '#include <uv.h>' 1
plant src/io/loop.cpp '#include <uv.h>' 0
plant src/machine/table.cpp '#include "base/list.hpp"' 0
plant src/machine/table.cpp '#include "sched/task.hpp"' 1
plant src/compose/ask.cpp '#include "machine/table.hpp"' 0
plant src/compose/ask.cpp '#include "supervise/graph.hpp"' 1
plant src/supervise/graph.cpp '#include "compose/ask.hpp"' 0
plant src/inspect/trace.cpp '#include "supervise/graph.hpp"' 0
plant src/inspect/trace.cpp '#include "abi/wall.hpp"' 1
plant src/abi/csp.cpp '#include "csp/channel.hpp"' 0
plant src/abi/csp.cpp '#include "testing/test.hpp"' 1
plant src/abi/csp.cpp '#include <mc/mc.h>' 0
plant src/mcrt/main.cpp '#include "base/list.hpp"' 1
plant src/mcrt/main.cpp '#include <mc/mc.h>' 0
plant src/mcrt/main.cpp '#include <CLI/CLI.hpp>' 1
plant src/mcrt/arguments.cpp '#include <CLI/CLI.hpp>' 0
plant src/mcrt/failure.cpp '#include <rapidjson/document.h>' 0
plant src/mcrt/descriptor_json.cpp '#include <rapidjson/document.h>' 0
plant src/mcrt/descriptor_json.cpp '#include <rapidjson/writer.h>' 0
plant src/mcrt/descriptor_table.cpp '#include <rapidjson/writer.h>' 1
plant src/mcrt/main.cpp '#include "sim/schedule.hpp"' 1
plant src/mcrt/descriptor.cpp '#include <mc/machine.h>' 0
plant src/mcrt/descriptor.cpp '#include "machine/blob.hpp"' 1
plant src/machine/blob.hpp '#include <mc/machine.h>' 0
plant src/machine/blob.hpp '#include <mc/sim.h>' 1
plant src/mcrt/text_test.cpp '#include "testing/test.hpp"' 0
plant src/sim/recording.cpp '#include "mcrt/recording.hpp"' 1
plant src/cellar/wine.cpp '#include <vector>' 1
plant src/wine.cpp '#include <vector>' 1
plant include/mc/csp.h '#include "base.h"' 0
plant include/mc/csp.h '#include <stdint.h>' 0
plant include/mc/csp.h '#include <pthread.h>' 1
plant include/mc/csp.h '#include "base/list.hpp"' 1
plant include/mc/csp.hpp '#include <memory>' 0
plant include/mc/csp.hpp '#include <boost/any.hpp>' 1

wrong=$(check "$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)")
if [[ -n $wrong ]]; then
    printf '%s\n' "$wrong"
    exit 1
fi
printf '%s planted includes judged rightly, and none of the tree is wrong\n' "$planted"
