// An executor: one thread's tasks, timers, inbox and driver, and the switches between the tasks on it. Its own context is
// the idle fiber, which runs when nothing else does: it drains the inbox, fires timers, runs steps and sleeps.
//
// It serves in two ways. Alone (single-processor mode) its owner is a thread of the program's, whose stack is one more
// task, and the idle context also decides whether the world is closed: executor.cpp. As one of many it has a thread of
// its own, a queue that others steal from, and a place in the pool's thread bed: many.cpp. In simulation it serves alone, but
// the simulator says whose turn it is: simulated.cpp.
//
// Every switch goes through jump(): the side that arrives first completes what the side that left had begun (a
// parking, a yield, or the end of a task), see park.hpp. Executor's thread only, unless said otherwise.
#pragma once

#include "base/inbox.hpp"
#include "base/prng.hpp"
#include "fiber/overflow.hpp"
#include "fiber/stack.hpp"
#include "sched/awake_flag.hpp"
#include "sched/driver.hpp"
#include "sched/local_queue.hpp"
#include "sched/park.hpp"
#include "sched/reclaim.hpp"
#include "sched/run_queue.hpp"
#include "sched/simulation.hpp"
#include "sched/thread_bed.hpp"
#include "sched/timer.hpp"
#include "sched/wheel.hpp"

#include <cstdint>

namespace mc::sched {

class Executor;
class Pool;

// The ended task's stack is gone. Frees its slot when nobody can join it any more; defined in spawn.cpp.
void task_left(Task &task, TaskSlab::Cache *cache) noexcept;
uint64_t take_task_ids(uint64_t count) noexcept; // spawn.cpp: the first of so many

// park.cpp: registering with a scope, or being cancelled by it at once.
void enter_scope(Parking &parking) noexcept;

// park.cpp: parking's half for threads that own no executor.
void park_foreign(Task &task, Parking &parking) noexcept;
// park.cpp: waking what goes neither on this executor's queue nor into its next slot. here: the calling thread's executor,
// or null; home: the task's, read before its word was stored (null: a foreign thread).
void wake_elsewhere(Executor *here, Executor *home, Task *task) noexcept;
extern const Timer::Action park_timeout;

// What the thread slot points to: who runs on this thread. Of an executor's thread it is part of the executor.
struct ThreadContext {
    Executor *executor = nullptr; // null: a foreign thread
    Task *running = nullptr;
    uint32_t no_switch = 0;           // depth of callbacks (tx, steps) in which nothing may block or switch
    uint32_t reductions = UINT32_MAX; // runtime calls until the running task's quantum is used up; counted by spend()
    base::Prng prng{0};
    uint32_t reading = 0;                    // depth of Reading, each of which counts in no_switch too
    ForeignReader *foreign_reader = nullptr; // of a foreign thread
    bool service = false;                    // one of the library's own, which never becomes the owner
};

class Executor {
public:
    static constexpr uint32_t load_of_one = 1024; // one task, running or runnable
    static constexpr uint32_t most_next_in_a_row = 16;

    // Null without memory. The caller then adopts a thread, or starts one.
    static Executor *create(Pool &pool, uint32_t index) noexcept;

    // --- alone
    // The calling thread becomes the owner; its stack is the task `owner()`: the one by which it was known, or a new one.
    bool adopt_thread(Task *known) noexcept;
    // The owner ends, or goes on as a foreign thread with its task. Its microthreads stay, for the next owner.
    void release_thread() noexcept;
    Task *give_up_thread() noexcept;
    // Gives up the turn, or sleeps when only sleepers are left. True while there is something to run or to wait for.
    bool run_once(int64_t deadline_ns = INT64_MAX) noexcept; // that it sleeps to at most
    // Until there is neither. False: the deadline came first.
    bool run_until_idle(int64_t deadline_ns = INT64_MAX) noexcept;
    // Owner thread, running: nobody else is runnable.
    bool runs_alone() const noexcept { return queue_.holds_only(thread_.running); }
    RunQueue &queue() noexcept { return queue_; }
    // Owner thread: nobody has sent us a task or armed a timer.
    bool nothing_arrived() const noexcept;
    bool nothing_came() const noexcept { return !inbox_.maybe_nonempty() && timers_.empty(); }

