#!/usr/bin/env bash
# The command mcrt: small programs with planted faults, which it must find, make short, repeat and draw; and programs with which it
# must not go on, hang, or leave anything behind.
set -u -o pipefail
export LC_ALL=C
unset "${!MCRT_SEED@}" MCRT_POLICY MCRT_SCHEDULE MCRT_RECORD MCRT_ORACLES MCRT_SIM_DELAY_MS

mcrt=${MCRT_BINARY_DIR:?}/mcrt
# shellcheck source=tests/lib/checks.bash
source "${MCRT_SOURCE_DIR:?}/tests/lib/checks.bash"

run() { # runs mcrt; leaves out, err, status
    "$mcrt" "$@" >out 2>err
    status=$?
}

status_is() { [[ $status == "$1" ]]; }
says() { grep -q -e "$1" out err; }
json() { python3 -c 'import json, sys; value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]: value = value[key]
print(value)' "$@"; }
something_runs() { pgrep -f "^$work/"; }
nothing_runs() { ! something_runs; }

# program NAME: compiles its standard input.
program() {
    {
        printf '#include <mc/mc.h>\n#include <mc/sim.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n'
        printf '#define UNUSED(x) ((void)(x))\n'
        cat
    } >"$1.c"
    cc -std=gnu11 -O1 -I"$MCRT_SOURCE_DIR/include" "$1.c" -o "$1" "$MCRT_LIBRARY" -Wl,-rpath,"$(dirname "$MCRT_LIBRARY")" || exit 1
}

# --- programs ---------------------------------------------------------------------------------------------------------------

# Check, then act: each looks before either has taken. Where nobody is preempted, one comes after the other.
program race <<'C' &
static int balance = 100;
static mc_chan_t asks;
static mc_mutex_t lock;
static int32_t bank(void *user) {
    for (int question; mc_recv(asks, &question) == MC_OK;)
        mc_sim_note("is asked");
    return user != NULL;
}
static int look(void) {
    mc_mutex_lock(lock);
    const int left = balance;
    mc_mutex_unlock(lock);
    return left;
}
static int32_t draw(void *user) {
    const int amount = *(int *)user;
    for (int i = 0; i < 5; ++i)
        mc_send(asks, &i);
    if (look() < amount)
        return 0;
    mc_mutex_lock(lock);
    balance -= amount;
    if (balance < 0)
        mc_sim_fail("the balance is below 0: -60");
    return mc_mutex_unlock(lock);
}
int main(int argc, char **argv) {
    int amount = argc > 1 ? atoi(argv[1]) : 80;
    mc_task_t tasks[3];
    mc_spawn_options options = MC_SPAWN_OPTIONS_INIT;
    csp_writer writer;
    mc_mutex_create(0, &lock);
    mc_chan_create(0, sizeof(int), 0, NULL, NULL, &asks);
    mc_chan_writer(asks, &writer);
    csp_chdescr(writer, "asks");
    csp_writer_release(writer);
    options.name = "bank";
    mc_spawn(0, bank, NULL, &options, &tasks[0]);
    options.name = "alice & <bob>";
    mc_spawn(0, draw, &amount, &options, &tasks[1]);
    mc_spawn(0, draw, &amount, &options, &tasks[2]);
    mc_join(tasks[1], MC_FOREVER, NULL);
    mc_join(tasks[2], MC_FOREVER, NULL);
    printf("left %d in %s\n", balance, getenv("MCRT_SEED"));
    return mc_chan_destroy(asks);
}
C

# Some seeds end with a status, some by a signal.
program ends <<'C' &
int main(int argc, char **argv) {
    mc_yield();
    const uint32_t chosen = mc_sim_choose(40);
    printf("\033[31mchose %u\377\n", chosen);
    fflush(stdout);
    if (argc > 1 && chosen == 7)
        abort();
    UNUSED(argv);
    return argc == 1 && chosen == 9 ? 3 : 0;
}
C

program deadlock <<'C' &
static mc_mutex_t first, second;
static int32_t locks(void *user) {
    mc_mutex_t a = user == NULL ? first : second, b = user == NULL ? second : first;
    if (mc_mutex_lock(a) == MC_OK && mc_mutex_lock(b) == MC_OK) {
        mc_mutex_unlock(b);
        mc_mutex_unlock(a);
    }
    return 0;
}
int main(void) {
    mc_task_t tasks[2];
    mc_mutex_create(0, &first);
    mc_mutex_create(0, &second);
    mc_spawn(0, locks, NULL, NULL, &tasks[0]);
    mc_spawn(0, locks, &first, NULL, &tasks[1]);
    mc_join(tasks[0], MC_FOREVER, NULL);
    mc_join(tasks[1], MC_FOREVER, NULL);
    return 0;
}
C

# Two workers of two steps each, behind one that is out of the way before it begins to count.
program steps <<'C' &
static int32_t nothing(void *user) { return user != NULL; }
static int32_t worker(void *user) {
    const char *name = user;
    mc_chan_t own;
    mc_chan_create(0, 1, 4, NULL, NULL, &own);
    for (int i = 0; i < 2; ++i) {
        fputs(name, stdout);
        mc_send(own, name);
    }
    fputs(name, stdout);
    return mc_chan_destroy(own);
}
int main(void) {
    mc_task_t a, b;
    mc_spawn(0, nothing, NULL, NULL, &a);
    mc_join(a, MC_FOREVER, NULL);
    mc_spawn(0, worker, "a", NULL, &a);
    mc_spawn(0, worker, "b", NULL, &b);
    mc_join(a, MC_FOREVER, NULL);
    fputs("m", stdout);
    mc_join(b, MC_FOREVER, NULL);
    return 0;
}
C

program choices <<'C' &
int main(void) {
    mc_yield();
    const uint32_t first = mc_sim_choose(3);
    printf("%u%u\n", first, first == 2 ? 9 : mc_sim_choose(4));
    return 0;
}
C

# What it sends to whom is decided by the time of day, forty times.
program uncontrolled <<'C' &
#include <time.h>
static mc_chan_t left, right;
static int32_t sends(void *user) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    mc_send((now.tv_nsec / 64) % 2 != 0 ? left : right, user);
    return 0;
}
int main(void) {
    csp_writer writer;
    mc_chan_create(0, sizeof(int), 64, NULL, NULL, &left);
    mc_chan_create(0, sizeof(int), 64, NULL, NULL, &right);
    mc_chan_writer(left, &writer);
    csp_chdescr(writer, "left");
    mc_chan_writer(right, &writer);
    csp_chdescr(writer, "right");
    for (int i = 0; i < 40; ++i) {
        mc_task_t task;
        mc_spawn(0, sends, &i, NULL, &task);
        mc_join(task, MC_FOREVER, NULL);
    }
    return 0;
}
C

