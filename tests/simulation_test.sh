#!/usr/bin/env bash
# That a program that knows nothing of simulation is simulated by the environment alone: linked with the shared library and with the
# archive; the same seed is the same output, others are others; what is not understood ends it before main.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/program.c" <<'TEXT'
#include <mc/csp.h>
#include <mc/runtime.h>
#include <stdio.h>
#include <stdlib.h>

static void *take(void *user, uint64_t size, uint64_t align) {
    (void)user;
    return aligned_alloc(align, (size + align - 1) / align * align);
}
static void give(void *user, void *memory, uint64_t size, uint64_t align) {
    (void)user, (void)size, (void)align;
    free(memory);
}

static int32_t speak(void *user) {
    mc_chan_t to = *(mc_chan_t *)user;
    for (int i = 0; i < 3; ++i) {
        int64_t said = (int64_t)(mc_random() % 1000);
        mc_send(to, &said);
        mc_sleep(MC_SEC);
    }
    return 0;
}

int main(void) {
    const mc_allocator allocator = {sizeof allocator, 0, take, give, NULL};
    mc_task_t tasks[3];
    mc_chan_t to;
    if (mc_set_allocator(&allocator) != MC_OK || csp_init_runtime(0) != 1 || mc_chan_create(0, 8, 0, NULL, NULL, &to) != MC_OK)
        return 1;
    for (int i = 0; i < 3; ++i)
        mc_spawn(0, speak, &to, NULL, &tasks[i]);
    for (int i = 0; i < 9; ++i) {
        int64_t heard = 0;
        mc_recv(to, &heard);
        printf("%lld ", (long long)heard);
    }
    for (int i = 0; i < 3; ++i)
        mc_join(tasks[i], MC_FOREVER, NULL);
    printf("%lld\n", (long long)mc_now());
    return mc_chan_destroy(to);
}
TEXT

compile() {
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror -I "$MCRT_SOURCE_DIR/include" "$work/program.c" "$@" -o "$work/program"
}

try() {
    local seed once
    for seed in 0 1 2 18446744073709551615; do
        once=$(MCRT_SEED=$seed MCRT_RECORD=$work/record "$work/program")
        [[ $(MCRT_SEED=$seed "$work/program") == "$once" ]]
        [[ $(head -c 8 "$work/record") == MCRTSIM1 ]]
        printf '%s\n' "$once"
    done | sort | uniq -c | { [[ $(wc -l) == 4 ]] || { echo "two seeds are one run"; exit 1; }; }
    # Without a seed three seconds of sleeps would be three seconds.
    [[ $(MCRT_SEED=1 MCRT_SCHEDULE= "$work/program") == "$(MCRT_SEED=1 MCRT_SCHEDULE= MCRT_POLICY=random "$work/program")" ]]
}

refused() { # refused VARIABLE VALUE
    local status=0
    env MCRT_SEED=1 "$1=$2" "$work/program" >"$work/out" 2>&1 || status=$?
    [[ $status == 125 && $(cat "$work/out") == "libmcrt: $1=$2 is not "* ]] || { echo "$1=$2: $status $(cat "$work/out")"; exit 1; }
}

# What is looked at at exit, where destructors and handlers of the program's own may still call.
cat >"$work/exits.cpp" <<'TEXT'
#include <mc/csp.h>
#include <mc/runtime.h>
#include <cstdlib>
#include <cstring>

static struct Global {
    mc_chan_t chan = 0;
    ~Global() {
        int64_t value = 0;
        if (chan != 0 && (mc_recv_try(chan, &value) != MC_OK || mc_chan_destroy(chan) != MC_OK))
            abort();
    }
} global;

static int32_t waits(void *chan) {
    int64_t value = 0;
    return mc_recv(*(mc_chan_t *)chan, &value);
}

int main(int, char **argv) {
    static mc_chan_t chan;
    int64_t value = 1;
    const bool leaves = strcmp(argv[1], "task") == 0;
    if (mc_chan_create(0, 8, leaves ? 0 : 4, nullptr, nullptr, &chan) != MC_OK)
        return 2;
    if (leaves)
        return mc_spawn(0, waits, &chan, nullptr, nullptr);
    if (strcmp(argv[1], "global") == 0)
        global.chan = chan;
    return mc_send(chan, &value);
}
TEXT

exits() {
    local status what
    ${CXX:-c++} -std=c++17 -Wall -Wextra -Werror -I "$MCRT_SOURCE_DIR/include" "$work/exits.cpp" "$@" -o "$work/exits"
    for what in message:134 task:134 global:0; do
        status=0
        (MCRT_SEED=1 MCRT_ORACLES=ledger,tasks exec "$work/exits" "${what%:*}") >"$work/out" 2>&1 || status=$?
        [[ $status == "${what#*:}" ]] || { echo "exit with a ${what%:*}: $status $(cat "$work/out")"; exit 1; }
        MCRT_SEED=1 "$work/exits" "${what%:*}"
    done
}

compile "$MCRT_LIBRARY" -Wl,-rpath,"$(dirname "$MCRT_LIBRARY")"
try
refused MCRT_SEED -1
refused MCRT_POLICY fair
refused MCRT_SCHEDULE 1:0
refused MCRT_ORACLES everything
refused MCRT_SIM_DELAY_MS soon
exits "$MCRT_LIBRARY" -Wl,-rpath,"$(dirname "$MCRT_LIBRARY")"
compile "$MCRT_ARCHIVE" -lstdc++ -pthread
try
exits "$MCRT_ARCHIVE" -pthread
echo "simulated by the environment alone, as a shared library and as an archive"