    // --- one of many; the pool calls these
    bool start_thread() noexcept;
    void join_thread() noexcept { own_thread_.join(); }
    // What is left when the thread has ended. The caller is the only one to touch either executor's queues.
    void give_tasks_to(Executor &other) noexcept;
    void give_inbox_to(Executor &other) noexcept;
    void expect_strays() noexcept { strays_ = true; } // the first one, when others have stopped
    bool set_wheel_segments(uint32_t segments) noexcept { return wheel_.set_segments(segments); } // while it is empty
    // Any thread: work that a thief could take; for one that has announced its sleep.
    bool work_to_be_seen() const noexcept { return ring_.seen_nonempty() || wheel_.seen_nonempty(); }
    // Any thread: a step that ends waits is on its way. False: it was so already.
    bool note_ending_waits(bool on) noexcept { return (ending_waits_.exchange(on ? 1 : 0, sync::acq_rel) != 0) != on; }
    // For one that sleeps.
    bool next_is_empty() const noexcept { return next_.load(sync::relaxed) == nullptr; }
    uint64_t queued() const noexcept; // a hint
    // Any thread: a moving average of the tasks running and runnable here, in units of load_of_one. 0 while it sleeps.
    uint32_t load() const noexcept { return load_.load(sync::relaxed); }
    // Any thread: microthreads that began and ended here.
    uint64_t begun() const noexcept { return begun_.load(sync::relaxed); }
    uint64_t ended() const noexcept { return ended_.load(sync::acquire); } // acquire: pairs with reap
    // Any thread: the processor that its thread is pinned to, or -1.
    int32_t cpu() const noexcept { return cpu_.load(sync::relaxed); }
    // Any thread: a moving average of what a turn takes, while it works.
    int64_t turn_ns() const noexcept { return turn_ns_.load(sync::relaxed); }
    // Any thread: how often a task was begun or resumed here.
    uint64_t turns() const noexcept { return turns_.load(sync::relaxed); }
    bool many() const noexcept { return many_; }
    // Neither one of many nor simulated: the order is the one that single-processor mode promises.
    bool alone() const noexcept { return alone_; }
    // A runnable task that is not pinned, first in line: it runs when the running one leaves.
    void push_next(Task *task) noexcept;
    // Out of line: a runnable task of this pool's that is not to be the next.
    void push_tail_of_many(Task *task) noexcept;
    // Runnable tasks that are to run here join the tail. The second: linked through next; null is none.
    void accept(Task *task) noexcept;
    void accept_all(Task *first) noexcept;
    // Executor's thread: what is runnable here without asking others; the running task is in none of these.
    bool others_queued() const noexcept;
    // The running task has used up its quantum. Returns the context of the thread that it goes on on.
    ThreadContext *end_quantum() noexcept;

    // --- simulated
    // The running task calls the library: another one may go on first. Nothing else may be under way.
    bool simulated() const noexcept { return !alone_ && !many_; }
    void simulate_call() noexcept;
    // Lets those run that can; when there is nobody, waits for the next deadline, or its own. MC_OK: look again.
    int32_t wait_for_others(WaitsFor waits_for, int64_t deadline_ns) noexcept;
    // Gives the queued tasks of another runtime's first executor, which nobody runs, to this one.
    void take_over_inbox(Executor &from) noexcept { from.give_inbox_to(*this); }

    // --- both
    Pool &pool() const noexcept { return pool_; }
    uint32_t index() const noexcept { return index_; }
    // Executor's thread: the time of its last poll, at most 61 switches ago. Steady nanoseconds.
    int64_t clock_ns() const noexcept { return last_poll_ns_; }
    ThreadContext &thread() noexcept { return thread_; }
    Task *running() const noexcept { return thread_.running; }
    Task *owner() const noexcept { return owner_; }
    TimerHeap &timers() noexcept { return timers_; }
    Driver &driver() noexcept { return *driver_; }
    TaskSlab::Cache &task_cache() noexcept { return task_cache_; }
    fiber::StackCache &stack_cache() noexcept { return stack_cache_; }
    fiber::AltStack &alt_stack() noexcept { return alt_stack_; }
    base::EpochReader &reader() noexcept { return reader_; }
    void count_begun() noexcept { begun_.store(begun_.load(sync::relaxed) + 1, sync::relaxed); }
    uint64_t take_id() noexcept;
    uint32_t quantum_of(const Task &task) const noexcept; // in reductions

    // Makes a runnable task join the tail. Any thread.
    void enqueue(Task *task) noexcept;
    // Any thread: sends a runnable task here, and ends the executor's sleep.
    void send(Task *task) noexcept;

    // The running task gives up the turn.
    void yield() noexcept;
    // A cooperative microthread's call while it computes: polls now and then, and yields when the quantum is over.
    void checkpoint() noexcept;
    // The running task, its word in parking, leaves.
    void switch_away(Parking &parking) noexcept;
    // A queued task runs at once, out of turn. Alone only.
    void run_out_of_turn(Task *task) noexcept;
    // A new task is the next to run; alone it joins the tail and runs at once.
    void run_new(Task *task) noexcept;
    // The running task has ended.
    [[noreturn]] void finish_running() noexcept;
    // What a new fiber does first.
    static void arrive_new(fiber::Context *previous) noexcept;

