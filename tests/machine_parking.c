/* Handlers that wait, on microthreads: each steps a runtime of its own, and what a handler emits after it has waited goes to its
 * own runtime, whatever ran on its executor meanwhile and wherever it goes on. */
#include "csp_program.h"

enum { EXECUTORS = 4, STEPPERS = 16, ROUNDS = 200, KIND = 5 };

struct stepper {
    uint64_t rt, machine, handled, moves;
    uint32_t random;
};

static uint32_t next_random(struct stepper *stepper) {
    stepper->random = stepper->random * 1664525u + 1013904223u;
    return stepper->random >> 16;
}

/* Its payload says whose it is: a wrong one has gone to another runtime. */
static mc_dispatch_result_t handle(void *ctx, mc_machine_id_t id, uint64_t state, const mc_machine_envelope_t *env,
                                   mc_machine_dispatch_txn_t *txn, uint64_t *fault_code) {
    struct stepper *const stepper = ctx;
    (void)state, (void)fault_code;
    CHECK_EQ(env->payload0, (uint64_t)(uintptr_t)stepper);
    CHECK_EQ(env->src, stepper->handled == 0 ? 0 : id);
    const pid_t before = gettid();
    if (next_random(stepper) % 4 == 0)
        CHECK_EQ(mc_sleep(1000 * (next_random(stepper) % 100)), MC_OK);
    else
        CHECK_EQ(mc_yield(), MC_OK);
    stepper->moves += gettid() != before;
    txn->has_next_state = 1;
    txn->next_state = ++stepper->handled;
    if (stepper->handled < ROUNDS)
        CHECK_EQ(__mc_machine_emit_send(id, KIND, env->payload0, 0), 1);
    return MC_DISPATCH_OK;
}

static int32_t step(void *user) {
    struct stepper *const stepper = user;
    uint64_t steps = 0;
    while (__mc_machine_runtime_step_u64(stepper->rt) == MC_STEP_DID_WORK)
        steps++;
    CHECK_EQ(steps, ROUNDS);
    CHECK_EQ(__mc_machine_emit_send(stepper->machine, KIND, 0, 0), 0); /* no handler runs */
    return 0;
}

int main(void) {
    alarm(120);
    static struct stepper steppers[STEPPERS];
    mc_task_t tasks[STEPPERS];
    uint64_t moved = 0;
    CHECK_EQ(csp_init_runtime(EXECUTORS), 1);
    for (uint32_t i = 0; i < STEPPERS; ++i) {
        struct stepper *const stepper = &steppers[i];
        stepper->random = i;
        CHECK((stepper->rt = __mc_machine_runtime_new()) != 0);
        CHECK((stepper->machine = __mc_machine_runtime_spawn_u64(stepper->rt, 4)) != 0);
        CHECK_EQ(__mc_machine_runtime_bind_dispatch_u64(stepper->rt, stepper->machine, (uint64_t)(uintptr_t)handle,
                                                        (uint64_t)(uintptr_t)stepper),
                 1);
        CHECK_EQ(__mc_machine_runtime_start_u64(stepper->rt, stepper->machine), 1);
        CHECK_EQ(__mc_machine_runtime_send_u64(stepper->rt, stepper->machine, KIND, (uint64_t)(uintptr_t)stepper, 0),
                 MC_MAILBOX_ENQUEUE_OK);
    }
    for (uint32_t i = 0; i < STEPPERS; ++i)
        CHECK_EQ(mc_spawn(0, step, &steppers[i], NULL, &tasks[i]), MC_OK);
    for (uint32_t i = 0; i < STEPPERS; ++i) {
        CHECK_EQ(mc_join(tasks[i], MC_FOREVER, NULL), MC_OK);
        CHECK_EQ(steppers[i].handled, ROUNDS);
        moved += steppers[i].moves;
        __mc_machine_runtime_free(steppers[i].rt);
    }
    printf("%lu of %u waits ended on another executor\n", (unsigned long)moved, STEPPERS * ROUNDS);
    csp_shutdown_runtime();
    return 0;
}
