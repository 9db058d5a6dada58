#include "sched/blocking.hpp"

#include "base/alloc.hpp"
#include "base/assert.hpp"
#include "base/guarded.hpp"
#include "sched/primitive.hpp"
#include "sched/runtime.hpp"
#include "sched/task_state.hpp"

#include <cerrno>

namespace mc::sched {
namespace {

enum : uint32_t { asleep, awake }; // Worker::word

sync::atomic<uint32_t> all_calls{0};

// The next job on this thread is another task's: it must not find itself in a scope, or with an epoch pinned.
void end_what_fn_left() noexcept {
    ThreadContext *thread = current();
    if (thread == nullptr)
        return;
    if (has_state(*thread->running))
        end_task_state(*thread->running);
    if (thread->reading != 0) {
        base::log(MC_LOG_ERROR, MC_E_CONTEXT, "a blocking call ended with an epoch pinned");
        end_all_readings(*thread);
    }
}

} // namespace

uint32_t blocking_calls() noexcept { return all_calls.load(sync::relaxed); }

BlockingPool::BlockingPool(uint32_t max_threads, int64_t idle_ns) noexcept
    : idle_ns_(idle_ns), max_threads_(max_threads) {
    MC_INVARIANT(max_threads > 0, max_threads);
}

BlockingPool::~BlockingPool() {
    MC_INVARIANT(unjoined_ == 0 && queue_.empty(), unjoined_);
    while (Worker *worker = spare_.pop_front())
        base::destroy(worker);
}

// --- the caller ---

struct BlockingPool::JobParking : Parking {
    using Parking::Parking;
    BlockingPool *pool = nullptr;
    Job *job = nullptr;

