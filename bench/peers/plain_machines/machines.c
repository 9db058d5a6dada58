#include "machines.h"

#include <stdlib.h>
#include <string.h>

enum lifecycle { RUNNING = 1, FAULTED = 2 };

typedef struct slot {
    enum lifecycle lifecycle;
    bool in_ready_queue;
    uint64_t state, state_tag;
    pm_envelope *mailbox; /* a ring */
    uint32_t cap, head, len;
    pm_dispatch_fn dispatch;
    void *ctx;
    const pm_row *rows;
    size_t row_count;
} slot;

typedef struct pending {
    uint64_t id, site, payload0, payload1;
    uint32_t requester;
    bool active;
} pending;

typedef struct thunk {
    uint64_t id, next_tag;
    pm_dispatch_fn fn;
} thunk;

enum effect_kind { SEND, REQUEST, REPLY };

typedef struct effect {
    enum effect_kind effect;
    uint64_t target, pending_id, site; /* target: a machine, or a reply's capability */
    pm_envelope env;
} effect;

struct pm_runtime {
    slot *slots; /* [id - 1] */
    uint32_t slot_count, slot_cap;
    uint32_t *ready; /* a ring */
    uint32_t ready_cap, ready_head, ready_len;
    pending *pendings;
    size_t pending_count, pending_cap;
    uint64_t next_pending;
    thunk *thunks;
    size_t thunk_count, thunk_cap;
};

/* What a handler has staged; the array is kept from step to step. */
static struct {
    pm_runtime *rt;
    uint32_t machine;
    effect *effects;
    size_t count, cap;
} staging;

/* Makes room for one more of what *array holds. */
static bool grow(void **array, size_t size, size_t count, size_t *cap) {
    if (count < *cap)
        return true;
    const size_t more = *cap == 0 ? 16 : *cap * 2;
    void *const moved = realloc(*array, more * size);
    if (moved == NULL)
        return false;
    *array = moved;
    *cap = more;
    return true;
}

static slot *find_slot(const pm_runtime *rt, uint64_t id) {
    return id >= 1 && id <= rt->slot_count ? &rt->slots[id - 1] : NULL;
}

static pending *find_pending(const pm_runtime *rt, uint64_t id) {
    for (size_t i = 0; i < rt->pending_count; i++)
        if (rt->pendings[i].active && rt->pendings[i].id == id)
            return &rt->pendings[i];
    return NULL;
}

static const thunk *find_thunk(const pm_runtime *rt, uint64_t id) {
    for (size_t i = 0; i < rt->thunk_count; i++)
        if (rt->thunks[i].id == id)
            return &rt->thunks[i];
    return NULL;
}

pm_runtime *pm_new(void) {
    pm_runtime *const rt = calloc(1, sizeof *rt);
    if (rt != NULL)
        rt->next_pending = 1;
    return rt;
}

void pm_free(pm_runtime *rt) {
    for (uint32_t i = 0; i < rt->slot_count; i++)
        free(rt->slots[i].mailbox);
    free(rt->slots);
    free(rt->ready);
    free(rt->pendings);
    free(rt->thunks);
    free(rt);
    free(staging.effects);
    memset(&staging, 0, sizeof staging);
}

uint32_t pm_spawn(pm_runtime *rt, uint32_t mailbox_cap) {
    if (rt->slot_count == rt->slot_cap) {
        const uint32_t cap = rt->slot_cap == 0 ? 16 : rt->slot_cap * 2;
        slot *const slots = realloc(rt->slots, cap * sizeof *slots);
        if (slots == NULL)
            return 0;
        rt->slots = slots;
        rt->slot_cap = cap;
    }
    pm_envelope *const mailbox = malloc(mailbox_cap * sizeof *mailbox);
    if (mailbox == NULL)
        return 0;
    rt->slots[rt->slot_count] = (slot){.lifecycle = RUNNING, .mailbox = mailbox, .cap = mailbox_cap};
    return ++rt->slot_count;
}

void pm_bind(pm_runtime *rt, uint32_t id, pm_dispatch_fn fn, void *ctx) {
    slot *const machine = find_slot(rt, id);
    machine->dispatch = fn;
    machine->ctx = ctx;
}

void pm_bind_rows(pm_runtime *rt, uint32_t id, const pm_row *rows, size_t count, uint64_t initial_tag) {
    slot *const machine = find_slot(rt, id);
    machine->rows = rows;
    machine->row_count = count;
    machine->state_tag = initial_tag;
}

bool pm_register_thunk(pm_runtime *rt, uint64_t thunk_id, pm_dispatch_fn fn, uint64_t next_tag) {
    if (!grow((void **)&rt->thunks, sizeof *rt->thunks, rt->thunk_count, &rt->thunk_cap))
        return false;
    rt->thunks[rt->thunk_count++] = (thunk){thunk_id, next_tag, fn};
    return true;
}

