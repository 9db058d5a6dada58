/* What a compiler emits around its machines, as a program that sees the library alone: a bootstrap function, called once and
 * before anything else; the managed runtime; a spawn, a start, messages by words; and an allocator of the program's own, which
 * the library calls. */
#include <mc/mc.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static unsigned bootstraps, allocated, freed;

/* The program's own definitions win, inside the library too. */
void *__mc_alloc(size_t size, size_t align) {
    (void)align;
    allocated++;
    return size == 0 ? NULL : malloc(size);
}
void *__mc_realloc(void *ptr, size_t size, size_t align) {
    (void)align;
    return realloc(ptr, size);
}
void __mc_free(void *ptr) {
    freed++;
    free(ptr);
}

static mc_dispatch_result_t on_event(void *ctx, mc_machine_id_t id, uint64_t state, const mc_machine_envelope_t *env,
                                     mc_machine_dispatch_txn_t *txn, uint64_t *fault_code) {
    (void)ctx;
    (void)fault_code;
    txn->has_next_state = 1;
    txn->next_state = state + env->kind;
    if (env->kind > 1)
        CHECK_EQ(__mc_machine_emit_send(id, env->kind - 1, 0, 0), 1);
    return MC_DISPATCH_OK;
}

MC_API void __mc_machine_bootstrap(void); /* the library must see it, also where names are hidden by default */
void __mc_machine_bootstrap(void) {
    bootstraps++;
    __mc_machine_runtime_register_thunk_meta_u64(42, (uint64_t)(uintptr_t)on_event, 1);
    uint64_t own = __mc_machine_runtime_new(); /* it may make one: it is marked done */
    CHECK(own != 0);
    __mc_machine_runtime_free(own);
}

static void refuse(uint64_t rt) {
    CHECK_EQ(__mc_machine_runtime_spawn_u64(rt, 4), 0);
    CHECK_EQ(__mc_machine_runtime_start_u64(rt, 1), 0);
    CHECK_EQ(__mc_machine_runtime_set_state_u64(rt, 1, 5), 0);
    CHECK_EQ(__mc_machine_runtime_send_u64(rt, 1, 1, 0, 0), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
    CHECK_EQ(__mc_machine_runtime_request_u64(rt, 1, 1, 1, 0, 0), 0);
    CHECK_EQ(__mc_machine_runtime_reply_u64(rt, 1, 1, 1, 0, 0), MC_REPLY_CAP_UNKNOWN);
    CHECK_EQ(__mc_machine_runtime_bind_dispatch_u64(rt, 1, 0, 0), 0);
    CHECK_EQ(__mc_machine_runtime_bind_dispatch_thunk_u64(rt, 1, 42, 0), 0);
    CHECK_EQ(__mc_machine_runtime_bind_descriptor_u64(rt, 1, 1, 1), 0);
    CHECK_EQ(__mc_machine_runtime_step_u64(rt), MC_STEP_IDLE);
    __mc_machine_runtime_free(rt);
}

static uint64_t random_state = 1;
static uint64_t next_random(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state ^ random_state >> 29;
}

int main(void) {
    CHECK_EQ(__mc_machine_runtime_managed_current_u64(), 0);
    CHECK_EQ(__mc_machine_runtime_managed_shutdown_u64(), 0);
    CHECK_EQ(bootstraps, 0);
    uint64_t rt = __mc_machine_runtime_managed_bootstrap_u64();
    CHECK(rt != 0);
    CHECK_EQ(bootstraps, 1);
    CHECK_EQ(__mc_machine_runtime_managed_bootstrap_u64(), rt);
    CHECK_EQ(__mc_machine_runtime_managed_current_u64(), rt);

    uint64_t id = __mc_machine_runtime_spawn_u64(rt, 8);
    CHECK_EQ(id, 1);
    CHECK_EQ(__mc_machine_runtime_bind_dispatch_thunk_u64(rt, id, 42, 0), 1);
    CHECK_EQ(__mc_machine_runtime_set_state_u64(rt, id, 100), 1);
    CHECK_EQ(__mc_machine_runtime_start_u64(rt, id), 1);
    CHECK_EQ(__mc_machine_runtime_send_u64(rt, id, 3, 0, 0), 0);
    CHECK_EQ(allocated, 1); /* the mailbox */
    while (__mc_machine_runtime_step_u64(rt) != MC_STEP_IDLE) {
    }
    CHECK_EQ(mc_machine_runtime_state((const mc_machine_runtime_t *)(uintptr_t)rt, 1), 106);
    CHECK_EQ(__mc_machine_runtime_lifecycle((const mc_machine_runtime_t *)(uintptr_t)rt, 1), MC_MACHINE_RUNNING);
    CHECK(mc_machine_runtime_step_u64 == __mc_machine_runtime_step_u64); /* one function, two names */

    uint64_t box = (uint64_t)(uintptr_t)__mc_alloc(8, 8);
    CHECK_EQ(__mc_machine_runtime_send_u64(rt, (UINT64_C(1) << 32) + 1, 1, box, MC_PAYLOAD_LAYOUT_OWNED_MASK), 1);
    CHECK_EQ(freed, 1);
    CHECK_EQ(__mc_machine_runtime_request_u64(rt, (UINT64_C(1) << 32) + 1, 1, 1, 0, 0), 0);
    CHECK_EQ(__mc_machine_runtime_reply_u64(rt, (UINT64_C(1) << 32) + 1, 1, 1, 0, 0), MC_REPLY_CAP_UNKNOWN);
    CHECK_EQ(__mc_machine_emit_send(1, 1, 0, 0), 0);

    for (int i = 0; i < 100000; i++) { /* visibly wrong, random, nearly right */
        uint64_t word = next_random() >> next_random() % 64;
        refuse(i % 2 == 0 ? word : rt ^ UINT64_C(1) << word % 64);
    }
    mc_machine_runtime_t own;
    memset(&own, 0x5a, sizeof own);
    mc_machine_runtime_drop(&own);
    mc_machine_runtime_init(&own);
    CHECK_EQ(__mc_machine_runtime_spawn_u64((uint64_t)(uintptr_t)&own, 4), 1);
    __mc_machine_runtime_free((uint64_t)(uintptr_t)&own);
    refuse((uint64_t)(uintptr_t)&own);
    mc_machine_runtime_drop(&own);

    CHECK_EQ(__mc_machine_runtime_managed_shutdown_u64(), 1);
    CHECK_EQ(__mc_machine_runtime_managed_shutdown_u64(), 0);
    refuse(rt);
    CHECK_EQ(allocated, freed);
    uint64_t again = __mc_machine_runtime_managed_bootstrap_u64();
    CHECK(again != 0 && again != rt);
    __mc_machine_runtime_free(again); /* of the managed one: there is none then */
    CHECK_EQ(__mc_machine_runtime_managed_current_u64(), 0);
    again = __mc_machine_runtime_managed_bootstrap_u64();
    mc_machine_runtime_drop((mc_machine_runtime_t *)(uintptr_t)again); /* likewise */
    CHECK_EQ(__mc_machine_runtime_managed_current_u64(), 0);
    CHECK_EQ(bootstraps, 1);
    return 0;
}
