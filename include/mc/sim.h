/* mc/sim.h: simulation. A program whose concurrency goes through this library runs on one thread, in virtual time, with every
 * choice of its schedule drawn from a seed: the same seed is the same run, and another one is another schedule.
 *
 * Success: MC_OK (0) or a negative MC_E_* code. Out-parameters are written on success only.
 *
 * A process is simulated, all of it and for all of its life, when the environment has MCRT_SEED=n as the library is loaded, or
 * when the first call that needs the library is mc_runtime_create with MC_MODE_SIMULATION. Nothing is recompiled. The command
 * mcrt (mcrt explore, mcrt replay) looks for the seed that fails, makes its schedule short, and draws it.
 *
 * What holds in a simulated process:
 *   - The first thread that calls the library owns every runtime and runs all microthreads; calls of other threads that need a
 *     runtime return MC_E_SIM. csp_init_runtime, mc_runtime_create and mc_runtime_start work as always and start no thread.
 *   - A schedule is any order in which executors could run the tasks: the order that single-processor mode promises is not kept.
 *     Another task may go on at each call that may wait, at each spawn, and where a mutex is unlocked; with more than one
 *     executor asked for (csp_init_runtime or mc_runtime_create with anything but 1) also before calls that never wait, but for
 *     those that only tell something: time, random numbers, handles, names, counters, and those of this header.
 *   - Time is virtual. It starts at 1 second, goes on by a microsecond with each step and by 100 nanoseconds with mc_now, and when
 *     nothing is runnable it jumps to the next deadline. It may also jump while tasks are runnable, as if they were slow, to a
 *     deadline that is at most MCRT_SIM_DELAY_MS (100) milliseconds away; and to the next one, however far, when all that tasks
 *     have done for 1,000 turns is to give them up (mc_yield).
 *   - mc_now, mc_random and the choices of csp_alt are drawn from the seed; ids count up in the order of creation; no pointer's
 *     value decides anything. A quantum is over after quantum_reductions calls, whatever time they took.
 *   - mc_blocking_call runs the function on a microthread of its own with a large stack.
 *   - Nobody outside can end a wait: what waits for ever is a deadlock, whatever mc_runtime_hold says.
 *   - What the simulator itself needs comes from the C++ run-time library's operator new, whatever mc_set_allocator says; without
 *     memory for that the process ends by abort(). Stacks are 64 KiB at least, since it runs there.
 * What the program itself takes from elsewhere (clocks, random numbers, files, addresses, threads of its own) is not controlled:
 * then two runs of one seed differ, which `mcrt explore` detects and says where.
 */
#ifndef MC_SIM_H
#define MC_SIM_H

#include "base.h"

MC_EXTERN_C_BEGIN

/* 1 in a simulated process, else 0. Blocks: never. Threads: any. Calls back: no. */
MC_API int32_t mc_sim_active(void) MC_NOEXCEPT;

/* The seed, how many scheduling steps there have been, and a number that two runs share when the same things have happened in them
 * in the same order, whatever their seeds, with the same version of the library (others may share it by chance, once in 2^64).
 * 0 outside simulation.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API uint64_t mc_sim_seed(void) MC_NOEXCEPT;
MC_API uint64_t mc_sim_steps(void) MC_NOEXCEPT;
MC_API uint64_t mc_sim_signature(void) MC_NOEXCEPT;

/* What a program says when something is wrong that it can see: the text is recorded and written to standard error, with the seed
 * in simulation, and the process ends by abort(). In and outside simulation. NULL is an empty text.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API void mc_sim_fail(const char *text) MC_NOEXCEPT;

/* A mark in the calling task's lane of the picture. Nothing outside simulation.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API void mc_sim_note(const char *text) MC_NOEXCEPT;

/* A choice of the program's own, one of [0, n), that explorers explore as they do the schedule: whether a message is lost, which
 * server answers first. Outside simulation, and on other threads, it is random. n 0 is 1; above 65,535 it is that.
 * Blocks: never. Threads: any. Calls back: no. */
MC_API uint32_t mc_sim_choose(uint32_t n) MC_NOEXCEPT;

/* What a simulated run is checked for, beside what the program says; when it does not hold, the run fails as by mc_sim_fail.
 * LEDGER: what a channel accepted into its buffer was received from it, or dropped by its drop function. Looked at when the channel
 *   is gone, and at exit.
 * FIFO: what was put into a channel comes out unchanged and in that order.
 * NO_TASK_LEFT: at exit every microthread has ended.
 * BOUNDED_WAIT: nobody waits for more than bound steps to send, or for a mutex, a semaphore or a read-write lock.
 *   (Runnable tasks have their turn in time then, whatever the policy. One that was woken and finds the mutex taken again waits
 *   anew.) bound 0: 100,000; 16 or more is sensible. The last one given holds.
 * The environment may ask for the same: MCRT_ORACLES=ledger,fifo,tasks,wait or wait:BOUND. Calls add to what is checked.
 * MC_E_INVAL: other bits. MC_E_SIM: not the simulated thread. MC_OK also outside simulation, where nothing is checked.
 * Blocks: never. Threads: any. Calls back: no. */
enum { MC_SIM_LEDGER = 1, MC_SIM_FIFO = 2, MC_SIM_NO_TASK_LEFT = 4, MC_SIM_BOUNDED_WAIT = 8 };
MC_API int32_t mc_sim_oracles(uint32_t oracles, uint64_t bound) MC_NOEXCEPT;

