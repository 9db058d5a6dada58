/* typestate_pingpong: what a compiler emits for typestates, written by hand. The source would be this:
 *
 *     typestate Ping {
 *         fields { pong: Machine<Pong>, left: u64 }
 *         state Ready {
 *             on Go -> Waiting { request:round(pong, Question { left }) }
 *         }
 *         state Waiting {
 *             on Answer for Question:round -> Ready { print(answer); send(self, left > 1 ? Go {} : Stop {}) }
 *         }
 *         state Done {}
 *         on Stop -> Done { print("done") }                  // the fallback of every state
 *     }
 *     typestate Pong {
 *         state Serving {
 *             on Question(cap) -> Serving { cap.reply(Answer { number, text }) }
 *         }
 *     }
 *     @machines fn main(rounds) { p = Pong::spawn(); q = Ping::spawn(p, rounds); send(q, Go {}) }
 *
 * A compiler knows what is below at compile time: it numbers states, events, layouts and thunks, hashes the name of a
 * request's site, and writes the descriptors' bytes. Everything goes by 64-bit words (mc/bridge.h). A value that passes
 * through the runtime is in a box, of __mc_alloc, which the runtime owns: nobody here frees one.
 *
 *     typestate_pingpong [ROUNDS]     3; at most 1,000,000
 */
#include <mc/mc.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Numbers ------------------------------------------------------------------------------------------------------ */

enum { PING_READY = 1, PING_WAITING = 2, PING_DONE = 3 };
enum { PONG_SERVING = 1 };
enum { GO = 1, QUESTION = 2, ANSWER = 3, STOP = 4 };
enum { LAYOUT_PING = 1, LAYOUT_EMPTY = 2, LAYOUT_QUESTION = 3, LAYOUT_ANSWER = 4 };
enum { THUNK_PING_GO = 1, THUNK_PING_ANSWER = 2, THUNK_PING_STOP = 3, THUNK_PONG_QUESTION = 4 };

/* FNV-1a, 64 bits, of "round". */
#define SITE_ROUND UINT64_C(0x311418469f09741b)

/* --- Types and layouts -------------------------------------------------------------------------------------------- */

/* All states of Ping have its fields. A type without fields takes a byte. */
struct ping {
    uint64_t pong, left;
};
struct empty {
    char none;
};
struct question {
    uint64_t number;
};
struct answer {
    uint64_t number;
    char *text; /* malloc's */
};

static void drop_answer(void *box) { free(((struct answer *)box)->text); }

static void *pointer(uint64_t word) { return (void *)(uintptr_t)word; }
static uint64_t word(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }
static uint64_t owned(uint64_t layout) { return layout | MC_PAYLOAD_LAYOUT_OWNED_MASK; }

static void *box(size_t size) {
    void *const memory = __mc_alloc(size, sizeof(uint64_t));
    if (memory == NULL) {
        fprintf(stderr, "typestate_pingpong: no memory\n");
        exit(1);
    }
    return memory;
}
static uint64_t box_empty(void) { return word(memset(box(sizeof(struct empty)), 0, sizeof(struct empty))); }
static uint64_t box_ping(struct ping state) { return word(memcpy(box(sizeof state), &state, sizeof state)); }

/* --- Handlers: the bodies in the source, and what they emit -------------------------------------------------------- */

/* A box that an emit function does not take remains the sender's. Here all of them are taken, unless memory has run out. */
static void emitted(uint64_t taken) {
    if (!taken) {
        fprintf(stderr, "typestate_pingpong: an effect could not be staged\n");
        exit(1);
    }
}

static struct ping ping_on_go(struct ping self) {
    struct question *const question = box(sizeof *question);
    question->number = self.left;
    emitted(__mc_machine_emit_request(self.pong, QUESTION, word(question), owned(LAYOUT_QUESTION), SITE_ROUND));
    return self;
}

static struct ping ping_on_answer(struct ping self, uint64_t id, const struct answer *answer,
                                  const struct question *question) {
    printf("%" PRIu64 ": %s\n", question->number, answer->text);
    self.left--;
    emitted(__mc_machine_emit_send(id, self.left > 0 ? GO : STOP, box_empty(), owned(LAYOUT_EMPTY)));
    return self;
}

static struct ping ping_on_stop(struct ping self) {
    printf("done\n");
    return self;
}

static void pong_on_question(const struct question *question, uint64_t cap) {
    enum { TEXT = 48 };
    struct answer *const answer = box(sizeof *answer);
    answer->number = question->number;
    answer->text = malloc(TEXT);
    if (answer->text != NULL)
        snprintf(answer->text, TEXT, "%" PRIu64 " is %s", question->number, question->number % 2 ? "odd" : "even");
    emitted(answer->text != NULL && __mc_machine_emit_reply(cap, ANSWER, word(answer), owned(LAYOUT_ANSWER)));
}

