#include "sched/report.hpp"

#include "base/log.hpp"
#include "fiber/stack.hpp"
#include "sched/condition.hpp"
#include "sched/mutex.hpp"
#include "sched/spawn.hpp"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace mc::sched {
namespace {

constexpr int most_lines = 64;

sync::atomic<NameObject> channel_namer{nullptr};

// Reading what a task may be writing: what is read may be torn, or another task's by then, and is thrown away if the word
// has changed. TSan is not told; a compiler can not do more harm than that to words read one by one.
#if defined(__SANITIZE_THREAD__)
#define MC_PEEK __attribute__((no_sanitize("thread"), noinline))
#else
#define MC_PEEK __attribute__((noinline))
#endif

MC_PEEK void copy_name(char (&to)[32], const Task &of) noexcept {
    const char *from = name_of(of);
    size_t i = 0;
    for (; i < sizeof to - 1 && static_cast<const volatile char &>(from[i]) != '\0'; ++i)
        to[i] = static_cast<const volatile char &>(from[i]);
    std::memset(to + i, 0, sizeof to - i);
}

template <class T> MC_PEEK T peek(const T &word) noexcept { return static_cast<const volatile T &>(word); }

// Its words, one a piece of bits; not inlined, so that nobody mixes this with accesses to its members.
MC_PEEK fiber::Stack peek_stack(const fiber::Stack &of) noexcept {
    uint64_t words[sizeof(fiber::Stack) / sizeof(uint64_t)];
    const auto *from = reinterpret_cast<const volatile uint64_t *>(&of);
    for (size_t i = 0; i < std::size(words); ++i)
        words[i] = from[i];
    return std::bit_cast<fiber::Stack>(words);
}

// Objects are type-stable, so even one that is gone can be asked.
const Task *holder_of(WaitKind kind, uint64_t object) noexcept {
    switch (kind) {
    case WaitKind::mutex:
        return reinterpret_cast<const Mutex *>(object)->owner();
    case WaitKind::join:
        return reinterpret_cast<const Task *>(object);
    case WaitKind::read_lock:
    case WaitKind::write_lock:
        return reinterpret_cast<const RwLock *>(object)->seen_writer.load(sync::relaxed);
    default:
        return nullptr;
    }
}

void name_object(TaskReport &report) noexcept {
    const bool channel = report.waits_for == WaitKind::send || report.waits_for == WaitKind::receive;
    if (NameObject name = channel_namer.load(sync::acquire); channel && name != nullptr)
        name(report.object, report.object_name);
}

void report_wait(const Task &task, TaskReport &report) noexcept {
    // acquire: the word is looked at again after these
    const WaitsFor waits_for = task.waits_for.load(sync::acquire);
    report.waits_for = waits_for.kind();
    report.object = waits_for.object();
    report.timed = task.timed.load(sync::acquire) != 0;
    report.waited_ns = sync::now_ns() - task.waits_since_ns.load(sync::acquire);
}

// Parking counts as running: what it waits for is not written yet.
TaskState state_of(Phase phase) noexcept {
    if (phase == Phase::runnable || phase == Phase::notified)
        return TaskState::runnable;
    return phase == Phase::parked ? TaskState::waiting : TaskState::running;
}

void report_holder(TaskReport &report) noexcept {
    report.holder = holder_of(report.waits_for, report.object);
    if (report.holder == nullptr)
        return;
    report.holder_id = peek(report.holder->id);
    report.holder_kind = peek(report.holder->kind);
    copy_name(report.holder_name, *report.holder);
}

void report_stack(const Task &task, TaskReport &report) noexcept {
    const fiber::Stack stack = peek_stack(task.stack);
    if (stack.top() == nullptr)
        return;
    const char *sp = static_cast<const char *>(peek(task.sp));
    report.stack_bytes = stack.size();
    if (report.state != TaskState::running && sp >= stack.low() && sp < stack.top())
        report.stack_used = static_cast<uint64_t>(stack.top() - sp);
    report.stack_high = std::max(report.stack_used, fiber::stack_high_water(stack));
}

} // namespace

void set_channel_namer(NameObject name) noexcept { channel_namer.store(name, sync::release); }

bool report_task(const Task &task, TaskReport *report, bool with_stack) noexcept {
    for (;;) {
        const uint64_t word = task.word.look();
        TaskReport found;
        found.kind = peek(task.kind);
        if (TaskWord::phase_of(word) == Phase::idle || found.kind == Kind::step || found.kind == Kind::idle)
            return false;
        found.id = peek(task.id);
        found.handle = handle_of(task);
        copy_name(found.name, task);
        found.state = state_of(TaskWord::phase_of(word));
        if (Executor *executor = task.seen_executor()) {
            found.executor = executor->index();
            const Pool *home = peek(task.home);
            found.runtime = home != nullptr ? home->handle() : executor->pool().handle();
        }
        if (found.state == TaskState::waiting)
            report_wait(task, found);
        if (task.word.look() != word)
            continue;
        if (found.state == TaskState::waiting) {
            report_holder(found);
            name_object(found);
        }
        if (with_stack && found.kind == Kind::fiber)
            report_stack(task, found);
        *report = found;
        return true;
    }
}