/* --- choices ---
 *
 * A run is a list of choices, counted from 0: each has a number of candidates, of which one is taken. Candidate 0 is what happens when
 * nothing is explored: the running task goes on, or the one that has been runnable for longest; of an alt the first arm. A schedule
 * is written as the choices that took something else: "17:2,45:1" takes candidate 2 at choice 17 and 1 at choice 45. One that names a
 * candidate that is not there takes 0.
 *
 * In the environment of a simulated process:
 *   MCRT_SEED=n          0 to 2^64 - 1
 *   MCRT_POLICY=random   each choice at random, with a bias for the running task that differs from seed to seed
 *   MCRT_POLICY=pct:D    priorities that change at D - 1 random steps: finds every bug that needs D orderings with a known
 *                        probability (Burckhardt, Kothari, Musuvathi and Nagarakatte, 2010)
 *   MCRT_POLICY=mix      the usual: random for even seeds, pct:3 for odd ones
 *   MCRT_SCHEDULE=S      this schedule, and else candidate 0; @FILE: the first line of a file
 *   MCRT_RECORD=FILE     a recording, see below
 * A value that is not understood ends the process with status 125 and a line that says so, before main. */

/* --- recordings ---
 *
 * A file, mapped while the program runs, so that it is there however the program ends: a header, the choices, the events. What is
 * beyond the room is counted and not recorded. Numbers are in the machine's byte order. One process writes it: another that is
 * started meanwhile with the same MCRT_RECORD says so and is simulated without a record, and so is a forked child. */

#define MC_SIM_MAGIC "MCRTSIM1"
#define MC_SIM_HEADER_BYTES 4096

/* How a recorded run ended: DIED when it did not come to its exit. */
enum { MC_SIM_DIED = 0, MC_SIM_ENDED = 1 };
/* What is wrong with it: nothing that was recorded; mc_sim_fail; a deadlock was reported (the program may have gone on); an oracle. */
enum { MC_SIM_FINE = 0, MC_SIM_FAILED = 1, MC_SIM_DEADLOCK = 2, MC_SIM_ORACLE = 3 };

typedef struct mc_sim_recording {
    char magic[8];         /* MC_SIM_MAGIC, without its 0 */
    uint32_t header_bytes; /* MC_SIM_HEADER_BYTES */
    uint32_t version;      /* mc_abi_version() */
    uint64_t seed;
    uint32_t state;   /* MC_SIM_DIED, MC_SIM_ENDED */
    uint32_t failure; /* MC_SIM_FINE, ... */
    uint64_t signature;
    uint64_t steps;
    int64_t now_ns;        /* virtual */
    uint64_t choices;      /* that there were */
    uint64_t events;       /* likewise */
    uint64_t choices_room; /* of which at most so many are in the file */
    uint64_t events_room;
    uint64_t choices_at; /* offsets in the file, of mc_sim_choice and mc_sim_event */
    uint64_t events_at;
    char policy[64];
    char message[1024]; /* what is wrong, in words */
} mc_sim_recording;

enum { MC_SIM_CHOICE_TASK = 0, MC_SIM_CHOICE_ARM = 1, MC_SIM_CHOICE_PROGRAM = 2 };
/* Flags. RUNNING: candidate 0 is the task that runs, so that any other is a preemption. TIME: the last candidate lets time jump to
 * the next deadline. */
enum { MC_SIM_CHOICE_RUNNING = 1, MC_SIM_CHOICE_TIME = 2 };
typedef struct mc_sim_choice {
    uint16_t candidates; /* 2 or more */
    uint16_t taken;
    uint16_t kind;
    uint16_t flags;
} mc_sim_choice;

/* Events. task: the id of who does it, 0 for the thread that owns the runtimes, MC_SIM_CLOCK for timers. object: a channel or mutex, by
 * number, from 1. value and peer: as it says. */
#define MC_SIM_CLOCK UINT64_MAX
enum {
    MC_SIM_SPAWN = 1, /* task starts peer; text: its name */
    MC_SIM_NAME = 2,  /* task is called text */
    MC_SIM_END = 3,   /* task has ended; value: its result */
    MC_SIM_RUN = 4,   /* task goes on; peer: who ran before (itself after a wait); value: 1 when that one could have */
    MC_SIM_WAIT = 5,  /* task waits; value: MC_WAIT_*; object: for what, or 0 */
    MC_SIM_CHANNEL = 6,      /* task makes channel object; value: its capacity */
    MC_SIM_NAME_CHANNEL = 7, /* object is called text */
    MC_SIM_MESSAGE = 8,      /* a message goes straight from task to peer over object */
    MC_SIM_PUT = 9,          /* task puts the value-th message (from 1) into object's buffer */
    MC_SIM_TAKE = 10,        /* task takes the value-th message out of it */
    MC_SIM_CLOSE = 11,       /* task closes object; value: 0 for writing, 1 for reading */
    MC_SIM_LOCK = 12,        /* task has mutex object from here on */
    MC_SIM_UNLOCK = 13,      /* task gives it back */
    MC_SIM_TIME = 14,        /* the clock jumps; value: 1 while tasks are runnable */
    MC_SIM_NOTE = 15,        /* mc_sim_note; text */
    MC_SIM_CHOSE = 16        /* mc_sim_choose; value: which */
};
typedef struct mc_sim_event {
    uint32_t kind;
    uint32_t reserved;
    uint64_t choice; /* how many choices there had been */
    int64_t now_ns;  /* virtual */
    uint64_t task;
    uint64_t object;
    uint64_t peer;
    int64_t value;
    char text[32]; /* ends with 0 */
} mc_sim_event;

MC_EXTERN_C_END

#endif /* MC_SIM_H */
