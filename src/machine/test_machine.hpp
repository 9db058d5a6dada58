// What the tests of machines share: a runtime whose hooks write down what they are told, machines whose handlers are lambdas,
// and boxes that are counted.
#pragma once

#include "base/prng.hpp"
#include "machine/test_blob.hpp"
#include "testing/test.hpp"

#include <mc/bridge.h>
#include <mc/machine.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mc::machine::test {

using Envelope = mc_machine_envelope_t;
using Txn = mc_machine_dispatch_txn_t;

// A call of a handler.
struct Call {
    uint32_t id;
    uint64_t state;
    const Envelope &env;
    Txn &txn;
    uint64_t &code;
};
using Handler = std::function<mc_dispatch_result_t(Call)>;

inline mc_dispatch_result_t call_handler(void *context, mc_machine_id_t id, uint64_t state, const Envelope *env,
                                         Txn *txn, uint64_t *code) {
    return (*static_cast<Handler *>(context))({id, state, *env, *txn, *code});
}

inline Envelope envelope(uint64_t kind, uint64_t payload0 = 0, uint64_t payload1 = 0) {
    Envelope env{};
    env.kind = kind;
    env.payload0 = payload0;
    env.payload1 = payload1;
    return env;
}

// --- boxes -------------------------------------------------------------------------------------------------------------

constexpr uint64_t owned = MC_PAYLOAD_LAYOUT_OWNED_MASK;

// How often each box was dropped, by a layout that says so.
struct Drops {
    static constexpr uint64_t layout = 4001;
    static inline std::map<uint64_t, int> seen;
    static inline std::function<void(uint64_t)> then; // what else a drop does
    static void drop(void *box) {
        const auto word = reinterpret_cast<uintptr_t>(box);
        ++seen[word];
        if (const auto also = then)
            also(word);
    }
    static void begin() {
        seen.clear();
        then = nullptr;
        mc_machine_runtime_register_payload_drop(layout, drop);
    }
};

inline uint64_t box(uint64_t content = 0) {
    void *block = __mc_alloc(sizeof content, alignof(uint64_t));
    cr_assert_not_null(block);
    std::memcpy(block, &content, sizeof content);
    return reinterpret_cast<uintptr_t>(block);
}
inline Envelope boxed(uint64_t kind, uint64_t the_box) { return envelope(kind, the_box, owned | Drops::layout); }
inline uint64_t live() { return __mc_alloc_live_blocks(); }

// --- a runtime ---------------------------------------------------------------------------------------------------------

// Texts of what its hooks were told: "dead 3 full", "fault 1 code 7", "request 5 of 1 at 9 completed".
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

    uint32_t spawn(uint32_t cap = 8) {
        mc_machine_id_t id = 0;
        cr_assert_eq(mc_machine_runtime_spawn(&rt, cap, &id), 1);
        return id;
    }
    // Bound, and running unless it is not to.
    uint32_t machine(Handler handler, uint32_t cap = 8, bool running = true) {
        const uint32_t id = spawn(cap);
        bind(id, std::move(handler));
        if (running)
            cr_assert_eq(mc_machine_runtime_start(&rt, id), 1);
        return id;
    }
    void bind(uint32_t id, Handler handler) {
        handlers_.push_back(std::make_unique<Handler>(std::move(handler)));
        mc_machine_runtime_bind_dispatch(&rt, id, call_handler, handlers_.back().get());
    }
    // One that only takes its mail.
    uint32_t sink(uint32_t cap = 8) {
        return machine([](Call) { return MC_DISPATCH_OK; }, cap);
    }

    int send(uint32_t dst, const Envelope &env) { return mc_machine_runtime_enqueue(&rt, dst, &env); }
    int send(uint32_t dst, uint64_t kind) { return send(dst, envelope(kind)); }
    uint64_t ask(uint32_t src, uint32_t dst, const Envelope &env) {
        uint64_t id = 0;
        (void)mc_machine_runtime_request(&rt, src, dst, &env, &id);
        return id;
    }
    int reply(uint32_t src, uint64_t cap, const Envelope &env) { return mc_machine_runtime_reply(&rt, src, cap, &env); }
    bool stop(uint32_t id) { return mc_machine_runtime_stop(&rt, id) != 0; }

    // A step's status, as the bridge tells it.
    uint64_t step() { return mc_machine_runtime_step_u64(word()); }
    // Until nothing is ready. How many steps.
    int run() {
        int steps = 0;
        while (step() != MC_STEP_IDLE)
            ++steps;
        return steps;
    }

    uint64_t word() const { return reinterpret_cast<uintptr_t>(&rt); }
    int lifecycle(uint32_t id) const { return mc_machine_runtime_lifecycle(&rt, id); }
    uint32_t mail(uint32_t id) const { return mc_machine_runtime_mailbox_len(&rt, id); }
    uint32_t ready() const { return mc_machine_runtime_ready_len(&rt); }
    uint32_t requests() const { return mc_machine_runtime_pending_len(&rt); }
    uint64_t ended(mc_pending_cleanup_reason_t reason) const {
        return mc_machine_runtime_pending_cleanup_count(&rt, reason);
    }
    uint64_t state(uint32_t id) const { return mc_machine_runtime_state(&rt, id); }

    // What the hooks were told since the last look.
    std::string told() {
        std::string all;
        for (const std::string &line : log)
            all += (all.empty() ? "" : "; ") + line;
        log.clear();
        return all;
    }

    mc_machine_runtime_t rt;
    std::vector<std::string> log;
    std::function<void(const std::string &)> in_hook; // what else every hook does

private:
    void tell(const std::string &line) {
        log.push_back(line);
        if (const auto hook = in_hook) // a copy: it may be replaced meanwhile
            hook(line);
    }
    static void dead_letter(void *self, mc_machine_id_t dst, mc_dead_letter_reason_t reason, const Envelope *env) {
        static const char *const names[] = {"?", "unknown", "stopped", "faulted", "full", "capability"};
        static_cast<World *>(self)->tell("dead " + std::to_string(dst) + " " + names[reason] + " kind " +
                                         std::to_string(env->kind));
    }
    static void fault(void *self, mc_machine_id_t id, uint64_t code) {
        static_cast<World *>(self)->tell("fault " + std::to_string(id) + " code " + std::to_string(code));
    }
    static void pending(void *self, mc_machine_id_t requester, uint64_t id, uint64_t site,
                        mc_pending_cleanup_reason_t reason) {
        static const char *const names[] = {"?", "completed", "stopped", "faulted", "timeout"};
        static_cast<World *>(self)->tell("request " + std::to_string(id) + " of " + std::to_string(requester) + " at " +
                                         std::to_string(site) + " " + names[reason]);
    }

    std::vector<std::unique_ptr<Handler>> handlers_;
};

// What the hooks were told since the last look, one after another.
inline void expect_told(World &world, const std::string &expected) {
    const std::string told = world.told();
    cr_assert(told == expected, "told \"%s\", not \"%s\"", told.c_str(), expected.c_str());
}

} // namespace mc::machine::test