# Never ends; what it has started does not either, and one of that has left the process group.
program spins <<'C' &
static int32_t nothing(void *user) { return user != NULL; }
int main(void) {
    mc_task_t task;
    mc_spawn(0, nothing, NULL, NULL, &task);
    mc_join(task, MC_FOREVER, NULL);
    for (int i = 0; i < 2; ++i)
        if (fork() == 0) {
            if (i == 1) {
                setsid();
                if (fork() != 0)
                    _exit(0);
            }
            for (;;)
                pause();
        }
    for (volatile unsigned i = 0;; ++i)
        if (i % 1000000 == 0)
            puts("and so on");
}
C

# The fifth run of all fails: by a file, which is none of the library's.
program fifth <<'C' &
static int32_t nothing(void *user) { return user != NULL; }
int main(void) {
    mc_task_t task;
    mc_spawn(0, nothing, NULL, NULL, &task);
    mc_join(task, MC_FOREVER, NULL);
    FILE *file = fopen("runs", "a");
    fputc('.', file);
    return ftell(file) == 5 ? 4 : fclose(file);
}
C

# Says what it was called with, and fails.
program args <<'C' &
int main(int argc, char **argv) {
    mc_yield();
    for (int i = 1; i < argc; ++i)
        printf("<%s>\n", argv[i]);
    return 3;
}
C