/* --- Thunks: words to types and back ------------------------------------------------------------------------------- */

#define THUNK(name)                                                                                                    \
    static mc_dispatch_result_t name(void *rt, mc_machine_id_t id, uint64_t state, const mc_machine_envelope_t *env,   \
                                     mc_machine_dispatch_txn_t *txn, uint64_t *fault_code)
#define UNUSED(x) ((void)(x))

/* The next state; its tag is the one that the thunk is registered with. The runtime drops the box of the state before
 * it, or this one if the transaction is not committed. */
static mc_dispatch_result_t becomes(mc_machine_dispatch_txn_t *txn, uint64_t state) {
    txn->has_next_state = 1;
    txn->next_state = state;
    return MC_DISPATCH_OK;
}

THUNK(thunk_ping_go) {
    UNUSED(rt), UNUSED(id), UNUSED(env), UNUSED(fault_code);
    return becomes(txn, box_ping(ping_on_go(*(struct ping *)pointer(state))));
}

/* A reply brings what was asked along, as its origin. */
THUNK(thunk_ping_answer) {
    UNUSED(rt), UNUSED(fault_code);
    return becomes(txn, box_ping(ping_on_answer(*(struct ping *)pointer(state), id, pointer(env->payload0),
                                                pointer(env->origin_payload0))));
}

THUNK(thunk_ping_stop) {
    UNUSED(rt), UNUSED(id), UNUSED(env), UNUSED(fault_code);
    return becomes(txn, box_ping(ping_on_stop(*(struct ping *)pointer(state))));
}

THUNK(thunk_pong_question) {
    UNUSED(rt), UNUSED(id), UNUSED(state), UNUSED(fault_code);
    pong_on_question(pointer(env->payload0), env->reply_cap_id);
    return becomes(txn, box_empty());
}

/* --- Descriptors --------------------------------------------------------------------------------------------------- */

#define BYTE(x, n) (uint8_t)((uint64_t)(x) >> (8 * (n)))
#define U32(x) BYTE(x, 0), BYTE(x, 1), BYTE(x, 2), BYTE(x, 3)
#define U64(x) U32(x), BYTE(x, 4), BYTE(x, 5), BYTE(x, 6), BYTE(x, 7)
/* clang-format off */
#define COUNTS(states, events, rows, roles) U32(states), U32(events), U32(rows), U32(roles)
#define STATE(tag, layout) U64(tag), U64(0), U64(layout) /* and its name */
#define EVENT(kind, layout) U64(kind), U64(layout), 0    /* and its name */
#define ANSWER_TO(kind, layout) U64(kind), U64(layout), 1 /* and its name, and that of what was asked */
#define ROW(state, kind, site, local, fallback) U64(state), U64(kind), U64(site), U64(local), U64(fallback)

static const uint8_t ping_descriptor[] = {
    'M', 'C', 'H', 'D', U32(1), U32(4), 'P', 'i', 'n', 'g', COUNTS(3, 3, 5, 0),
    STATE(PING_READY, LAYOUT_PING), U32(5), 'R', 'e', 'a', 'd', 'y',
    STATE(PING_WAITING, LAYOUT_PING), U32(7), 'W', 'a', 'i', 't', 'i', 'n', 'g',
    STATE(PING_DONE, LAYOUT_PING), U32(4), 'D', 'o', 'n', 'e',
    EVENT(GO, LAYOUT_EMPTY), U32(2), 'G', 'o',
    ANSWER_TO(ANSWER, LAYOUT_ANSWER), U32(6), 'A', 'n', 's', 'w', 'e', 'r', U32(8), 'Q', 'u', 'e', 's', 't', 'i', 'o', 'n',
    EVENT(STOP, LAYOUT_EMPTY), U32(4), 'S', 't', 'o', 'p',
    ROW(PING_READY, GO, 0, THUNK_PING_GO, 0),
    ROW(PING_WAITING, ANSWER, SITE_ROUND, THUNK_PING_ANSWER, 0),
    ROW(PING_READY, STOP, 0, 0, THUNK_PING_STOP),
    ROW(PING_WAITING, STOP, 0, 0, THUNK_PING_STOP),
    ROW(PING_DONE, STOP, 0, 0, THUNK_PING_STOP),
};

