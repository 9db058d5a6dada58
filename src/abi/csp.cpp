// mc/csp.h: microthreads and channels. The channels of elements are in chan.cpp.
#include <mc/csp.h>
#include <mc/runtime.h>

#include "abi/call.hpp"
#include "base/log.hpp"
#include "csp/alt.hpp"
#include "csp/timer_source.hpp"
#include "sched/pool.hpp"
#include "sched/spawn.hpp"
#include "sched/switch.hpp"

#include <cstdarg>
#include <cstdio>

namespace {

using mc::abi::enter;
using mc::abi::is_handle;
using mc::base::log;
using mc::csp::Channel;
using mc::csp::Patience;
using mc::csp::Side;
using mc::sched::Pool;
using mc::sched::ThreadContext;

// 0 or null is all that many csp calls can return: the reason goes to the log.
ThreadContext *enter_or_log(const char *call) noexcept {
    int32_t status = MC_OK;
    ThreadContext *thread = enter(&status);
    if (thread == nullptr)
        log(MC_LOG_ERROR, status, "%s failed", call);
    return thread;
}

int fail(const char *call, int32_t status) noexcept {
    log(MC_LOG_ERROR, status, "%s failed", call);
    return 0;
}

// The two calls that a forked child begins anew with. False, and logged: it can not from here.
bool begin_anew_if_forked(const char *call) noexcept {
    if (!mc::sched::forked())
        return true;
    const int32_t status = mc::sched::claim_new_beginning();
    if (status != MC_OK)
        return fail(call, status) != 0;
    Channel::leave_behind_all();
    mc::sched::begin_anew();
    return true;
}

// Single-processor mode: the thread's context, if it may run the queue from here.
bool may_run(const ThreadContext &thread, const char *call) noexcept {
    if (thread.executor != nullptr && thread.no_switch == 0)
        return true;
    (void)fail(call, MC_E_CONTEXT);
    return false;
}

int alt(csp_chanop const *ops, int count, bool random, const Patience &patience) noexcept {
    int32_t status = MC_OK;
    ThreadContext *thread = enter(&status);
    if (thread == nullptr)
        return status;
    thread = mc::sched::begin_call(thread, patience.may_wait());
    return mc::csp::alt(*thread, ops, count, random, patience);
}

// What is asked of the two ends, once the handle and the thread are known to be good. A thread's first call, and one of
// a thread that does not own the runtime, take the long way round, so that the others end in a tail call.
template <class Handle, class Act> __attribute__((noinline)) int enter_first(Handle handle, Act act) noexcept {
    int32_t status = MC_OK;
    ThreadContext *thread = enter(&status);
    return thread == nullptr ? status : act(*thread, *mc::csp::channel_of(handle));
}

template <class Handle, class Act> inline int with_end(Handle handle, Side side, bool may_switch, Act act) noexcept {
    if (!is_handle(handle, side)) [[unlikely]]
        return MC_E_INVAL;
    ThreadContext *thread = mc::sched::current();
    if (thread == nullptr || thread->executor == nullptr) [[unlikely]]
        return enter_first(handle, act);
    return act(*mc::sched::begin_call(thread, may_switch), *mc::csp::channel_of(handle));
}

template <class Handle>
inline int operate(Handle handle, Side side, void *message, bool nowait, int64_t deadline_ns) noexcept {
    const Patience patience{nowait, deadline_ns};
    return with_end(handle, side, patience.may_wait(), [=](ThreadContext &thread, Channel &channel) {
        return mc::csp::operate(thread, channel, side, message, patience, 0);
    });
}

template <class Handle> Handle add_reference(Handle handle, Side side, const char *call) noexcept {
    if (handle == nullptr)
        return nullptr;
    if (!is_handle(handle, side)) {
        (void)fail(call, MC_E_INVAL);
        return nullptr;
    }
    if (mc::csp::channel_of(handle)->add_reference(side))
        return handle;
    (void)fail(call, MC_E_STALE);
    return nullptr;
}

template <class Handle> void release(Handle handle, Side side, const char *call) noexcept {
    if (handle == nullptr || mc::sched::forked())
        return; // a forked child uses nothing of ours: a lock may have been taken when it was copied
    if (ThreadContext *thread = mc::sched::current()) {
        (void)mc::sched::begin_call(thread, false);
    } else if (mc::sched::simulator() != nullptr) { // another thread than is simulated, or that one's last destructors
        int32_t status = MC_OK;
        if (enter(&status) == nullptr) {
            if (status != MC_E_SHUTDOWN) // the process ends, and nobody is left to be told
                (void)fail(call, status);
            return;
        }
    }
    if (!is_handle(handle, side))
        (void)fail(call, MC_E_INVAL);
    else if (!mc::csp::channel_of(handle)->release(side))
        (void)fail(call, MC_E_STALE);
}

csp_reader start_timer(int64_t first_ns, int64_t period_ns, const char *call) noexcept {
    ThreadContext *thread = enter_or_log(call);
    if (thread == nullptr)
        return nullptr;
    Channel *channel = mc::csp::TimerSource::create(mc::sched::executor_for(*thread), first_ns, period_ns);
    if (channel != nullptr)
        return mc::csp::reader_handle(channel);
    (void)fail(call, MC_E_NOMEM);
    return nullptr;
}

} // namespace

