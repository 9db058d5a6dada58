// What the tests of attached machines share: a runtime whose hooks count, and machines whose handlers are lambdas that may run on any
// executor.
#pragma once

#include "base/spinlock.hpp"
#include "csp/test_many.hpp"
#include "testing/test.hpp"

#include <mc/bridge.h>
#include <mc/machine.h>
#include <mc/scope.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mc::compose::test {

using Envelope = mc_machine_envelope_t;
using Txn = mc_machine_dispatch_txn_t;
using csp::testing::Many;
using csp::testing::scaled;

struct Call {
    uint32_t id;
    uint64_t state;
    const Envelope &env;
    Txn &txn;
    uint64_t &code;

    void set(uint64_t next) const {
        txn.has_next_state = 1;
        txn.next_state = next;
    }
};
using Handler = std::function<mc_dispatch_result_t(Call)>;

inline mc_dispatch_result_t call_handler(void *context, mc_machine_id_t id, uint64_t state, const Envelope *env,
                                         Txn *txn, uint64_t *code) {
    return (*static_cast<Handler *>(context))({id, state, *env, *txn, *code});
}

// Counts what its hooks are told, by any thread.
class World {
public:
    World() {
        mc_machine_runtime_init(&rt);
        mc_machine_runtime_set_hooks(&rt, dead_letter, fault, this);
        mc_machine_runtime_set_pending_hook(&rt, pending);
    }
    ~World() { mc_machine_runtime_drop(&rt); }
    World(const World &) = delete;
    World &operator=(const World &) = delete;

    uint32_t machine(Handler handler, uint32_t cap = 8, bool running = true) {
        mc_machine_id_t id = 0;
        cr_assert_eq(mc_machine_runtime_spawn(&rt, cap, &id), 1);
        auto owned = std::make_unique<Handler>(std::move(handler));
        mc_machine_runtime_bind_dispatch(&rt, id, call_handler, owned.get());
        {
            const base::SpinGuard guard(lock_);
            handlers_.push_back(std::move(owned));
        }
        if (running)
            cr_assert_eq(mc_machine_runtime_start(&rt, id), 1);
        return id;
    }
    void attach() { cr_assert_eq(mc_machine_attach(&rt, 0), MC_OK); }
    void idle() { cr_assert_eq(mc_machine_run_until_idle(&rt, MC_FOREVER), MC_OK); }
    int send(uint32_t dst, uint64_t kind, uint64_t payload0 = 0, uint64_t payload1 = 0) {
        return static_cast<int>(mc_machine_runtime_send_u64(word(), dst, kind, payload0, payload1));
    }
    int32_t ask(uint32_t dst, uint64_t kind, uint64_t payload0, Envelope *reply, int64_t deadline_ns = MC_FOREVER) {
        return mc_machine_ask(&rt, dst, kind, payload0, 0, deadline_ns, reply);
    }
    uint64_t word() const { return reinterpret_cast<uintptr_t>(&rt); }
    int lifecycle(uint32_t id) const { return mc_machine_runtime_lifecycle(&rt, id); }
    uint64_t state(uint32_t id) const { return mc_machine_runtime_state(&rt, id); }
    uint64_t ended(mc_pending_cleanup_reason_t reason) const {
        return mc_machine_runtime_pending_cleanup_count(&rt, reason);
    }

    mc_machine_runtime_t rt;
    // any thread (atomic)
    sync::atomic<uint64_t> dead[6] = {};
    sync::atomic<uint64_t> faults{0}, last_fault{0};
    sync::atomic<uint64_t> ends[5] = {};
    sync::atomic<uint64_t> of_askers{0}; // of those

private:
    static void dead_letter(void *self, mc_machine_id_t, mc_dead_letter_reason_t reason, const Envelope *) {
        (void)static_cast<World *>(self)->dead[reason].fetch_add(1, sync::relaxed);
    }
    static void fault(void *self, mc_machine_id_t, uint64_t code) {
        (void)static_cast<World *>(self)->faults.fetch_add(1, sync::relaxed);
        static_cast<World *>(self)->last_fault.store(code, sync::relaxed);
    }
    static void pending(void *self, mc_machine_id_t requester, uint64_t, uint64_t, mc_pending_cleanup_reason_t reason) {
        if (requester == 0)
            (void)static_cast<World *>(self)->of_askers.fetch_add(1, sync::relaxed);
        (void)static_cast<World *>(self)->ends[reason].fetch_add(1, sync::relaxed);
    }

    base::Spinlock lock_;
    std::vector<std::unique_ptr<Handler>> handlers_; // guarded by lock_
};

inline uint64_t get(const sync::atomic<uint64_t> &word) { return word.load(sync::acquire); }

inline mc_dispatch_result_t take(Call) { return MC_DISPATCH_OK; }

// A handler that sends there, and whose state is 1 once it has.
inline Handler sends_to(uint32_t dst) {
    return [=](Call call) {
        (void)__mc_machine_emit_send(dst, 1, 0, 0);
        call.set(1);
        return MC_DISPATCH_OK;
    };
}

// Calls body(world) in single-processor mode and with each number of executors, with a runtime that is not attached yet.
template <class Body> void on_each(Body body) {
    for (const int executors : {0, 1, 2, 3}) {
        if (executors != 0)
            cr_assert_eq(csp_init_runtime(executors), 1);
        {
            World world;
            body(world);
        }
        cr_assert_eq(__mc_alloc_live_blocks(), 0, "%d executors", executors);
        if (executors != 0) {
            csp_schedule();
            csp_shutdown_runtime();
        }
    }
}

} // namespace mc::compose::test