    // Drains the inbox and fires due timers.
    void poll() noexcept;
    // Arms a timer from any thread.
    void arm(Timer &timer) noexcept;

private:
    Executor(Pool &pool, uint32_t index, Driver *driver) noexcept
        : alone_(simulator() == nullptr), driver_(driver), pool_(pool), index_(index) {}
    ~Executor() = default;

    void note_leaving(Task *self) noexcept;
    void jump(Task *to) noexcept;
    void switch_to(Task *to) noexcept;   // whose stack is made
    void jump_to_new(Task *to) noexcept; // whose is not
    void begin(Task *task) noexcept;
    static Executor &arrive(fiber::Context *previous) noexcept;
    void complete(Task *left) noexcept;
    void complete_parking(Parking &parking) noexcept;
    void reap(Task *ended) noexcept;
    Task *next_task() noexcept;
    static void idle_entry(fiber::Context &self, fiber::Context *previous) noexcept;
    void run_step(Task *task) noexcept;
    int64_t timer_deadline() const noexcept;
    bool timers_are_dense(int64_t now) const noexcept {
        return gather_ns_ != gather_min_ns && now - last_fire_ns_ < rate_ns; // else it is long ago
    }
    void note_fired(uint32_t timers, int64_t now) noexcept;

    // alone: executor.cpp
    void idle_alone() noexcept;
    void sleep_alone() noexcept;
    bool owner_waits_for_ever() const noexcept;
    bool no_strays() const noexcept;
    bool world_looks_closed() noexcept;

    // simulated: simulated.cpp
    Task *next_simulated() noexcept;
    Task *begin_simulated(Task *chosen) noexcept;
    void leave_simulated(Task *chosen) noexcept;
    void yield_simulated() noexcept;
    void choose_simulated(Turn turn) noexcept;
    bool others_move() const noexcept;
    void idle_simulated() noexcept;

    // reclaim.cpp
    bool reclaim() noexcept;
    static void reclaim_step(void *executor) noexcept;
    void look_for_garbage(int64_t now) noexcept;
    void queue_reclaim_step() noexcept;
    void reclaim_in_turn() noexcept;
    bool reclaim_is_due() noexcept;
    bool reclaim_or_pause() noexcept;
    bool reclaim_before_sleep() noexcept;
    bool trim_before_sleep() noexcept;
    int64_t housekeeping_at() const noexcept { return std::min(reclaim_at_ns_, trim_at_ns_); }

    // one of many: many.cpp, and the first four in switch.hpp
    Task *next_of_many() noexcept;
    Task *take_next_or_queued() noexcept;
    Task *take_pinned() noexcept;
    void begin_turn(Task *task) noexcept;
    bool make_own_tasks() noexcept;
    bool prepare_owner(Task *known) noexcept;
    void bind_thread() noexcept;
    static void thread_main(void *self) noexcept;
    void end_state_of_own_task() noexcept;
    void call_thread_hook(const char *what, void (*hook)(void *, uint32_t)) noexcept;
    void idle_of_many() noexcept;
    void run(Task *task) noexcept;
    Task *choose() noexcept;
    Task *choose_of_many() noexcept;
    Task *take_from_wheel() noexcept;
    void begin_quantum(Task &task) noexcept;
    bool wheel_came_round(const Task &task) const noexcept;
    bool search() noexcept;
    bool take_injected() noexcept;
    bool steal_from(Executor &victim, bool everything) noexcept;
    bool waits_pay() const noexcept;
    bool wait_briefly() noexcept;
    bool linger() noexcept;
    void rest() noexcept;
    static int64_t gathered(int64_t deadline_ns) noexcept;
    int64_t rest_until() noexcept;
    void look_after_others() noexcept;
    bool take_what_is_late(Executor &other, int64_t now) noexcept;
    bool take_inbox_of(Executor &other) noexcept;
    void poll_of_many(int64_t now) noexcept;
    void watch_quantum(int64_t now) noexcept;
    void measure_load() noexcept;
    uint32_t fire(TimerHeap &timers, int64_t now) noexcept;
    void tell_late(int64_t now) noexcept;
    bool is_worth_a_wake(uint64_t tasks, int64_t now) const noexcept;
    int64_t told_after_ns(int64_t now) const noexcept;
    void measure_turns(int64_t now) noexcept;
    void leave_for(Parking &marker) noexcept;
    bool complete_marker(const Parking &marker, Task *left) noexcept;
    void push_pinned(Task *task) noexcept;

    // Their addresses alone, in parking_, say what the task that was left has done.
    static Parking task_ended_, task_yielded_, task_used_quantum_, task_moves_;