    static void commit_job(Parking &parking) noexcept {
        auto &self = static_cast<JobParking &>(parking);
        self.job->epoch = self.epoch;
        self.pool->lock_.unlock(); // nothing of the caller's frame is touched from here on
    }
};

int32_t BlockingPool::call(ThreadContext &thread, Function fn, void *user, int64_t deadline_ns, Scope *scope,
                           int32_t *result) noexcept {
    int32_t status = refuse_to_begin(thread, deadline_ns, scope);
    if (status != MC_OK)
        return status;
    Job job(fn, user, thread.running);
    // relaxed: who looks holds our executor asleep, or counts us as one that runs
    (void)calls_.fetch_add(1, sync::relaxed);
    (void)all_calls.fetch_add(1, sync::relaxed);
    status = submit(job);
    if (status == MC_OK)
        status = wait_for(thread, job, deadline_ns, scope);
    (void)calls_.fetch_sub(1, sync::relaxed);
    (void)all_calls.fetch_sub(1, sync::relaxed);
    if (status == MC_OK && result != nullptr)
        *result = job.value;
    return status;
}

int32_t BlockingPool::submit(Job &job) noexcept {
    lock_.lock();
    if (closing_) {
        lock_.unlock();
        return MC_E_SHUTDOWN;
    }
    queue_.push_back(&job);
    ++queued_;
    Worker *sleeper = call_sleeper_if_needed();
    const bool one_more = queued_ > searching_ && threads_ < max_threads_;
    if (one_more) {
        ++threads_; // before it is there, or two callers start it
        ++searching_;
        ++unjoined_;
    }
    lock_.unlock();
    if (sleeper != nullptr)
        sync::futex_wake(sleeper->word, 1);
    if (one_more)
        start_thread();
    return MC_OK;
}

int32_t BlockingPool::wait_for(ThreadContext &thread, Job &job, int64_t deadline_ns, Scope *scope) noexcept {
    const bool foreign = thread.executor == nullptr;
    for (ThreadContext *here = &thread;; here = foreign ? here : &here_now()) {
        lock_.lock();
        if (job.state == State::done) { // it may have been faster than we
            lock_.unlock();
            return job.status;
        }
        const bool queued = job.state == State::queued;
        JobParking parking(JobParking::commit_job, queued ? deadline_ns : MC_FOREVER, queued ? scope : nullptr);
        parking.may_be_cancelled = queued; // or fn would use memory that we have left
        parking.one_lock = true;
        parking.waits_for = WaitsFor(WaitKind::blocking_call, reinterpret_cast<uintptr_t>(job.fn));
        parking.pool = this;
        parking.job = &job;
        const WakeReason reason = park(*here, parking);
        if (reason == WakeReason::ready)
            return job.status;
        if (withdraw(job))
            return status_of(reason);
    }
}

// The wait has ended: so does the job, if nobody has it yet.
bool BlockingPool::withdraw(Job &job) noexcept {
    base::SpinGuard guard(lock_);
    if (job.state != State::queued)
        return false;
    base::List<Job>::remove(&job);
    --queued_;
    return true;
}

// --- the end of a job ---

// Once the lock is given back the job is there only while its caller is claimed and not woken. A caller that is not parked
// in that epoch (not yet; not any more, its wait having ended otherwise) looks at the state by itself.
BlockingPool::Waiter BlockingPool::finish(Job &job, int32_t status) noexcept {
    job.state = State::done;
    job.status = status;
    Task *task = job.task;
    const TaskWord::Claim claim = task->word.try_claim(job.epoch);
    if (claim != TaskWord::Claim::lost) {
        task->reason = WakeReason::ready;
        task->wake_value = status;
    }
    return Waiter{task, claim};
}

void BlockingPool::wake(const Waiter &waiter) noexcept {
    if (waiter.claim != TaskWord::Claim::lost)
        sched::wake(waiter.task, waiter.claim);
}

// Ends the queued jobs that nobody will run.
void BlockingPool::end_orphans() noexcept {
    for (;;) {
        lock_.lock();
        Job *job = closing_ || threads_ == 0 ? queue_.pop_front() : nullptr;
        if (job == nullptr)
            return lock_.unlock();
        --queued_;
        const Waiter waiter = finish(*job, closing_ ? MC_E_SHUTDOWN : MC_E_NOMEM);
        lock_.unlock();
        wake(waiter);
    }
}

// --- threads ---

// It is on the way for a job from here on. The caller wakes it with the lock given back; should it have gone on by itself
// by then, its word says so.
BlockingPool::Worker *BlockingPool::call_sleeper() noexcept {
    Worker *sleeper = idle_.pop_front();
    if (sleeper != nullptr) {
        ++searching_;
        sleeper->word.store(awake, sync::relaxed); // relaxed: it comes for the lock next
    }
    return sleeper;
}

BlockingPool::Worker *BlockingPool::unused_worker() noexcept {
    {
        base::SpinGuard guard(lock_);
        if (Worker *worker = spare_.pop_front())
            return worker;
    }
    return base::create<Worker>(*this);
}

// It has been counted. Out of line, since errno's address must not be kept across the park that follows.
__attribute__((noinline)) void BlockingPool::start_thread() noexcept {
    const int saved = errno;
    Worker *worker = unused_worker();
    const bool started = worker != nullptr && worker->thread.start(thread_entry, worker);
    errno = saved;
    if (started)
        sync::note_write(&worker->thread); // start() writes until it returns
    Worker *sleeper = nullptr;
    lock_.lock();
    if (started) {
        half_of_end(*worker);
    } else {
        if (worker != nullptr)
            spare_.push_front(worker);
        --threads_;
        --searching_;
        --unjoined_;
        sleeper = call_sleeper_if_needed(); // a job may have been left to us, by one that saw us on the way
    }
    lock_.unlock();
    tell_closer();
    if (sleeper != nullptr)
        sync::futex_wake(sleeper->word, 1);
    if (!started)
        end_orphans(); // others may have relied on us, too
}

void BlockingPool::thread_entry(void *worker) noexcept {
    auto &self = *static_cast<Worker *>(worker);
    attach_service();
    while (Job *job = self.pool.take_job(self))
        self.pool.run(*job);
    self.pool.leave(self);
}

// The calling thread is on the way for a job. Null: it is to end, and no longer counts as one of the pool's threads.
BlockingPool::Job *BlockingPool::take_job(Worker &self) noexcept {
    for (;;) {
        lock_.lock();
        --searching_;
        if (closing_)
            break;
        if (Job *job = queue_.pop_front()) {
            --queued_;
            job->state = State::running;
            job->since_ns = sync::now_ns();
            running_.push_back(job);
            ++running_count_;
            changes_.store(changes_.load(sync::relaxed) + 1, sync::relaxed);
            lock_.unlock();
            return job;
        }
        self.word.store(asleep, sync::relaxed); // under the lock: who wakes us comes later
        idle_.push_front(&self);
        lock_.unlock();
        if (sleep(self))
            continue;
        lock_.lock();
        if (self.linked()) {
            idle_.remove(&self);
            break;
        }
        lock_.unlock(); // called at the last moment: a job may be waiting for us alone
    }
    --threads_;
    lock_.unlock();
    return nullptr;
}

// False: nobody has called before it had slept long enough.
bool BlockingPool::sleep(Worker &self) noexcept {
    const int64_t deadline_ns = idle_ns_ == MC_FOREVER ? MC_FOREVER : sync::now_ns() + idle_ns_;
    while (self.word.load(sync::relaxed) == asleep)
        if (!sync::futex_wait(self.word, asleep, deadline_ns))
            return false;
    return true;
}

void BlockingPool::run(Job &job) noexcept {
    int32_t value = 0;
    note_service(true);
    const bool returned = base::call_guarded("a blocking call", [&] { value = job.fn(job.user); });
    end_what_fn_left();
    lock_.lock();
    base::List<Job>::remove(&job);
    --running_count_;
    changes_.store(changes_.load(sync::relaxed) + 1, sync::relaxed);
    ++searching_;
    job.value = value;
    const Waiter waiter = finish(job, returned ? MC_OK : MC_E_CRASHED);
    lock_.unlock();
    wake(waiter);
    note_service(false);
}

// --- the end of a thread ---

void BlockingPool::half_of_end(Worker &worker) noexcept {
    if (worker.half_over)
        ended_.push_back(&worker);
    worker.half_over = !worker.half_over;
}

// The thread's last act. Until it has been joined the pool is not gone.
void BlockingPool::leave(Worker &self) noexcept {
    join_ended();
    lock_.lock();
    half_of_end(self);
    lock_.unlock();
    tell_closer();
}

void BlockingPool::join_ended() noexcept {
    for (;;) {
        lock_.lock();
        Worker *worker = ended_.pop_front();
        lock_.unlock();
        if (worker == nullptr)
            return;
        sync::note_read(&worker->thread);
        worker->thread.join();
        lock_.lock();
        spare_.push_front(worker);
        --unjoined_;
        lock_.unlock();
        tell_closer();
    }
}

bool BlockingPool::all_joined() noexcept {
    base::SpinGuard guard(lock_);
    return unjoined_ == 0;
}

// After the change, which was made under the lock. relaxed: who reads the new value and then takes the lock has it after
// us; had he had it before, his read would have happened before this.
void BlockingPool::tell_closer() noexcept {
    (void)ended_word_.fetch_add(1, sync::relaxed);
    sync::futex_wake(ended_word_, INT32_MAX);
}

// The numbers are those of the list at the head of blocking.hpp.
bool BlockingPool::close(int64_t deadline_ns) noexcept {
    {
        base::SpinGuard guard(lock_);
        closing_ = true; // 1
    }
    end_orphans(); // 2
    for (;;) {     // 3
        lock_.lock();
        Worker *sleeper = call_sleeper();
        lock_.unlock();
        if (sleeper == nullptr)
            break;
        sync::futex_wake(sleeper->word, 1);
    }
    for (bool late = false;;) {                                // 4
        const uint32_t seen = ended_word_.load(sync::relaxed); // before the look; see tell_closer
        join_ended();
        if (all_joined())
            return true;
        if (late)
            return false;
        late = !sync::futex_wait(ended_word_, seen, deadline_ns);
    }
}

BlockingPool::Counts BlockingPool::counts() noexcept {
    base::SpinGuard guard(lock_);
    return Counts{queued_, running_count_, threads_};
}

void BlockingPool::reopen() noexcept {
    base::SpinGuard guard(lock_);
    MC_INVARIANT(!closing_ || queue_.empty(), queued_);
    closing_ = false;
}

void BlockingPool::set_max_threads(uint32_t max_threads) noexcept {
    MC_INVARIANT(max_threads > 0, max_threads);
    base::SpinGuard guard(lock_);
    max_threads_ = max_threads;
}

} // namespace mc::sched