# By its schedule alone it ends whoever started it.
program interrupts <<'C' &
#include <signal.h>
int main(void) {
    mc_yield();
    const uint32_t chosen = mc_sim_choose(4);
    if (getenv("MCRT_SCHEDULE") != NULL) {
        kill(getppid(), SIGINT);
        for (;;)
            pause();
    }
    return chosen == 3 ? 3 : 0;
}
C

# By its schedule alone it ends well, with the same choices; or with other ones, when it has an argument.
program unlike <<'C' &
int main(int argc, char **argv) {
    mc_yield();
    UNUSED(argv);
    const int alone = getenv("MCRT_SCHEDULE") != NULL;
    mc_sim_choose(alone && argc > 1 ? 5 : 4);
    return alone ? 0 : 3;
}
C

# Its runs are counted in a file. From the argument's run on, it makes one step more; in an exhaustive search it may choose from more.
program later <<'C' &
static int32_t nothing(void *user) { return user != NULL; }
int main(int argc, char **argv) {
    mc_task_t task;
    FILE *file = fopen("runs", "a");
    fputc('.', file);
    const long run = ftell(file);
    fclose(file);
    const int other = argc > 1 && run >= atol(argv[1]);
    mc_yield();
    mc_sim_choose(2);
    mc_sim_choose(other ? 3 : 2);
    if (other) {
        mc_spawn(0, nothing, NULL, NULL, &task);
        mc_join(task, MC_FOREVER, NULL);
    }
    return 0;
}
C

# Fails at once when it is explored; repeated, it says who it is and stays.
program stays <<'C' &
int main(void) {
    mc_yield();
    if (access("stay", F_OK) != 0)
        return 3;
    FILE *file = fopen("stays.new", "w");
    fprintf(file, "%d", (int)getpid());
    fclose(file);
    rename("stays.new", "stays.pid");
    for (;;)
        pause();
}
C

program slow <<'C' &
static int32_t nothing(void *user) { return user != NULL; }
int main(void) {
    mc_task_t task;
    mc_spawn(0, nothing, NULL, NULL, &task);
    mc_join(task, MC_FOREVER, NULL);
    usleep(20 * 1000);
    return 0;
}
C

program stranger <<'C' &
int main(void) {
    puts("no need of a library");
    return (int)(mc_abi_version() & 0);
}
C
wait
printf '#!/bin/sh\necho hello\n' >script && chmod +x script
printf 'nothing\n' >data

# --- a race -----------------------------------------------------------------------------------------------------------------

run explore ./race --seeds 2000 --jobs 2 --out found
check "a race is found" status_is 1
check "and named" says 'failed: mc_sim_fail: the balance is below 0'
check "the commands are there" says '^  mcrt replay found/failure.json$'
check "one or two deviations are left" [ "$(json found/failure.json schedule | grep -o : | wc -l)" -le 2 ]
check "which are a preemption, or two" [ "$(json found/failure.json preemptions)" -ge 1 -a "$(json found/failure.json preemptions)" -le 2 ]
check "of many" [ "$(sed -n 's/^Its schedule is down from \([0-9]*\) deviation.*/\1/p' out)" -gt 4 ]
cp found/failure.json first.json
run explore --jobs 1 --seeds=2000 --out found1 -- ./race
check "one at a time finds the same seed" [ "$(json first.json seed)" = "$(json found1/failure.json seed)" ]