    // executor's thread only
    ThreadContext thread_;
    RunQueue queue_;             // alone
    Parking *parking_ = nullptr; // of the task that was left last; completed by the side that arrives
    uint32_t switches_left_ = 1; // until the next poll
    uint32_t poll_interval_ = 1; // in switches; adapts to what a switch costs here
    bool many_ = false;
    bool alone_;                  // see alone()
    bool lets_time_jump_ = false; // simulated: the idle context is to let it
    int64_t jump_to_ns_ = 0;      // then, to there
    bool strays_ = false;         // others have stopped, and we are the first: something may still be sent to them
    bool to_idle_ = false; // the next switch goes to the idle context: the wheel's turn has come, or the pool stops
    int64_t last_poll_ns_ = 0;
    static constexpr int64_t gather_min_ns = 100'000, gather_max_ns = 200'000;
    static constexpr int64_t rate_ns = 2'000'000;   // so long timers are counted, to see whether they are dense
    int64_t gather_ns_ = gather_min_ns;             // how long timers gather, see timer_deadline
    int64_t rated_since_ns_ = 0, rated_timers_ = 0; // how many have fired since then
    int64_t last_fire_ns_ = INT64_MIN / 2; // when timers fired last: those that follow closely wait to fire together
    uint32_t closed_looks_ = 0;            // how often in a row the world was found closed
    int64_t closed_check_ns_ = 0;          // how long to sleep before asking again whether the world is closed
    Task *owner_ = nullptr;
    Task *idle_ = nullptr;
    TaskSlab::Cache task_cache_;
    fiber::StackCache stack_cache_;
    fiber::AltStack alt_stack_;
    base::EpochReader reader_;
    char reader_name_[24] = {};
    Task *reclaim_task_ = nullptr;      // the step
    bool reclaim_queued_ = false;       // it is in our queue
    int64_t reclaim_pause_ns_ = 0;      // how long to sleep while something holds reclamation up
    int64_t reclaim_at_ns_ = INT64_MAX; // when to try again
    int64_t trim_at_ns_ = INT64_MAX;    // when unused stacks' memory is to go back
    uint64_t next_id_ = 0;              // of the block of ids that it draws from
    uint64_t ids_left_ = 0;

    // executor's thread only, one of many
    uint32_t next_in_a_row_ = 0;
    Task *step_ = nullptr; // chosen, and to be run by the idle context; also in simulation
    Task *pinned_head_ = nullptr;
    Task *pinned_tail_ = nullptr;
    bool tells_later_ = false; // timers fire: whether others are told of what they make runnable is decided afterwards
    int64_t untold_ns_ = 0;    // since when nobody has been told of such; 0: there are none
    bool waited_in_vain_ = false; // just now, for an answer
    bool pinned_turn_ = false;
    Executor *move_to_ = nullptr;  // of task_moves_
    uint64_t watched_turn_ = 0;    // the turn that ran at the last poll
    int64_t watched_since_ns_ = 0; // the first poll in it
    int64_t wheel_turned_ns_ = 0;
    uint64_t measured_turns_ = 0; // at the last poll that measured
    int64_t measured_ns_ = 0;     // its time; 0: it slept since
    bool got_up_ = false;         // slept, and has not run anything since
    int64_t linger_ns_ = 25'000;  // how long to linger; shrinks while that does not pay
    Sleeper sleeper_;             // see thread_bed.hpp
    sync::thread own_thread_;

    // any thread; what others write has lines of its own, and what they only read at every message
    alignas(64) base::Inbox<Task, &Task::next> inbox_;
    alignas(64) AwakeFlag awake_;
    alignas(64) TimerHeap timers_;
    LocalQueue ring_;                      // runnable, may be stolen
    Wheel wheel_;                          // used up their quantum
    sync::atomic<Task *> next_{nullptr};   // set by us alone; taken by us, or by the sentry
    sync::atomic<uint64_t> turns_{0};      // written by us
    sync::atomic<uint64_t> seen_turns_{0}; // written by the sentry
    sync::atomic<uint64_t> begun_{0};      // written by us
    sync::atomic<uint64_t> ended_{0};      // written by us
    sync::atomic<uint32_t> load_{0};       // written by us
    sync::atomic<uint32_t> resting_{0};    // written by us
    sync::atomic<int32_t> cpu_{-1};        // written by us: pinned to it
    sync::atomic<int64_t> turn_ns_{0};     // written by us
    sync::atomic<uint32_t> ending_waits_{0};

    // immutable
    Driver *const driver_; // wake: any thread; else ours
    Pool &pool_;
    const uint32_t index_;
};

} // namespace mc::sched