// --- microthreads ---

int csp_spawn(csp_entry_f entry, void *data) noexcept {
    if (entry == nullptr)
        return fail("csp_spawn", MC_E_INVAL);
    ThreadContext *thread = enter_or_log("csp_spawn");
    if (thread == nullptr)
        return 0;
    mc::sched::SpawnRequest request;
    request.plain = entry;
    request.argument = data;
    request.run_at_once = true;
    request.pool = &mc::sched::pool_of(*thread);
    const int32_t status = mc::sched::spawn(thread, mc::sched::executor_for(*thread), request);
    return status == MC_OK ? 1 : fail("csp_spawn", status);
}

int csp_run(void) noexcept {
    ThreadContext *thread = enter_or_log("csp_run");
    if (thread == nullptr)
        return 0;
    Pool &pool = mc::sched::pool_of(*thread);
    if (!pool.many())
        return may_run(*thread, "csp_run") && thread->executor->run_once() ? 1 : 0;
    if (thread->no_switch != 0)
        return fail("csp_run", MC_E_CONTEXT);
    if (thread->executor == nullptr)
        return pool.wait_quiet(*thread, Pool::Quiet::no_microthread, mc_after(MC_MS)) == MC_OK ? 0 : 1;
    thread->executor->yield();
    return 1; // the caller is left
}

void csp_schedule(void) noexcept {
    ThreadContext *thread = enter_or_log("csp_schedule");
    if (thread == nullptr)
        return;
    Pool &pool = mc::sched::pool_of(*thread);
    if (pool.many()) {
        int32_t status = MC_E_CONTEXT;
        if (thread->executor == nullptr && thread->no_switch == 0) {
            status = pool.wait_quiet(*thread, Pool::Quiet::no_microthread, MC_FOREVER);
            if (status == MC_E_CONTEXT) // the executors have stopped
                return;
        }
        if (status != MC_OK)
            (void)fail("csp_schedule", status);
        return;
    }
    if (!may_run(*thread, "csp_schedule"))
        return;
    (void)thread->executor->run_until_idle();
    if (thread->executor->simulated())
        mc::sched::simulated_schedule_ended(pool);
}

int csp_init_runtime(int n) noexcept {
    if (!begin_anew_if_forked("csp_init_runtime"))
        return 0;
    ThreadContext *thread = enter_or_log("csp_init_runtime");
    if (thread == nullptr)
        return 0;
    const int32_t status = n < 0 ? MC_E_INVAL : mc::sched::start_executors(*thread, static_cast<uint32_t>(n));
    return status == MC_OK ? 1 : fail("csp_init_runtime", status);
}

void csp_shutdown_runtime(void) noexcept {
    if (!begin_anew_if_forked("csp_shutdown_runtime"))
        return;
    ThreadContext *thread = enter_or_log("csp_shutdown_runtime");
    const int32_t status = thread == nullptr ? MC_OK : mc::sched::stop_executors(*thread);
    if (status != MC_OK)
        (void)fail("csp_shutdown_runtime", status);
}

void csp_yield(void) noexcept {
    ThreadContext *thread = mc::sched::current();
    if (thread == nullptr || thread->executor == nullptr) [[unlikely]] {
        int32_t status = MC_OK;
        thread = enter(&status);
    }
    if (thread != nullptr)
        mc::sched::yield(*thread);
}

void csp_descr(char const *fmt, ...) noexcept {
    int32_t status = MC_OK;
    ThreadContext *thread = enter(&status);
    if (thread == nullptr)
        return;
    char text[32] = {};
    if (fmt != nullptr) {
        va_list arguments;
        va_start(arguments, fmt);
        std::vsnprintf(text, sizeof text, fmt, arguments);
        va_end(arguments);
    }
    if (!mc::sched::set_name(*thread->running, text))
        return void(fail("csp_descr", MC_E_NOMEM));
    if (mc::sched::Simulator *simulation = mc::sched::simulator()) [[unlikely]]
        simulation->told_text(mc::sched::SimEvent::name, thread->running, nullptr, text);
}

void *csp_off_stack(void *p) noexcept {
    const ThreadContext *thread = mc::sched::current();
    if (!mc::sched::on_own_stack(thread, p))
        return p;
    (void)fail("csp_off_stack", MC_E_INVAL);
    return nullptr;
}

void csp_sleep_until(int64_t deadline_ns) noexcept {
    ThreadContext *thread = enter_or_log("csp_sleep_until");
    if (thread == nullptr)
        return;
    if (deadline_ns <= mc::sync::now_ns())
        return csp_yield();
    const int32_t status = mc::sched::sleep_until(*thread, deadline_ns, nullptr);
    if (status != MC_E_TIMEDOUT)
        (void)fail("csp_sleep_until", status);
}

// --- channels ---