uint64_t pm_state(const pm_runtime *rt, uint32_t id) { return find_slot(rt, id)->state; }

/* --- Queues -------------------------------------------------------------------------------------------------------- */

static bool push_ready(pm_runtime *rt, uint32_t id) {
    if (rt->ready_len == rt->ready_cap) {
        const uint32_t cap = rt->ready_cap == 0 ? 16 : rt->ready_cap * 2;
        uint32_t *const ready = malloc(cap * sizeof *ready);
        if (ready == NULL)
            return false;
        for (uint32_t i = 0; i < rt->ready_len; i++)
            ready[i] = rt->ready[(rt->ready_head + i) % rt->ready_cap];
        free(rt->ready);
        rt->ready = ready;
        rt->ready_cap = cap;
        rt->ready_head = 0;
    }
    uint32_t tail = rt->ready_head + rt->ready_len++;
    if (tail >= rt->ready_cap)
        tail -= rt->ready_cap;
    rt->ready[tail] = id;
    return true;
}

static bool schedule(pm_runtime *rt, uint32_t id) {
    slot *const machine = &rt->slots[id - 1];
    if (machine->in_ready_queue || machine->lifecycle != RUNNING || machine->len == 0)
        return true;
    machine->in_ready_queue = push_ready(rt, id);
    return machine->in_ready_queue;
}

static bool enqueue(pm_runtime *rt, uint32_t dst, const pm_envelope *env) {
    slot *const machine = find_slot(rt, dst);
    if (machine == NULL || machine->lifecycle != RUNNING || machine->len == machine->cap)
        return false;
    uint32_t tail = machine->head + machine->len++;
    if (tail >= machine->cap)
        tail -= machine->cap;
    machine->mailbox[tail] = *env;
    return schedule(rt, dst);
}

/* --- Requests ------------------------------------------------------------------------------------------------------ */

static uint64_t mint(pm_runtime *rt) {
    uint64_t id = rt->next_pending++;
    while (find_pending(rt, id) != NULL)
        id = rt->next_pending++;
    return id;
}

/* In the first place that is free. */
static bool add_pending(pm_runtime *rt, pending entry) {
    for (size_t i = 0; i < rt->pending_count; i++)
        if (!rt->pendings[i].active) {
            rt->pendings[i] = entry;
            return true;
        }
    if (!grow((void **)&rt->pendings, sizeof *rt->pendings, rt->pending_count, &rt->pending_cap))
        return false;
    rt->pendings[rt->pending_count++] = entry;
    return true;
}

static bool do_request(pm_runtime *rt, uint32_t src, uint32_t dst, uint64_t pending_id, uint64_t site,
                       pm_envelope env) {
    if (!add_pending(rt, (pending){pending_id, site, env.payload0, env.payload1, src, true}))
        return false;
    env.src = src;
    env.reply_cap_id = pending_id;
    env.pending_id = 0;
    env.site = site;
    if (enqueue(rt, dst, &env))
        return true;
    find_pending(rt, pending_id)->active = false;
    return false;
}

static bool do_reply(pm_runtime *rt, uint32_t src, uint64_t cap, pm_envelope env) {
    pending *const entry = find_pending(rt, cap);
    if (entry == NULL)
        return false;
    env.src = src;
    env.reply_cap_id = 0;
    env.pending_id = cap;
    env.origin_payload0 = entry->payload0;
    env.origin_payload1 = entry->payload1;
    env.site = entry->site;
    if (!enqueue(rt, entry->requester, &env))
        return false;
    entry->active = false;
    return true;
}

bool pm_send(pm_runtime *rt, uint32_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1) {
    return enqueue(rt, dst, &(pm_envelope){.kind = kind, .payload0 = payload0, .payload1 = payload1});
}

uint64_t pm_request(pm_runtime *rt, uint32_t src, uint32_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1) {
    const uint64_t id = mint(rt);
    const pm_envelope env = {.kind = kind, .payload0 = payload0, .payload1 = payload1};
    return do_request(rt, src, dst, id, 0, env) ? id : 0;
}

/* --- Effects ------------------------------------------------------------------------------------------------------- */

static bool stage(enum effect_kind kind, uint64_t target, uint64_t pending_id, uint64_t site, pm_envelope env) {
    if (staging.rt == NULL || !grow((void **)&staging.effects, sizeof *staging.effects, staging.count, &staging.cap))
        return false;
    env.src = staging.machine;
    staging.effects[staging.count++] = (effect){kind, target, pending_id, site, env};
    return true;
}

bool pm_emit_send(uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1) {
    return stage(SEND, dst, 0, 0, (pm_envelope){.kind = kind, .payload0 = payload0, .payload1 = payload1});
}