bool stack_in_use(const Task &task, const Pool &pool, StackInUse *stack) noexcept {
    const Phase phase = TaskWord::phase_of(task.word.look());
    const Executor *executor = task.seen_executor();
    if (phase == Phase::idle || executor == nullptr || peek(task.home) != &pool || peek(task.kind) != Kind::fiber)
        return false;
    const fiber::Stack of = peek_stack(task.stack);
    auto *sp = static_cast<char *>(task.sp);
    stack->high = of.end();
    if (sp == nullptr) // it has not begun
        stack->low = stack->high;
    else if (phase == Phase::running || sp < of.low() || sp >= of.top())
        stack->low = of.low();
    else
        stack->low = sp;
    return true;
}

const char *wait_text(WaitKind kind) noexcept {
    switch (kind) {
    case WaitKind::none:
        return "for something";
    case WaitKind::sleep:
        return "for a time";
    case WaitKind::send:
        return "to send to channel";
    case WaitKind::receive:
        return "to receive from channel";
    case WaitKind::choice:
        return "for one of several channels";
    case WaitKind::join:
        return "for the end of";
    case WaitKind::operation:
        return "for operation";
    case WaitKind::mutex:
        return "for mutex";
    case WaitKind::request:
        return "for the reply to request";
    case WaitKind::semaphore:
        return "for semaphore";
    case WaitKind::wait_group:
        return "for wait group";
    case WaitKind::once:
        return "for once";
    case WaitKind::condition:
        return "for condition";
    case WaitKind::read_lock:
        return "to read under lock";
    case WaitKind::write_lock:
        return "to write under lock";
    case WaitKind::group:
        return "for the children of group";
    case WaitKind::quiescence:
        return "for quiescence";
    case WaitKind::blocking_call:
        return "for a blocking call";
    case WaitKind::mailbox:
        return "for room in the mailbox of machine";
    case WaitKind::poll:
        return "for a machine to poll";
    }
    return "for something";
}

// --- lines ---

