/* The bootstrap function runs once, and nobody has a runtime before it is done: not the threads and microthreads that ask for one
 * while it runs. It may make runtimes itself. */
#include "csp_program.h"

#include <pthread.h>
#include <time.h>

enum { CALLERS = 4, THUNK = 7 };

static _Atomic int bootstraps, entered;
static uint64_t inner;

static mc_dispatch_result_t nothing(void *ctx, mc_machine_id_t id, uint64_t state, const mc_machine_envelope_t *env,
                                    mc_machine_dispatch_txn_t *txn, uint64_t *fault_code) {
    (void)ctx, (void)id, (void)state, (void)env, (void)txn, (void)fault_code;
    return MC_DISPATCH_OK;
}

MC_API void __mc_machine_bootstrap(void);
void __mc_machine_bootstrap(void) {
    const struct timespec moment = {0, 50000000};
    ++bootstraps;
    inner = __mc_machine_runtime_new();
    while (entered < 2 * CALLERS) /* all are about to ask, or ask */
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    nanosleep(&moment, NULL);
    __mc_machine_runtime_register_thunk_u64(THUNK, (uint64_t)(uintptr_t)nothing);
}

static void ask(void) {
    ++entered;
    const uint64_t rt = __mc_machine_runtime_managed_bootstrap_u64();
    CHECK(rt != 0);
    CHECK(mc_machine_runtime_lookup_thunk(THUNK) == nothing);
    CHECK_EQ(__mc_machine_runtime_managed_current_u64(), rt);
}

static void *ask_on_thread(void *unused) {
    ask();
    return unused;
}

static int32_t ask_on_microthread(void *unused) {
    (void)unused;
    ask();
    return 0;
}

int main(void) {
    alarm(60);
    pthread_t threads[CALLERS];
    mc_task_t tasks[CALLERS];
    CHECK_EQ(csp_init_runtime(CALLERS + 1), 1); /* one executor is held by the function */
    for (int i = 0; i < CALLERS; ++i) {
        CHECK_EQ(pthread_create(&threads[i], NULL, ask_on_thread, NULL), 0);
        CHECK_EQ(mc_spawn(0, ask_on_microthread, NULL, NULL, &tasks[i]), MC_OK);
    }
    for (int i = 0; i < CALLERS; ++i) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
        CHECK_EQ(mc_join(tasks[i], MC_FOREVER, NULL), MC_OK);
    }
    CHECK_EQ(bootstraps, 1);
    CHECK(inner != 0 && inner != __mc_machine_runtime_managed_current_u64());
    __mc_machine_runtime_free(inner);
    CHECK_EQ(__mc_machine_runtime_managed_shutdown_u64(), 1);
    csp_shutdown_runtime();
    return 0;
}