static const uint8_t pong_descriptor[] = {
    'M', 'C', 'H', 'D', U32(1), U32(4), 'P', 'o', 'n', 'g', COUNTS(1, 1, 1, 0),
    STATE(PONG_SERVING, LAYOUT_EMPTY), U32(7), 'S', 'e', 'r', 'v', 'i', 'n', 'g',
    EVENT(QUESTION, LAYOUT_QUESTION), U32(8), 'Q', 'u', 'e', 's', 't', 'i', 'o', 'n',
    ROW(PONG_SERVING, QUESTION, 0, THUNK_PONG_QUESTION, 0),
};
/* clang-format on */

static uint64_t ping_id, pong_id; /* of the descriptors */

/* The runtime calls it before it makes its first runtime. Only the layout whose boxes own more than themselves has something
 * to drop. */
MC_API void __mc_machine_bootstrap(void) {
    __mc_machine_runtime_register_payload_drop_u64(LAYOUT_ANSWER, word((void *)(uintptr_t)drop_answer));
    __mc_machine_runtime_register_thunk_meta_u64(THUNK_PING_GO, (uint64_t)(uintptr_t)thunk_ping_go, PING_WAITING);
    __mc_machine_runtime_register_thunk_meta_u64(THUNK_PING_ANSWER, (uint64_t)(uintptr_t)thunk_ping_answer, PING_READY);
    __mc_machine_runtime_register_thunk_meta_u64(THUNK_PING_STOP, (uint64_t)(uintptr_t)thunk_ping_stop, PING_DONE);
    __mc_machine_runtime_register_thunk_meta_u64(THUNK_PONG_QUESTION, (uint64_t)(uintptr_t)thunk_pong_question,
                                                 PONG_SERVING);
    ping_id = __mc_machine_runtime_register_descriptor_u64(word(ping_descriptor), sizeof ping_descriptor);
    pong_id = __mc_machine_runtime_register_descriptor_u64(word(pong_descriptor), sizeof pong_descriptor);
}

/* --- Spawn wrappers ------------------------------------------------------------------------------------------------ */

enum machine_error { OK, SPAWN_FAILED, BIND_FAILED, START_FAILED };

/* The state's box is the runtime's once set_state has it. */
static enum machine_error spawn(uint64_t descriptor, uint64_t initial_tag, uint64_t state, uint64_t *id) {
    enum { MAILBOX = 4 };
    const uint64_t rt = __mc_machine_runtime_managed_current_u64();
    enum machine_error error = SPAWN_FAILED;
    if (rt != 0 && (*id = __mc_machine_runtime_spawn_u64(rt, MAILBOX)) != 0) {
        error = BIND_FAILED;
        if (__mc_machine_runtime_bind_descriptor_u64(rt, *id, descriptor, initial_tag) &&
            __mc_machine_runtime_set_state_u64(rt, *id, state))
            return __mc_machine_runtime_start_u64(rt, *id) ? OK : START_FAILED;
    }
    __mc_free(pointer(state));
    return error;
}

static enum machine_error ping_spawn(uint64_t pong, uint64_t left, uint64_t *id) {
    return spawn(ping_id, PING_READY, box_ping((struct ping){pong, left}), id);
}

static enum machine_error pong_spawn(uint64_t *id) { return spawn(pong_id, PONG_SERVING, box_empty(), id); }

/* --- @machines ----------------------------------------------------------------------------------------------------- */

static enum machine_error source_main(uint64_t rounds) {
    uint64_t ping, pong;
    enum machine_error error = pong_spawn(&pong);
    if (error == OK)
        error = ping_spawn(pong, rounds, &ping);
    if (error == OK)
        __mc_machine_runtime_send_u64(__mc_machine_runtime_managed_current_u64(), ping, GO, box_empty(),
                                      owned(LAYOUT_EMPTY));
    return error;
}

/* Around main: the managed runtime, and steps until nobody has mail. */
int main(int argc, char **argv) {
    enum { MOST_ROUNDS = 1000000 };
    char *end = NULL;
    const uint64_t rounds = argc > 1 ? strtoull(argv[1], &end, 10) : 3;
    if (argc > 2 || (end != NULL && *end != '\0') || rounds == 0 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: typestate_pingpong [ROUNDS], from 1 to %d\n", MOST_ROUNDS);
        return 2;
    }
    const uint64_t rt = __mc_machine_runtime_managed_bootstrap_u64();
    const enum machine_error error = rt == 0 ? SPAWN_FAILED : source_main(rounds);
    uint64_t steps = 0;
    int faulted = 0;
    for (uint64_t step; error == OK && (step = __mc_machine_runtime_step_u64(rt)) != MC_STEP_IDLE; steps++)
        faulted |= step == MC_STEP_FAULTED;
    __mc_machine_runtime_managed_shutdown_u64();
    printf("%" PRIu64 " steps, %" PRIu64 " blocks left\n", steps, __mc_alloc_live_blocks());
    return error != OK || faulted;
}
