// Machines on executors: the host of an attached runtime. Each of its pumps is a step of the pool's that dispatches one machine
// after another, as long as there are any.
//
// A shard is a queue of machines that are ready, and its pump; there is one for each executor. Who makes machines ready puts
// them into a shard (a pump into its own), under the shard's lock; when the shard is not served, it is from then on, and the
// pump is queued. A pump puts in what its dispatch has made ready with the lock that it takes for the next, if no user is called
// before that. A pump that finds its shard empty takes half of another one's; when there is nothing anywhere, its shard is
// not served any more, which it decides under the shard's lock: so nothing is ever in a shard that is not served. When a
// shard becomes long, another one's pump is queued to help; one that has found nothing to do asks for more the next time. And once
// a millisecond, while pumps run, somebody looks whether machines wait while a pump could help: behind a handler that takes
// long.
//
// A pump gives its executor to others after some dispatches. Fairness among machines: first come, first served, within a shard.
//
// Machines that are polled wait in a queue of their own for who takes them (token.hpp).
//
// Lifetime: a host is used again and never freed, and who calls holds it by a pin (machine::Host); pumps hold one while their
// shard is served, and tokens. When a closed host is not held any more, whoever was last ends the engine.
#pragma once

#include "base/handle.hpp"
#include "base/list.hpp"
#include "base/slab.hpp"
#include "machine/runtimes.hpp"
#include "sched/pool.hpp"
#include "sched/wait_list.hpp"

#include <mc/machine.h>

#include <cstdint>

namespace mc::compose {

class Token;

// Nanoseconds later, or the end of time.
inline int64_t later(int64_t time_ns, int64_t by_ns) noexcept {
    return time_ns > INT64_MAX - by_ns ? INT64_MAX : time_ns + by_ns;
}

class MachineHost final : public machine::Host, public base::SlabItem<MachineHost> {
public:
    using Engine = machine::Engine<machine::Par>;
    using Machine = machine::Machine;

    static constexpr uint32_t most_shards = 64;

    // The runtime of that name is attached to the pool, which was found by that handle. MC_OK; MC_E_STALE, MC_E_BUSY (attached already,
    // machines are ready, or a call is under way), MC_E_SHUTDOWN, MC_E_NOMEM.
    static int32_t attach(uint64_t word, sched::Pool &pool, uint64_t handle) noexcept;
    // The runtime of that name, which is attached to this host, is stepped from now on. MC_E_BUSY: it is not idle.
    int32_t detach(uint64_t word) noexcept;
    // Out of the registry: everything ends, when nobody is in it any more. Waits for pumps, where the caller may wait.
    void drop() noexcept;

    // By who has a pin. Until no machine is ready and no handler runs. MC_OK or a status of the wait; MC_E_SHUTDOWN: the runtime was
    // dropped.
    int32_t wait_until_idle(sched::ThreadContext &thread, int64_t deadline_ns) noexcept;
    // Sends a request and waits for the answer. MC_OK; MC_E_NOENT, MC_E_CLOSED, MC_E_FULL as for a send; a status of the wait;
    // MC_E_SHUTDOWN: the runtime was dropped.
    int32_t ask(sched::ThreadContext &thread, Engine &engine, uint32_t dst, const mc_machine_envelope_t &request,
                int64_t deadline_ns, mc_machine_envelope_t *answer) noexcept;

    // Waits for room in the mailbox. As ask.
    int32_t send(sched::ThreadContext &thread, Engine &engine, uint32_t dst, const mc_machine_envelope_t &envelope,
                 int64_t deadline_ns) noexcept;

    // --- polling; by who has a pin

    // Up to `most` tokens, of machines that are polled and have mail (id 0), or of the one: waits for the first. MC_OK and how
    // many; a status of the wait; MC_E_SHUTDOWN: the runtime was dropped; MC_E_NOMEM.
    int32_t poll(sched::ThreadContext &thread, uint32_t id, int64_t deadline_ns, mc_machine_polled *out, uint32_t most,
                 uint32_t *count) noexcept;
    // 0: requests do not time out by the clock.
    void set_request_timeout(int64_t timeout_ns) noexcept;
    // 0: tokens do not expire.
    void set_token_timeout(int64_t timeout_ns) noexcept;

    // --- machine::Host
    void ready(Machine *first) noexcept override;
    void polled(Machine *first) noexcept override;
    void stop_polled(Machine *machine, uint32_t alone) noexcept override;
    void wake(const machine::Waker &waker) noexcept override;
    int64_t now_ns() const noexcept override;
    int64_t about_now_ns() const noexcept override;
    uint64_t ready_length() const noexcept override;
    void watch_timeouts() noexcept override;

private:
    friend class Token;

    struct alignas(64) Shard {
        base::Spinlock lock;
        // guarded by lock
        bool served = false;
        bool turning = false; // its pump dispatches, now
        uint32_t length = 0;
        Machine *first = nullptr;
        Machine *last = nullptr;

        // immutable while the host is open
        MachineHost *host = nullptr;
        sched::Task *step = nullptr;
        Engine::Dispatch *dispatch = nullptr;