int csp_chan(csp_writer *w, csp_reader *r, void (*tx)(void *src, void *dst)) noexcept {
    if (w == nullptr || r == nullptr)
        return fail("csp_chan", MC_E_INVAL);
    if (enter_or_log("csp_chan") == nullptr)
        return 0;
    Channel *channel = Channel::create(tx, nullptr, nullptr);
    if (channel == nullptr)
        return fail("csp_chan", MC_E_NOMEM);
    *w = mc::csp::writer_handle(channel);
    *r = mc::csp::reader_handle(channel);
    return 1;
}

csp_writer csp_writer_addref(csp_writer w) noexcept {
    return add_reference(w, mc::csp::writer_side, "csp_writer_addref");
}
csp_reader csp_reader_addref(csp_reader r) noexcept {
    return add_reference(r, mc::csp::reader_side, "csp_reader_addref");
}
void csp_writer_release(csp_writer w) noexcept { release(w, mc::csp::writer_side, "csp_writer_release"); }
void csp_reader_release(csp_reader r) noexcept { release(r, mc::csp::reader_side, "csp_reader_release"); }

int csp_writer_close(csp_writer w) noexcept {
    if (!is_handle(w, mc::csp::writer_side))
        return MC_E_INVAL;
    int32_t status = MC_OK;
    ThreadContext *thread = enter(&status);
    if (thread == nullptr)
        return status;
    (void)mc::sched::begin_call(thread, false);
    Channel &channel = *mc::csp::channel_of(w);
    if (channel.released(mc::csp::writer_side))
        return mc::csp::report_released();
    return channel.close(mc::csp::writer_side) ? 1 : -1;
}

void csp_chdescr(void *ch, char const *text) noexcept {
    const uintptr_t word = reinterpret_cast<uintptr_t>(ch);
    if (ch == nullptr || mc::sched::forked())
        return;
    if (mc::sched::simulator() != nullptr && mc::sched::current() == nullptr)
        (void)fail("csp_chdescr", MC_E_SIM);
    else if (word <= 15 || (word & 14) != 0)
        (void)fail("csp_chdescr", MC_E_INVAL);
    else if (!mc::csp::channel_at(word)->set_name(text))
        (void)mc::csp::report_released();
}

csp_reader csp_skip(void) noexcept {
    if (mc::sched::forked()) {
        (void)fail("csp_skip", MC_E_FORKED);
        return nullptr;
    }
    Channel *channel = Channel::skip();
    if (channel != nullptr)
        return mc::csp::reader_handle(channel);
    (void)fail("csp_skip", MC_E_NOMEM);
    return nullptr;
}

void csp_chuncount(void *ch) noexcept {
    const uintptr_t word = reinterpret_cast<uintptr_t>(ch);
    if (ch == nullptr || mc::sched::forked())
        return;
    if (word <= 15 || (word & 14) != 0)
        (void)fail("csp_chuncount", MC_E_INVAL);
    else if (!mc::csp::channel_at(word)->leave_uncounted())
        (void)mc::csp::report_released();
}

int csp_alt(csp_chanop const *ops, int count, int nowait) noexcept { return alt(ops, count, true, {nowait != 0}); }
int csp_prialt(csp_chanop const *ops, int count, int nowait) noexcept { return alt(ops, count, false, {nowait != 0}); }
int csp_alt_until(csp_chanop const *ops, int count, int64_t deadline_ns) noexcept {
    return alt(ops, count, true, {false, deadline_ns});
}
int csp_prialt_until(csp_chanop const *ops, int count, int64_t deadline_ns) noexcept {
    return alt(ops, count, false, {false, deadline_ns});
}

int csp_send(csp_writer w, void *message) noexcept {
    return with_end(w, mc::csp::writer_side, true, [=](ThreadContext &thread, Channel &channel) {
        return mc::csp::send_one(thread, channel, message);
    });
}
int csp_recv(csp_reader r, void *message) noexcept {
    return with_end(r, mc::csp::reader_side, true, [=](ThreadContext &thread, Channel &channel) {
        return mc::csp::receive_one(thread, channel, message);
    });
}
int csp_try_send(csp_writer w, void *message) noexcept {
    return operate(w, mc::csp::writer_side, message, true, MC_FOREVER);
}
int csp_try_recv(csp_reader r, void *message) noexcept {
    return operate(r, mc::csp::reader_side, message, true, MC_FOREVER);
}
int csp_send_until(csp_writer w, void *message, int64_t deadline_ns) noexcept {
    return operate(w, mc::csp::writer_side, message, false, deadline_ns);
}
int csp_recv_until(csp_reader r, void *message, int64_t deadline_ns) noexcept {
    return operate(r, mc::csp::reader_side, message, false, deadline_ns);
}

csp_reader csp_after(int64_t ns) noexcept { return start_timer(mc_after(ns), 0, "csp_after"); }

csp_reader csp_tick(int64_t ns) noexcept {
    const int64_t period_ns = ns < 1 ? 1 : ns;
    return start_timer(mc_after(period_ns), period_ns, "csp_tick");
}

int csp__internal__channel_count(int side) {
    return side == 0 || side == 1 ? Channel::count(static_cast<Side>(side)) : -1;
}
