/* mc/op.h: operations and completions: what the models above microthreads give each other to do, and get back.
 *
 * Success: types and constants alone; no function here. Headers that take an mc_op or give an mc_completion say what
 * their functions return.
 *
 * Both structs are frozen: size, alignment and every offset. An mc_op grows by being embedded first in a larger
 * struct, never by itself.
 */
#ifndef MC_OP_H
#define MC_OP_H

#include "base.h"

MC_EXTERN_C_BEGIN

/* --- Operations -------------------------------------------------------------------------------------------------- */

/* Where an operation is in its life.
 *   IDLE        the initiator's: it fills in the request.
 *   SUBMITTED   on its way, in a queue of its destination or of a node that passes it on.
 *   ACTIVE      the destination has accepted it and works on it. A standing operation rings from here, as often as it
 *               has something.
 *   COMPLETING  it has a result, or is getting one; it is on its way back.
 *   DONE        the initiator's again. */
enum {
    MC_OP_PHASE_IDLE = 0,
    MC_OP_PHASE_SUBMITTED = 1,
    MC_OP_PHASE_ACTIVE = 2,
    MC_OP_PHASE_COMPLETING = 3,
    MC_OP_PHASE_DONE = 4
};

/* Why an operation was asked to end early. The first cause stays; asking again changes nothing. An operation that ends
 * for a cause has the result that stands beside it; one that was done before the request arrived has its own. */
enum {
    MC_OP_CAUSE_NONE = 0,
    MC_OP_CAUSE_CANCEL = 1,   /* the initiator, or its scope: MC_E_CANCELED */
    MC_OP_CAUSE_DEADLINE = 2, /* its deadline_ns: MC_E_TIMEDOUT */
    MC_OP_CAUSE_CLOSE = 3,    /* what it works on, or its destination, was closed: MC_E_CLOSED */
    MC_OP_CAUSE_SHUTDOWN = 4  /* the runtime or the loop is shutting down: MC_E_SHUTDOWN */
};

/* Flags of an operation; all other bits must be 0. */
#define MC_OP_STANDING UINT32_C(1)     /* rings while it is active, ends by an error or a cancel alone */
#define MC_OP_UNREFERENCED UINT32_C(2) /* nobody waits for it: a runtime with nothing else left is quiescent */

/* Kinds from here on belong to programs, for operations between nodes of theirs; those below, from 1, to the library.
 * Kind 0 is none. */
#define MC_OP_KIND_USER UINT32_C(0x80000000)

/* An operation: a request that travels to its destination and comes back, the same memory all the way, so that nothing
 * on the way allocates. Embed it first in a struct that has what the request needs beside it (a buffer, a ring), start
 * it with MC_OP_INIT, which is all zeros, fill in the fields marked "initiator", submit it.
 *
 * Who owns the memory: from a submission that succeeded until the completion has reached the initiator, the library, and
 * the destination for it. Meanwhile the initiator neither writes, copies, moves nor frees the operation, nor the memory
 * that the request names, and reads none of its fields: the library keeps what it needs in those that are marked as
 * its own, a timer's links in those of the result, say. The initiator may cancel. A completion always comes, also after
 * a cancel: the operation is the initiator's again then and no sooner. A standing operation stays the library's from
 * ring to ring; what it delivers lies in memory that the request names, whose own protocol says who may touch which
 * part of it. A submission that fails leaves the operation with the initiator.
 *
 * An operation that is DONE may be submitted again as it is. Do not start it anew with MC_OP_INIT while its memory
 * serves as an operation: its word counts its lives, by which a late cancel or ring knows that it means another one.
 *
 * Each field says who writes it, and what needs it. "library": read it when the operation is yours, write it never. */
typedef struct mc_op {
    /* What routing touches. */
    uint64_t word;             /* library, private: the state (phase, first cause, links in use, count of lives) */
    struct mc_op *link;        /* library: the queue it is in, on its way there or back. One is enough: it is in one
                                  at a time, and nobody takes it out of the middle, since a cancel has its own link */
    struct mc_op *cancel_link; /* library: the queue of cancels; an operation may wait in both */
    struct mc_op *bell_link;   /* library: the queue of rings, in which a standing operation waits while it may be
                                  cancelled or completed */
    uint64_t destination;      /* initiator: the node that is to do it; 0 is the default, which routing fills in */
    uint64_t source;           /* library: who gets it back (a node, a completion queue); 0 is a task that waits */
    uint32_t kind;             /* initiator: what to do; the destination says what it knows */
    uint32_t flags;            /* initiator: MC_OP_STANDING, MC_OP_UNREFERENCED */
    int64_t deadline_ns;       /* initiator: when to give up; the time itself, for a timer. Steady clock; 0 and
                                  MC_FOREVER are none, MC_NOW has passed */

    /* What it is about, and what came of it. */
    uint64_t id;          /* library: unlike all others' of the process, from the submission on; for traces */
    uint64_t trace_id;    /* initiator: what this belongs to; 0 takes that of the task or node that submits */
    uint64_t parent_id;   /* initiator: the id of the operation that this serves; 0 is none, or the current one */
    uint64_t user;        /* initiator: its own word, never looked at; the token of a completion */
    int64_t value;        /* library: what it yielded (bytes, a descriptor, a time), when result is MC_OK */
    int32_t result;       /* library: MC_OK or a negative MC_E_* code, once it is done */
    uint32_t slot;        /* library: where the destination keeps what belongs to it (a request of the system's), so
                             that a cancel finds that without a search */
    uint64_t reserved[2]; /* must be 0 */
} mc_op;
#define MC_OP_INIT                                                                                                     \
    {                                                                                                                  \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0, 0 }                                                       \
    }

/* --- Completions ------------------------------------------------------------------------------------------------- */

/* How a request ended, as a completion queue gives it: plain words, no pointers to follow, so that a batch of them is
 * an array that any language reads. What value and data mean is said where the request is made. */
typedef struct mc_completion {
    uint64_t token; /* the caller's own word, given with the request; the field user of an operation */
    int64_t value;  /* what it yielded, when status is MC_OK */
    int32_t status; /* MC_OK or a negative MC_E_* code */
    uint32_t kind;  /* what kind of request it was; an operation's kind */
    uint64_t data;  /* a second word of the result; an operation's id */
} mc_completion;

MC_EXTERN_C_END

#endif /* MC_OP_H */