namespace {

constexpr const char *deadlock_text = "deadlock: nothing is left that could end these waits";

// A line of a report; that of a deadlock belongs to the record of a simulated run too. Out of line: its buffer is not on the stack
// of those who only log.
template <class... Values>
__attribute__((noinline)) void tell_simulator(Simulator &simulation, const char *format, Values... values) noexcept {
    char line[512];
    std::snprintf(line, sizeof line, format, values...);
    simulation.deadlocked(std::strcmp(line, deadlock_text) == 0, line);
}

template <class... Values> void say(int32_t level, int32_t code, const char *format, Values... values) noexcept {
    base::log(level, code, format, values...);
    if (Simulator *simulation = simulator(); simulation != nullptr && code == MC_E_DEADLOCK) [[unlikely]]
        tell_simulator(*simulation, format, values...);
}

void name_task(char *buf, size_t size, Kind kind, uint64_t id, const char *name) noexcept {
    const char *what = kind == Kind::fiber ? "microthread" : kind == Kind::adopted ? "the owner" : "thread";
    if (kind == Kind::fiber)
        std::snprintf(buf, size, "%s %" PRIu64 " \"%s\"", what, id, name);
    else
        std::snprintf(buf, size, "%s \"%s\"", what, name);
}

void name_task(char *buf, size_t size, const Task &task) noexcept {
    char name[sizeof TaskName{}.text];
    copy_name(name, task);
    name_task(buf, size, peek(task.kind), peek(task.id), name);
}

// Of a request, or a machine.
bool is_id(WaitKind kind) noexcept {
    return kind == WaitKind::request || kind == WaitKind::mailbox || kind == WaitKind::poll;
}

// Addresses differ from run to run, so a simulated one has numbers.
void name_nameless(char (&buf)[64], const TaskReport &report) noexcept {
    if (is_id(report.waits_for))
        std::snprintf(buf, sizeof buf, " %" PRIu64, report.object);
    else if (Simulator *simulation = simulator()) [[unlikely]]
        std::snprintf(buf, sizeof buf, " %" PRIu64,
                      simulation->number_of(reinterpret_cast<const void *>(report.object)));
    else
        std::snprintf(buf, sizeof buf, " %#" PRIx64, report.object);
}

void log_line(const TaskReport &report, int32_t level, int32_t code) noexcept {
    char who[80];
    char object[64] = "";
    char holder[112] = "";
    name_task(who, sizeof who, report.kind, report.id, report.name);
    if (report.state != TaskState::waiting) {
        say(level, code, "%s %s on executor %" PRIu32, who, report.state == TaskState::running ? "runs" : "is runnable",
            report.executor);
        return;
    }
    if (report.object_name[0] != '\0')
        std::snprintf(object, sizeof object, " \"%s\"", report.object_name);
    else if (report.object != 0 && report.waits_for != WaitKind::sleep && report.waits_for != WaitKind::join)
        name_nameless(object, report);
    if (report.holder != nullptr) {
        char name[80];
        name_task(name, sizeof name, report.holder_kind, report.holder_id, report.holder_name);
        std::snprintf(holder, sizeof holder, report.waits_for == WaitKind::join ? " %s" : ", held by %s", name);
    }
    say(level, code, "%s waits %s%s%s, for %" PRId64 " ms", who, wait_text(report.waits_for), object, holder,
        report.waited_ns / 1'000'000);
}

// Whom a task waits for: who holds it up.
const Task *waits_for_whom(const Task *task) noexcept {
    TaskReport report;
    return report_task(*task, &report, false) && report.state == TaskState::waiting ? report.holder : nullptr;
}

constexpr int most_hops = 1000;     // along one chain
constexpr int most_starts = 10'000; // chains that are followed: a report is not worth minutes

// Follows the holders from a task on: null, or one that is on a cycle. (Floyd's tortoise and hare.)
const Task *find_cycle_from(const Task *start) noexcept {
    const Task *slow = start;
    const Task *fast = start;
    int hops = 0;
    while ((fast = waits_for_whom(fast)) != nullptr && (fast = waits_for_whom(fast)) != nullptr && ++hops < most_hops) {
        slow = waits_for_whom(slow);
        if (slow == nullptr || slow == fast)
            return slow;
    }
    return nullptr;
}

void log_cycle(const Task *on_it) noexcept {
    char line[480] = "the cycle: ";
    size_t length = std::strlen(line);
    const Task *task = on_it;
    do {
        char who[80];
        name_task(who, sizeof who, *task);
        const int added = std::snprintf(line + length, sizeof line - length, "%s waits for ", who);
        length = added < 0 ? length : length + static_cast<size_t>(added);
        task = waits_for_whom(task);
    } while (task != nullptr && task != on_it && length < sizeof line - 120);
    if (task == on_it && length < sizeof line) {
        char who[80];
        name_task(who, sizeof who, *task);
        std::snprintf(line + length, sizeof line - length, "%s", who);
    }
    say(MC_LOG_ERROR, MC_E_DEADLOCK, "%s", line);
}

template <class Wanted> void log_tasks(int32_t level, int32_t code, Wanted wanted) noexcept {
    int lines = 0;
    uint64_t left_out = 0;
    for_each_task([&](const Task &task) {
        TaskReport report;
        if (!report_task(task, &report, false) || !wanted(report))
            return;
        if (++lines <= most_lines)
            log_line(report, level, code);
        else
            ++left_out;
    });
    if (left_out != 0)
        say(level, code, "and %" PRIu64 " more", left_out);
}

} // namespace

void report_deadlock() noexcept {
    const Task *cycle = nullptr;
    say(MC_LOG_ERROR, MC_E_DEADLOCK, "%s", deadlock_text);
    log_tasks(MC_LOG_ERROR, MC_E_DEADLOCK, [&](const TaskReport &report) {
        return report.state == TaskState::waiting && report.waits_for != WaitKind::quiescence;
    });
    int starts = 0;
    for_each_task([&](const Task &task) {
        if (cycle == nullptr && waits_for_whom(&task) != nullptr && ++starts <= most_starts)
            cycle = find_cycle_from(&task);
    });
    if (cycle != nullptr)
        log_cycle(cycle);
}

void report_deadlock_now_and_then() noexcept {
    static constinit sync::atomic<int64_t> last_ns{INT64_MIN / 2};
    const int64_t now = sync::now_ns();
    int64_t last = last_ns.load(sync::relaxed);
    if (now - last >= MC_SEC && last_ns.compare_exchange_strong(last, now, sync::relaxed, sync::relaxed))
        report_deadlock();
}

void report_what_runs(Pool &pool) noexcept {
    base::log(MC_LOG_WARNING, MC_E_BUSY,
              "a runtime that is waited for has not begun or ended a turn, or a call, for a second");
    log_tasks(MC_LOG_WARNING, MC_E_BUSY, [&](const TaskReport &report) {
        return report.kind == Kind::fiber && report.runtime == pool.handle() &&
               (report.state == TaskState::running ||
                (report.state == TaskState::waiting && report.waits_for == WaitKind::blocking_call));
    });
}

void report_what_is_left(Pool &pool) noexcept {
    base::log(MC_LOG_ERROR, MC_E_TIMEDOUT,
              "a runtime could not be shut down in time: %" PRIu64 " microthreads are left", pool.microthreads());
    log_tasks(MC_LOG_ERROR, MC_E_TIMEDOUT,
              [&](const TaskReport &report) { return report.kind == Kind::fiber && report.runtime == pool.handle(); });
}

} // namespace mc::sched
