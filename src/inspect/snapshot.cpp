#include "inspect/snapshot.hpp"

#include "base/assert.hpp"
#include "base/guarded.hpp"
#include "sched/runtimes.hpp"

#include <algorithm>
#include <cstring>
#include <rapidjson/writer.h>

namespace mc::inspect {
namespace {

using sched::Kind;
using sched::Pool;
using sched::TaskReport;
using sched::TaskState;
using sched::WaitKind;

static_assert(MC_TASK_RUNNABLE == static_cast<int>(TaskState::runnable) &&
              MC_TASK_WAITING == static_cast<int>(TaskState::waiting));
static_assert(MC_WAIT_CHOICE == static_cast<int>(WaitKind::choice) &&
              MC_WAIT_MUTEX == static_cast<int>(WaitKind::mutex) &&
              MC_WAIT_GROUP == static_cast<int>(WaitKind::group) &&
              MC_WAIT_BLOCKING_CALL == static_cast<int>(WaitKind::blocking_call) &&
              MC_WAIT_POLL == static_cast<int>(WaitKind::poll));

void copy_name(char (&to)[MC_NAME_BYTES], const char (&from)[32]) noexcept {
    static_assert(sizeof to == sizeof from);
    std::memcpy(to, from, sizeof to);
}

} // namespace

void read_stats(Pool &pool, mc_runtime_counters *stats) noexcept {
    *stats = MC_RUNTIME_COUNTERS_INIT;
    const sched::ThreadBed::Counts bed = pool.bed().counts();
    const uint64_t ended = pool.ended(); // before the beginnings: see Pool::microthreads
    const uint64_t begun = pool.begun();
    stats->spawned = begun - pool.begun_before();
    stats->microthreads = begun - ended;
    stats->executors = pool.live();
    stats->sleeping = bed.sleeping;
    stats->searching = bed.searching;
    stats->queued = pool.injection().size();
    for (uint32_t i = 0; i < stats->executors; ++i) {
        stats->queued += pool.at(i).queued();
    }
    stats->turns = pool.turns() - pool.turns_before();
    sched::BlockingPool *blocking = pool.blocking_if_used();
    if (blocking == nullptr)
        return;
    const sched::BlockingPool::Counts jobs = blocking->counts();
    stats->blocking_threads = jobs.threads;
    stats->blocking_running = jobs.running;
    stats->blocking_queued = jobs.queued;
    const int64_t now = sync::now_ns();
    blocking->for_each_job([&](const sched::BlockingPool::JobSeen &job) {
        stats->blocking_oldest_ns = std::max(stats->blocking_oldest_ns, now - job.since_ns);
    });
}

bool read_stats(Pool &pool, uint32_t index, mc_executor_counters *stats) noexcept {
    if (index >= pool.live())
        return false;
    const sched::Executor &executor = pool.at(index);
    *stats = MC_EXECUTOR_COUNTERS_INIT;
    stats->load = executor.load();
    stats->cpu = executor.cpu();
    stats->ended = executor.ended();
    stats->begun = executor.begun();
    stats->turns = executor.turns();
    stats->queued = executor.queued();
    stats->turn_ns = executor.turn_ns();
    return true;
}

bool describe(const sched::Task &task, uint64_t runtime, int64_t min_waited_ns, mc_task_info *info) noexcept {
    TaskReport report;
    if (!sched::report_task(task, &report, true))
        return false;
    const bool waits = report.state == TaskState::waiting;
    if (runtime != 0 ? report.runtime != runtime : report.kind != Kind::fiber && !waits)
        return false;
    if (report.kind == Kind::adopted && report.runtime != 0 && !waits)
        return false; // an executor's own thread, or the owner that runs
    if (min_waited_ns > 0 && (!waits || report.waited_ns < min_waited_ns))
        return false;
    std::memset(info, 0, sizeof *info);
    info->struct_size = sizeof *info;
    info->kind = report.kind == Kind::fiber ? MC_TASK_MICROTHREAD : MC_TASK_THREAD;
    info->id = report.id;
    info->task = report.handle;
    info->runtime = report.runtime;
    copy_name(info->name, report.name);
    info->state = static_cast<uint32_t>(report.state);
    info->executor = report.executor;
    info->stack_bytes = report.stack_bytes;
    info->stack_used = report.stack_used;
    info->stack_high = report.stack_high;
    if (!waits)
        return true;
    info->waits_for = static_cast<uint32_t>(report.waits_for);
    info->timed = report.timed ? 1 : 0;
    info->object = report.object;
    copy_name(info->object_name, report.object_name);
    info->waited_ns = report.waited_ns;
    info->holder = report.holder_id;
    copy_name(info->holder_name, report.holder_name);
    return true;
}

// --- JSON ---

namespace {

constexpr const char *kinds[] = {"microthread", "thread"};
constexpr const char *states[] = {"running", "runnable", "waiting"};
constexpr const char *waits[] = {"none",      "sleep",      "send",          "receive",   "choice",
                                 "join",      "operation",  "mutex",         "request",   "semaphore",
                                 "waitgroup", "once",       "condition",     "read_lock", "write_lock",
                                 "group",     "quiescence", "blocking_call", "mailbox",   "poll"};
static_assert(sizeof waits / sizeof *waits == MC_WAIT_POLL + 1);

// What the writer writes to: pieces go to the caller's function as the buffer fills.
class Pieces {
public:
    using Ch = char;
    Pieces(mc_write_fn write, void *user) noexcept : write_(write), user_(user) {}
    void Put(char letter) noexcept {
        if (length_ == sizeof buffer_)
            Flush();
        buffer_[length_++] = letter;
    }
    void Flush() noexcept {
        if (length_ != 0)
            (void)base::call_guarded("a writer of JSON", [&] { write_(user_, buffer_, length_); });
        length_ = 0;
    }

private:
    const mc_write_fn write_;
    void *const user_;
    size_t length_ = 0;
    char buffer_[512];
};

// The writer's memory: it asks once, for a few bytes a level, and we go four levels deep. A writer must not be without memory.
class Memory {
public:
    [[maybe_unused]] static constexpr bool kNeedFree = false;
    void *Malloc(size_t size) noexcept { return Realloc(nullptr, 0, size); }
    void *Realloc(void *, size_t, size_t size) noexcept {
        MC_INVARIANT(size <= sizeof levels_, size);
        return levels_;
    }
    static void Free(void *) noexcept {}

private:
    alignas(std::max_align_t) char levels_[1024];
};

using Writer = rapidjson::Writer<Pieces, rapidjson::UTF8<>, rapidjson::UTF8<>, Memory>;

// The length of a well-formed sequence at text (RFC 3629), or 0.
size_t utf8_sequence(const unsigned char *text, size_t left) noexcept {
    const unsigned first = text[0];
    const size_t length = first < 0x80   ? 1
                          : first < 0xc2 ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf5 ? 4
                                         : 0;
    if (length > left)
        return 0;
    for (size_t i = 1; i < length; ++i)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    const bool overlong = (first == 0xe0 && text[1] < 0xa0) || (first == 0xf0 && text[1] < 0x90);
    const bool outside = (first == 0xed && text[1] > 0x9f) || (first == 0xf4 && text[1] > 0x8f);
    return overlong || outside ? 0 : length;
}

void put_name(Writer &json, const char *key, const char (&name)[MC_NAME_BYTES]) {
    char text[3 * MC_NAME_BYTES];
    size_t length = 0;
    const size_t left = strnlen(name, sizeof name);
    for (size_t i = 0; i < left;) {
        const size_t taken = utf8_sequence(reinterpret_cast<const unsigned char *>(name) + i, left - i);
        std::memcpy(text + length, taken == 0 ? "\xef\xbf\xbd" : name + i, taken == 0 ? 3 : taken);
        length += taken == 0 ? 3 : taken;
        i += std::max<size_t>(taken, 1);
    }
    json.Key(key);
    json.String(text, static_cast<rapidjson::SizeType>(length));
}

void put(Writer &json, const char *key, uint64_t value) {
    json.Key(key);
    json.Uint64(value);
}
void put_signed(Writer &json, const char *key, int64_t value) {
    json.Key(key);
    json.Int64(value);
}
void put_word(Writer &json, const char *key, const char *word) {
    json.Key(key);
    json.String(word);
}

void put_task(Writer &json, const mc_task_info &info) {
    json.StartObject();
    put_word(json, "kind", kinds[info.kind]);
    put(json, "id", info.id);
    put(json, "task", info.task);
    put(json, "runtime", info.runtime);
    put_name(json, "name", info.name);
    put_word(json, "state", states[info.state]);
    put_signed(json, "executor", info.executor == UINT32_MAX ? -1 : static_cast<int64_t>(info.executor));
    if (info.state == MC_TASK_WAITING) {
        put_word(json, "waits_for", waits[info.waits_for]);
        put(json, "timed", info.timed);
        put(json, "object", info.object);
        put_name(json, "object_name", info.object_name);
        put_signed(json, "waited_ns", info.waited_ns);
        put(json, "holder", info.holder);
        put_name(json, "holder_name", info.holder_name);
    }
    if (info.kind == MC_TASK_MICROTHREAD) {
        put(json, "stack_bytes", info.stack_bytes);
        put(json, "stack_used", info.stack_used);
        put(json, "stack_high", info.stack_high);
    }
    json.EndObject();
}

void put_executor(Writer &json, const mc_executor_counters &stats) {
    json.StartObject();
    put(json, "load", stats.load);
    put_signed(json, "cpu", stats.cpu);
    put(json, "begun", stats.begun);
    put(json, "ended", stats.ended);
    put(json, "turns", stats.turns);
    put(json, "queued", stats.queued);
    put_signed(json, "turn_ns", stats.turn_ns);
    json.EndObject();
}

void put_runtime(Writer &json, Pool &pool) {
    mc_runtime_counters stats;
    read_stats(pool, &stats);
    json.StartObject();
    put(json, "runtime", pool.handle());
    put(json, "executors", stats.executors);
    put(json, "sleeping", stats.sleeping);
    put(json, "searching", stats.searching);
    put(json, "microthreads", stats.microthreads);
    put(json, "spawned", stats.spawned);
    put(json, "turns", stats.turns);
    put(json, "queued", stats.queued);
    put(json, "blocking_threads", stats.blocking_threads);
    put(json, "blocking_running", stats.blocking_running);
    put(json, "blocking_queued", stats.blocking_queued);
    put_signed(json, "blocking_oldest_ns", stats.blocking_oldest_ns);
    json.Key("executor_stats");
    json.StartArray();
    mc_executor_counters one;
    for (uint32_t i = 0; read_stats(pool, i, &one); ++i)
        put_executor(json, one);
    json.EndArray();
    json.EndObject();
}

} // namespace

void write_json(Pool *pool, int64_t min_waited_ns, mc_write_fn write, void *user) noexcept {
    Pieces pieces(write, user);
    Memory memory;
    Writer json(pieces, &memory);
    json.StartObject();
    put(json, "version", 1);
    put_signed(json, "now_ns", sync::now_ns());
    json.Key("runtimes");
    json.StartArray();
    sched::for_each_pool([&](Pool &each) {
        if (pool == nullptr ? each.handle() != 0 : pool == &each)
            put_runtime(json, each);
    });
    json.EndArray();
    json.Key("tasks");
    json.StartArray();
    for_each_task_info(pool, min_waited_ns, [&](const mc_task_info &info) { put_task(json, info); });
    json.EndArray();
    json.EndObject();
    pieces.Flush();
}

} // namespace mc::inspect