run replay found/failure.json --record again
check "it is repeated" says 'libmcrt: simulation of seed .* failed .*: the balance is below 0: -60'
check "with the program's status" status_is 134
check "and nothing else is said" [ "$(wc -l <err)" = 2 ]
command=$(sed -n 's/^  \(MCRT_SEED=.*\)$/\1/p' <(run explore ./race --seeds 2000 --out found && cat out))
check "so it is from a shell" grep -q 'below 0' <(eval "$command" 2>&1)
sed 's/"signature": "0x..../"signature": "0xffff/' first.json >other.json
run replay other.json
check "another signature is another run" says 'this is not the same run'

# --- under a debugger, which is asked here only what it was given --------------------------------------------------------------

mkdir asked && printf '#!/bin/sh\nprintf "<%%s>" "$@"\n' >asked/gdb && chmod +x asked/gdb
in_gdb() { PATH=$work/asked:$PATH run replay "$1" --gdb; } # in_gdb FAILURE
in_gdb found/failure.json
check "gdb gets the program, and its variables" says "^<-ex><set environment MCRT_RECORD .*<--args><$work/race>\$\|^<-ex>.*<set environment MCRT_SEED [0-9]*>.*<--args><$work/race>\$"
check "and nothing is said of scripts" [ ! -s err ]
printf '#! %s/sh  -e \nexec ./race "$@"\n' "$work" >runs_race && chmod +x runs_race && ln -s /bin/sh sh
run explore --seeds 2000 --out scripted -- ./runs_race
in_gdb scripted/failure.json
check "of a script it gets the interpreter" says "<--args><$work/sh><-e><$work/runs_race>\$"
check "which is said" grep -q "^mcrt: .*runs_race is a script: gdb gets its interpreter, $work/sh," err
printf '#!%s/runs_race\n' "$work" >runs_race_twice && chmod +x runs_race_twice
sed "s|runs_race|runs_race_twice|g" scripted/failure.json >twice.json
in_gdb twice.json
check "and of a script's script" says "<--args><$work/sh><-e><$work/runs_race><$work/runs_race_twice>\$"
rm sh
in_gdb scripted/failure.json
check "an interpreter that is not there is named" says "its interpreter $work/sh: No such file"
check "and gdb is not started" status_is 2
printf 'exec ./race\n' >runs_race
in_gdb scripted/failure.json
check "a script that names none is refused" says '^mcrt: gdb cannot debug .*runs_race: it is no program, and no script'
check "likewise" status_is 2
printf '#!%s/runs_race\n' "$work" >runs_race
in_gdb scripted/failure.json
check "a script that names itself is refused" status_is 2