uint64_t pm_emit_request(uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1, uint64_t site) {
    const uint64_t id = staging.rt == NULL ? 0 : mint(staging.rt);
    const pm_envelope env = {.kind = kind, .payload0 = payload0, .payload1 = payload1};
    return id != 0 && stage(REQUEST, dst, id, site, env) ? id : 0;
}

bool pm_emit_reply(uint64_t cap, uint64_t kind, uint64_t payload0, uint64_t payload1) {
    return stage(REPLY, cap, 0, 0, (pm_envelope){.kind = kind, .payload0 = payload0, .payload1 = payload1});
}

/* The machine that an effect is delivered to; 0 for none. */
static uint32_t destination(const pm_runtime *rt, const effect *staged) {
    if (staged->effect != REPLY)
        return (uint32_t)staged->target;
    const pending *const entry = find_pending(rt, staged->target);
    return entry == NULL ? 0 : entry->requester;
}

/* Whether all effects can be carried out: everyone is there, and has room for all that it is sent. */
static bool preflight(const pm_runtime *rt) {
    for (size_t i = 0; i < staging.count; i++) {
        const uint32_t dst = destination(rt, &staging.effects[i]);
        const slot *const machine = find_slot(rt, dst);
        if (machine == NULL || machine->lifecycle != RUNNING)
            return false;
        uint32_t needed = 1;
        for (size_t j = 0; j < i; j++)
            needed += destination(rt, &staging.effects[j]) == dst;
        if (machine->cap - machine->len < needed)
            return false;
        if (staging.effects[i].effect == REQUEST && find_pending(rt, staging.effects[i].pending_id) != NULL)
            return false;
    }
    return true;
}

static bool commit(pm_runtime *rt, uint32_t id) {
    if (!preflight(rt))
        return false;
    bool done = true;
    for (size_t i = 0; i < staging.count && done; i++) {
        const effect *const staged = &staging.effects[i];
        switch (staged->effect) {
        case SEND:
            done = enqueue(rt, (uint32_t)staged->target, &staged->env);
            break;
        case REQUEST:
            done = do_request(rt, id, (uint32_t)staged->target, staged->pending_id, staged->site, staged->env);
            break;
        case REPLY:
            done = do_reply(rt, id, staged->target, staged->env);
            break;
        }
    }
    return done;
}

/* --- A step -------------------------------------------------------------------------------------------------------- */

/* An exact site before any site. */
static const thunk *row_thunk(const pm_runtime *rt, const slot *machine, const pm_envelope *env) {
    const pm_row *found = NULL;
    for (size_t i = 0; i < machine->row_count; i++) {
        const pm_row *const row = &machine->rows[i];
        if (row->state_tag != machine->state_tag || row->kind != env->kind)
            continue;
        if (row->site == env->site) {
            found = row;
            break;
        }
        if (row->site == 0)
            found = row;
    }
    return found == NULL ? NULL : find_thunk(rt, found->local_thunk != 0 ? found->local_thunk : found->fallback_thunk);
}

static bool run_handler(pm_runtime *rt, uint32_t id, const pm_envelope *env) {
    const slot *const machine = &rt->slots[id - 1];
    const thunk *const bound = machine->rows == NULL ? NULL : row_thunk(rt, machine, env);
    const pm_dispatch_fn fn = bound == NULL ? machine->dispatch : bound->fn;
    if (fn == NULL)
        return false;
    pm_txn txn = {0};
    uint64_t fault_code = 0;
    staging.rt = rt;
    staging.machine = id;
    staging.count = 0;
    const pm_result result = fn(bound == NULL ? machine->ctx : rt, id, machine->state, env, &txn, &fault_code);
    const bool done = result == PM_OK && commit(rt, id);
    staging.rt = NULL;
    if (done && txn.has_next_state) {
        slot *const same = &rt->slots[id - 1];
        same->state = txn.next_state;
        if (txn.next_state_tag != 0)
            same->state_tag = txn.next_state_tag;
        else if (bound != NULL && bound->next_tag != 0)
            same->state_tag = bound->next_tag;
    }
    return done;
}

bool pm_step(pm_runtime *rt) {
    if (rt->ready_len == 0)
        return false;
    const uint32_t id = rt->ready[rt->ready_head];
    rt->ready_head = rt->ready_head + 1 == rt->ready_cap ? 0 : rt->ready_head + 1;
    rt->ready_len--;
    slot *machine = &rt->slots[id - 1];
    machine->in_ready_queue = false;
    if (machine->lifecycle != RUNNING || machine->len == 0)
        return false;
    const pm_envelope env = machine->mailbox[machine->head];
    machine->head = machine->head + 1 == machine->cap ? 0 : machine->head + 1;
    machine->len--;
    const bool done = run_handler(rt, id, &env);
    if (!done)
        rt->slots[id - 1].lifecycle = FAULTED;
    return schedule(rt, id) && done;
}
