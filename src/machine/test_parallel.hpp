// For tests of attached machines without a host: who is ready is in one list, from which the test's threads take.
#pragma once

#include "machine/engine.hpp"
#include "machine/step.hpp"

#include "testing/systematic.hpp"
#include "testing/test.hpp"

#include <functional>
#include <utility>
#include <vector>

namespace mc::machine::testing {

using mc::testing::check;

using Attached = Engine<Par>;
using Envelope = mc_machine_envelope_t;
using Txn = mc_machine_dispatch_txn_t;

struct World;

struct Call {
    World &world;
    EmitContext &emit;
    uint32_t id;
    uint64_t state;
    const Envelope &env;
    Txn &txn;

    void set(uint64_t next) const {
        txn.has_next_state = 1;
        txn.next_state = next;
    }
};

constexpr uint32_t most_threads = 32;

// Who is ready, and what is to be undone at the end.
struct World final : Host {
    struct Bound {
        World *world;
        std::function<mc_dispatch_result_t(const Call &)> handler;
    };

    World() {
        stepped_ = Engine<Seq>::create(nullptr);
        check(stepped_ != nullptr, "no memory");
    }
    ~World() {
        if (engine != nullptr) {
            while (Machine *machine = take())
                engine->forget(machine);
            Attached::end(engine);
        }
        for (Bound *bound : bound_)
            delete bound;
    }

    // Before attach.
    uint32_t machine(uint32_t room, std::function<mc_dispatch_result_t(const Call &)> handler, bool running = true) {
        const uint32_t id = stepped_->spawn(room);
        bound_.push_back(new Bound{this, std::move(handler)});
        check(stepped_->bind_function(id, call, bound_.back()), "not bound");
        if (running)
            check(stepped_->start(id), "not started");
        return id;
    }
    void attach(OnFull on_full = OnFull::fault, OnLateReply on_late = OnLateReply::fault) {
        stepped_->on_full = on_full;
        stepped_->on_late_reply = on_late;
        stepped_->hooks.context = this;
        stepped_->hooks.pending = [](void *self, mc_machine_id_t, uint64_t, uint64_t,
                                     mc_pending_cleanup_reason_t reason) {
            (void)static_cast<World *>(self)->ended[reason].fetch_add(1, sync::relaxed);
        };
        engine = Attached::take_over(*stepped_, this);
        check(engine != nullptr, "no memory");
        Engine<Seq>::end(stepped_);
    }
    void send(uint32_t dst, uint64_t kind = 1, uint64_t payload = 0) {
        check(engine->enqueue(dst, plain_envelope(0, kind, payload, 0)) == MC_MAILBOX_ENQUEUE_OK, "not sent");
    }
    // Dispatches until nothing is ready, or so often.
    void pump(uint32_t most = UINT32_MAX) {
        Attached::Dispatch dispatch(engine);
        void *&mine = slot();
        for (Machine *machine = nullptr; most != 0 && (machine = take()) != nullptr; --most) {
            (void)engine->run(dispatch, machine, &mine);
            if (Machine *made = std::exchange(dispatch.ready, nullptr); made != nullptr)
                ready(made);
        }
        engine->leave(dispatch);
    }
    uint32_t all_ended() const {
        uint32_t ends = 0;
        for (const sync::atomic<uint32_t> &count : ended)
            ends += count.load(sync::relaxed);
        return ends;
    }

    // --- Host
    void ready(Machine *first) noexcept override {
        const base::SpinGuard guard(lock_);
        (last_ == nullptr ? first_ : last_->next) = first;
        for (last_ = first; last_->next != nullptr;)
            last_ = last_->next;
    }
    void polled(Machine *) noexcept override {}
    void stop_polled(Machine *, uint32_t) noexcept override {}
    void wake(const Waker &) noexcept override {}
    int64_t now_ns() const noexcept override { return 1; }
    int64_t about_now_ns() const noexcept override { return 1; }
    uint64_t ready_length() const noexcept override { return 0; }
    void watch_timeouts() noexcept override {}
    void unused() noexcept override {}

    Attached *engine = nullptr;
    sync::atomic<uint32_t> ended[5] = {};

private:
    static mc_dispatch_result_t call(void *context, mc_machine_id_t id, uint64_t state, const Envelope *env, Txn *txn,
                                     uint64_t *) {
        auto &bound = *static_cast<Bound *>(context);
        auto *emit = static_cast<EmitContext *>(bound.world->slot());
        return bound.handler({*bound.world, *emit, id, state, *env, *txn});
    }
    Machine *take() noexcept {
        const base::SpinGuard guard(lock_);
        Machine *machine = first_;
        if (machine != nullptr) {
            first_ = machine->next;
            if (first_ == nullptr)
                last_ = nullptr;
        }
        return machine;
    }

    Engine<Seq> *stepped_;
    std::vector<Bound *> bound_;
    // The calling thread's own: threads of a run have numbers that follow one another, but for the body's.
    void *&slot() noexcept {
        const uint32_t number = sync::thread_number();
        return slots_[number == body_ ? 0 : 1 + number % (most_threads - 1)];
    }

    const uint32_t body_ = sync::thread_number();
    void *slots_[most_threads] = {}; // each thread's own
    base::Spinlock lock_;
    Machine *first_ = nullptr; // guarded by lock_
    Machine *last_ = nullptr;
};

inline mc::testing::Exploration exploration(const char *name, int preemptions = 2) {
    mc::testing::Exploration all{.name = name};
    all.preemptions = preemptions;
    all.stale = 0; // all data is under locks, whose orders have tests of their own
    all.timeouts = 0;
    all.spurious = 0;
    all.max_runs = 8'000;
    all.isolate = true;
    all.real_runs = 100;
    return all;
}

// The kinds of what waits in a mailbox, as digits.
inline uint64_t mail_of(World &world, uint32_t id) {
    Machine *machine = world.engine->table().find(id);
    uint64_t digits = 0;
    while (machine != nullptr && !machine->mail.empty()) {
        Envelope envelope;
        machine->mail.pop(&envelope);
        digits = 10 * digits + envelope.kind;
    }
    return digits;
}

} // namespace mc::machine::testing