run draw again
check "a recording is drawn as text" says 'alice & <bob>#[23]  .*sends to channel 1 "asks" -> bank$'
check "the end too" says '^! mc_sim_fail: the balance is below 0'
run draw again --svg again.svg
check "and as a picture" [ -s again.svg ]
python3 - again.svg found/failure.svg >out <<'PY'
import sys, xml.etree.ElementTree as tree
for path in sys.argv[1:]:
    texts = [text[0].tail if len(text) else text.text for text in tree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    lanes = {text for text in texts if text in ("main", "bank")} | {text for text in texts if text.startswith("alice & <bob>")}
    numbers = [text for text in ("0", "1", "2", "3") if text in texts]
    print(len(lanes), len(numbers), sum("the balance is below 0" in text for text in texts))
PY
check "each task has its lane, and what is wrong is there" [ "$(sort -u out)" = "3 4 1" ]

run explore ./race 40 --seeds 100
check "no seed fails" status_is 0
check "which is said" says '^no seed failed: 100 seeds, '
check "and nothing is written" [ ! -e mcrt-out ]
run explore --seeds 5 --keep-output --out kept -- ./race 40
check "what runs print is kept" [ "$(cat kept/output/*.txt | grep -c '^left 20 in [1-5]$')" = 5 ]
MCRT_SCHEDULE=junk MCRT_SEED=x run explore ./race 40 --seeds 3
check "the environment's simulation does not interfere" status_is 0

# --- other failures ---------------------------------------------------------------------------------------------------------

run explore ./ends --seeds 1000 --out found
check "a status is a failure" says 'failed: exit status 3'
check "what was printed is there, without what a terminal would obey" grep -q 'chose 9' <(tr -d '\200-\377' <out)
check "without its escape" [ "$(grep -c $'\033' out)" = 0 ]
run replay found/failure.json
check "it is repeated with its status" status_is 3
run explore ./ends 1 --seeds 1000 --out found
check "a signal is a failure" says 'failed: killed by signal 6'
check "its schedule is one choice" [ "$(json found/failure.json schedule)" = 0:7 ]
run explore ./ends 1 --seeds 1000 --no-shrink --out found
check "a schedule may stay as it is" status_is 1

run explore ./deadlock --seeds 2000 --out found
check "a deadlock is a failure" says 'failed: deadlock'
check "it takes at most two preemptions" [ "$(json found/failure.json preemptions)" -le 2 ]
run replay found/failure.json
check "though the program goes on" status_is 0

run explore ./race --policy exhaustive:0 --seeds 100
check "without preemptions the race is none" status_is 0
run explore ./race --policy exhaustive:1 --seeds 5000 --out found
check "exhaustive search finds the race" says '^schedule .* of seed 1 failed: mc_sim_fail'

# --- all schedules ------------------------------------------------------------------------------------------------------------

# Main waits for a, with b beside it: a first, then main or b; or b first, then a. Nobody is preempted.
run explore ./steps --policy exhaustive:0
check "three schedules without a preemption" says 'these are all 3 schedules of seed 1 with at most 0 preemptions'
run explore ./choices --policy exhaustive:0
check "nine choices of the program's" says 'these are all 9 schedules'
run explore ./steps --policy exhaustive:0 --seeds 3
check "also when there may be no more runs" says 'these are all 3 schedules'
run explore ./steps --policy exhaustive:2 --seeds 20
check "an end that is not the end is told" says 'there are more'

# Another enumeration: every schedule by itself, from what its run had to choose from.
cat >reference.py <<'PY'
import os, struct, subprocess, sys
program, most = sys.argv[1], int(sys.argv[2])
def run(deviations):
    schedule = ",".join("%d:%d" % one for one in sorted(deviations.items()))
    environment = dict(os.environ, MCRT_SEED="1", MCRT_SCHEDULE=schedule, MCRT_RECORD="reference.recording")
    subprocess.run([program], env=environment, stdout=subprocess.DEVNULL, check=True)
    with open("reference.recording", "rb") as file:
        count, at = (struct.unpack("<Q", (file.seek(offset), file.read(8))[1])[0] for offset in (56, 88))
        return [struct.unpack("<4H", (file.seek(at + 8 * i), file.read(8))[1]) for i in range(count)]
seen, todo = set(), [{}]
while todo:
    deviations = todo.pop()
    key = tuple(sorted(deviations.items()))
    if key in seen:
        continue
    choices = run(deviations)
    assert all((choice[1] or None) == deviations.get(i) for i, choice in enumerate(choices))
    if sum(choice[1] != 0 and choice[2] == 0 and choice[3] & 1 for choice in choices) > most:
        continue
    seen.add(key)
    todo += [{**{k: v for k, v in deviations.items() if k < i}, i: taken} for i, choice in enumerate(choices) for taken in range(1, choice[0])]
print(len(seen))
PY
wanted=$(python3 reference.py ./steps 2)
check "there are some" [ "$wanted" -gt 50 ]
run explore ./steps --policy exhaustive:2 --seeds 100000 --keep-output --out all
check "all $wanted schedules" says "these are all $wanted schedules of seed 1 with at most 2 preemptions"
check "each has ended" [ "$(cat all/output/*.txt | wc -c)" = $((7 * wanted)) ]

# --- what is kept, and where --------------------------------------------------------------------------------------------------

run explore ./interrupts --seeds 1000 --out interrupted
check "an interrupted shrinking" status_is 130
check "has said what was found" says '^seed [0-9]* failed: exit status 3'
check "and written it down" [ "$(json interrupted/failure.json replay_by)" = policy ]
check "with its picture" [ -s interrupted/failure.svg -a -s interrupted/failure.txt ]
run explore ./args $'\e[31mred\nnl' --seeds 5 --out odd
second=$(python3 -c 'import json; print(json.load(open("odd/failure.json"))["arguments"][1])')
check "control characters stay what they are" [ "$second" = $'\e[31mred\nnl' ]
check "and are not printed" [ "$(grep -c $'\e' out)" = 0 ]
line=$(sed -n 's/^  \(MCRT_SEED=.*\)/\1/p' out)
check "the line for a shell has them" [ "$(bash -c "$line; :" 2>/dev/null)" = "<$second>" ]
run explore ./args $'\xff' --seeds 5 --out odd
check "of what JSON can not hold one is told" says 'is no UTF-8: failure.json can not keep it'
for numbers in "--seeds -1" "--seeds 99999999999999999999" "--seeds 010" "--first-seed -3" "--timeout nan" "--max-delay -5"; do
    run explore ./ends $numbers
    check "$numbers is refused" status_is 2
    check "and why is told" says "not ${numbers#* }"
done
run foo
check "foo is no command" says '^mcrt: foo is no command'
run replay .
check "nor is a directory a failure" says 'a directory; the file in it is failure.json'
mkfifo fifo
run draw fifo
check "nor a FIFO a recording" says 'no recording of a simulated run'
run explore ./ends --out ""
check "no directory is no place" status_is 2
check "nor is it this way" [ ! -e /failure.json ]
run explore ./ends --out=
check "or so" status_is 2
run explore ./ends --seeds 1000 --out data/below
check "where nothing can be written, a failure is one" status_is 1
check "which is told" says '^mcrt: cannot write data/below/failure.json'
check "once" [ "$(grep -c '^mcrt: cannot write' err)" = 1 ]
check "no file is named that is not there" [ "$(grep -c 'data/below' out)" = 0 ]
check "the line for a shell is" says '^  MCRT_SEED=[0-9]* .*\./ends$'
check "stars are explained" says '(\* marks deviations):$'

# --- what can not be explored -------------------------------------------------------------------------------------------------

run explore ./uncontrolled --seeds 50
check "a clock that decides is found" status_is 3
check "and where" says 'two runs of seed 1 differ at event [0-9]*:'
check "and what it did" says 'run: task#.* puts message .* into channel [12] "\(left\|right\)"'
run explore ./fifth --seeds 20 --jobs 1 --out found
check "a failure that does not come again" status_is 3
check "is told" says 'failed: exit status 4'
check "with what differs" says '^  the second run: it ended well$'
run explore ./unlike --seeds 10 --out found
check "the same choices with another end" status_is 3
check "are told apart from a policy's doing" says '^It does not fail so each time'
run explore ./unlike other --seeds 10 --out found
check "other choices by the schedule alone" status_is 1
check "are the policy's doing" says 'the seed with its policy does'
rm -f runs
run explore ./later 12 --seeds 16 --jobs 1
check "what differs later" status_is 3
check "is found where a seed is run twice" says 'two runs of seed 8 differ at '
rm -f runs
run explore ./later 100 --seeds 20 --jobs 1
check "seeds that are run twice count once" says '^no seed failed: 20 seeds, '
check "the first, those of powers of two, and the last" [ "$(wc -c <runs)" = 26 ]
rm -f runs
run explore ./later 4 --policy exhaustive:0 --jobs 1
check "a schedule that is not followed" status_is 3
check "is named, with the choice" says "a run of schedule '*1:1'* of seed 1 had another choice 1 than"
run explore ./stranger
check "a program that makes no step" status_is 2
check "is told so" says 'made no step'
run explore ./script
check "a program without the library" status_is 2
check "is told so, with what it printed" says '^hello$'
run explore ./missing
check "a program that is not there" status_is 2
run explore ./data
check "a program that is no program" status_is 2
run explore no-such-program-anywhere
check "nor in PATH" says 'not found in PATH'
run explore ./race --oracles junk
check "what the library does not accept" status_is 2
check "is its message" says 'libmcrt: MCRT_ORACLES=junk is not'
for arguments in "explore" "explore --seeds" "explore --seeds x ./race" "explore --seeds 0 ./race" "explore --policy pct:0 ./race" \
    "explore --policy other ./race" "explore --bogus ./race" "explore --jobs 0 ./race" "replay" "replay missing.json" "replay data" \
    "draw" "draw data" "draw missing" "bogus" ""; do
    # shellcheck disable=SC2086 # words on purpose
    run $arguments
    check "usage: mcrt $arguments" status_is 2
done
run --version
check "the version" says '^mcrt [0-9]*\.[0-9]*$'
run explore --help
"$mcrt" draw again >/dev/full 2>err
check "what can not be written is told" [ $? = 2 ]
check "help" says '^Usage: mcrt explore PROGRAM'

# --- nothing is left ----------------------------------------------------------------------------------------------------------

cp "$(command -v sleep)" sleeps
"$work/sleeps" 30 &
sleep 0.1
check "what runs would be seen" something_runs >/dev/null
kill $!
wait $! 2>/dev/null
run explore "$work/spins" --timeout 0.4 --seeds 4 --no-shrink --out found
check "what never ends is ended" says 'failed: it did not end within the time limit'
check "with all that it has started" nothing_runs

# replayed_and_ended: what it runs ends with a replay that is ended.
replayed_and_ended() {
    (
        touch stay
        "$mcrt" replay stays/failure.json >out 2>err &
        mcrt_pid=$!
        for _ in $(seq 200); do
            [[ ! -s stays.pid ]] || break
            sleep 0.05
        done
        kill -TERM $mcrt_pid
        wait $mcrt_pid
        for _ in $(seq 200); do
            [[ -e /proc/$(cat stays.pid)/exe ]] || exit 0
            sleep 0.05
        done
        kill -KILL "$(cat stays.pid)"
        exit 1
    ) 2>/dev/null
}
run explore ./stays --seeds 2 --out stays
check "a replay that is ended leaves nothing" replayed_and_ended

# interrupted SIGNAL STATUS: while programs run. The place of their recordings is in their environment.
interrupted() {
    (
        scratch=
        set -m # or the shell would have it ignore SIGINT
        "$mcrt" explore "$work/slow" --seeds 100000 --jobs 2 >out 2>err &
        mcrt_pid=$!
        for _ in $(seq 100); do
            child=$(pgrep -P $mcrt_pid | head -n 1)
            [[ -z $child ]] || scratch=$(tr '\0' '\n' 2>/dev/null <"/proc/$child/environ" | sed -n 's/^MCRT_RECORD=\(.*\)\/[^/]*$/\1/p')
            [[ -z $scratch ]] || break
            sleep 0.05
        done
        [[ -d $scratch ]] || { echo "no place of recordings: $scratch" >>err; exit 1; }
        kill "-$1" $mcrt_pid
        wait $mcrt_pid
        ended=$?
        grep -q '^mcrt: interrupted: [0-9,]* seeds\?, ' err || { echo "no figures" >>err; exit 1; }
        [[ $ended == "$2" && ! -e $scratch ]] || { echo "ended with $ended; $(ls -d "$scratch" 2>&1)" >>err; exit 1; }
    ) 2>/dev/null # the shell tells of each job
}
check "SIGINT leaves nothing" interrupted INT 130
check "SIGTERM leaves nothing" interrupted TERM 143
check "no process either" nothing_runs

echo "$((checks - failures)) passed, $failures failed"
[[ $failures == 0 ]]