        void append(Machine *from, Machine *to, uint32_t count) noexcept;
        void append_all(Machine *chain) noexcept;
        Machine *take() noexcept;
        Machine *take_at(uint32_t position) noexcept;
    };
    // A step at a time: a timer queues it. It has a pin while it is armed, queued or running.
    struct Alarm : sched::Timer {
        MachineHost *host = nullptr;
        sched::Task *step = nullptr;
        sync::atomic<uint32_t> set{0};
        sync::atomic<uint32_t> sooner{0}; // it is to be looked at anew as soon as it is armed
    };

    int32_t begin(uint64_t word, sched::Pool &pool, machine::Engine<machine::Seq> &from) noexcept;
    bool make_shards(uint32_t count) noexcept;
    void release_shards() noexcept;
    void unused() noexcept override;

    Shard *shard_of_caller() noexcept;
    bool begin_serving(Shard &shard) noexcept;
    bool end_serving(Shard &shard) noexcept;
    void serve(Shard &shard) noexcept;
    bool look_for_help(const Shard &busy) noexcept;
    static void pump(void *shard) noexcept;
    void serve_turn(Shard &shard) noexcept;
    Machine *next(Shard &shard, Machine *made) noexcept;
    bool needs_help(uint32_t length) const noexcept;
    bool steal_for(Shard &shard) noexcept;
    void one_more() noexcept;
    void one_less() noexcept;

    static void fire(sched::Timer &timer, uint64_t ticket, int64_t now_ns) noexcept;
    static uint64_t no_ticket(sched::Timer &) noexcept { return 0; }
    static const sched::Timer::Action alarm_action_;
    bool make_alarm(Alarm &alarm, void (*step)(void *), const char *name) noexcept;
    void set_alarm(Alarm &alarm, int64_t deadline_ns) noexcept;
    void arm(Alarm &alarm, int64_t deadline_ns) noexcept;
    void cancel(Alarm &alarm) noexcept;
    static void look_at_clock(void *host) noexcept;
    static void look_at_shards(void *host) noexcept;
    static void look_at_tokens(void *host) noexcept;
    void arm_again(Alarm &alarm, int64_t deadline_ns) noexcept;
    void set_anew(Alarm &alarm) noexcept;
    void cancel_alarms() noexcept;
    void restore_alarms() noexcept;
    int64_t next_expiry_ns() noexcept;
    bool busy() noexcept;
    bool turns() noexcept;
    void take_idle_waiters(sched::WaitList::Taken *taken) noexcept;
    void tell_who_drops() noexcept;
    bool wait_in_list(sched::ThreadContext **here, Engine &engine, uint32_t dst, machine::Guest &guest,
                      int64_t deadline_ns, int32_t *status) noexcept;
    void wait_until_nothing_turns(sched::ThreadContext &thread) noexcept;

    // Machines that wait to be polled.
    struct PollList {
        Machine *first = nullptr;
        Machine *last = nullptr;

        void append(Machine *machine) noexcept;
        bool remove(const Machine *machine) noexcept;
        Machine *take() noexcept;
    };
    // Those that are polled alone, and who polls them, by their ids; place 0: those that are not, and who polls any.
    struct PollPlace {
        PollList machines;
        sched::WaitList pollers;
    };
    static constexpr uint32_t poll_places = 512;
    PollPlace &poll_place(uint32_t id) noexcept { return polled_[id == 0 ? 0 : 1 + id % (poll_places - 1)]; }
    Machine *find_polled(uint32_t id) noexcept;
    Machine *take_polled(uint32_t id) noexcept;
    void queue_polled(Machine *machine) noexcept;
    void take_poller(uint32_t id, sched::WaitList::Taken *taken) noexcept;
    void pass_on(uint32_t id) noexcept;
    bool wait_for_polled(sched::ThreadContext &thread, uint32_t id, int64_t deadline_ns, int32_t *status) noexcept;
    void end_polling() noexcept;
    int64_t expire_tokens(int64_t now_ns) noexcept;

    // immutable while it is open
    sched::Pool *pool_ = nullptr;
    uint64_t pool_handle_ = 0;
    Shard *shards_ = nullptr;
    uint32_t count_ = 0;
    bool simulated_ = false;
    Alarm clock_; // for requests that time out
    Alarm watch_; // for machines that wait behind a handler that takes long

    // any thread (atomic)
    sync::atomic<uint64_t> idle_shards_{0}; // a hint: those that are not served, one bit each
    sync::atomic<uint32_t> help_at_{2};     // a hint: how long a shard must be before another pump helps

    Alarm expiry_;                              // for tokens
    sync::atomic<int64_t> token_timeout_ns_{0}; // any thread; 0: never

    base::Spinlock polled_lock_;  // innermost, but for what parking takes
    PollPlace *polled_ = nullptr; // what is in them: guarded by polled_lock_
    bool polling_ended_ = false;  // guarded by polled_lock_
    base::Spinlock tokens_lock_;  // innermost
    base::List<Token> tokens_;    // that are open, the oldest first; guarded by tokens_lock_

    base::Spinlock idle_lock_; // before those of shards, and what parking takes; else innermost
    uint64_t busy_ = 0; // shards that are served, and polled machines that have mail or a token; guarded by idle_lock_
    bool live_ = false; // likewise: it has an engine to end
    sched::WaitList idle_waiters_; // likewise
};

// Ends a runtime that is attached, and out of the registry.
void drop_attached(machine::Host &host) noexcept;

} // namespace mc::compose
