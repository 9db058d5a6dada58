// mc/inspect.h: snapshots of tasks, as structs and as JSON, that disturb nothing.
#include "csp/test_many.hpp"

#include <mc/inspect.h>

#include <map>
#include <memory>
#include <rapidjson/document.h>
#include <string>
#include <vector>

using namespace mc;
using namespace mc::csp::testing;

namespace {

struct Snapshot {
    std::vector<mc_task_info> all;
    explicit Snapshot(mc_runtime_t rt = 0, int64_t min_waited_ns = 0) {
        const auto note = [](void *user, const mc_task_info *info) {
            cr_assert_eq(info->struct_size, sizeof *info);
            static_cast<Snapshot *>(user)->all.push_back(*info);
        };
        cr_assert_eq(mc_inspect_tasks(rt, min_waited_ns, note, this), MC_OK);
    }
    const mc_task_info *find(const char *name) const {
        for (const mc_task_info &info : all)
            if (std::string(info.name) == name)
                return &info;
        return nullptr;
    }
    const mc_task_info &named(const char *name) const {
        const mc_task_info *info = find(name);
        cr_assert_not_null(info, "%s", name);
        return *info;
    }
};

std::string json(mc_runtime_t rt = 0, int64_t min_waited_ns = 0) {
    std::string text;
    const auto write = [](void *user, const char *piece, uint64_t length) {
        static_cast<std::string *>(user)->append(piece, length);
    };
    cr_assert_eq(mc_inspect_json(rt, min_waited_ns, write, &text), MC_OK);
    return text;
}

template <class Body> void spawn_named(const std::string &name, Body body) {
    spawn([name, body] {
        csp_descr("%s", name.c_str());
        body();
    });
}

template <class Condition> void until(Condition condition) {
    const int64_t end = mc_after(20 * MC_SEC);
    while (!condition()) {
        cr_assert_lt(mc_now(), end, "it has not come about");
        cr_assert_eq(mc_sleep(MC_MS / 5), MC_OK);
    }
}

} // namespace

// Goal: bad arguments get their codes.
Test(Inspect, misuse) {
    World world;
    cr_assert_eq(mc_inspect_tasks(0, 0, nullptr, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_inspect_tasks(
                     0, -1, [](void *, const mc_task_info *) {}, nullptr),
                 MC_E_INVAL);
    cr_assert_eq(mc_inspect_tasks(
                     7, 0, [](void *, const mc_task_info *) {}, nullptr),
                 MC_E_STALE);
    cr_assert_eq(mc_inspect_json(0, 0, nullptr, nullptr), MC_E_INVAL);
    cr_assert_eq(mc_inspect_json(
                     7, 0, [](void *, const char *, uint64_t) {}, nullptr),
                 MC_E_STALE);
}

// Goal: each microthread with what it waits for, by name, since when, and who holds it.
Test(Inspect, says_what_each_waits_for, .timeout = 30) {
    World world;
    {
        Many many(2);
        Chan orders;
        csp_chdescr(orders.w, "orders");
        mc_mutex_t mutex = 0;
        mc_semaphore_t semaphore = 0;
        cr_assert_eq(mc_mutex_create(0, &mutex), MC_OK);
        cr_assert_eq(mc_semaphore_create(0, &semaphore), MC_OK);
        spawn_named("owner", [&] {
            cr_assert_eq(mc_mutex_lock(mutex), MC_OK);
            cr_assert_eq(mc_semaphore_acquire(semaphore, 1, MC_FOREVER), MC_OK);
            cr_assert_eq(mc_mutex_unlock(mutex), MC_OK);
        });
        until([] {
            const Snapshot snapshot;
            return snapshot.find("owner") != nullptr && snapshot.named("owner").state == MC_TASK_WAITING;
        });
        spawn_named("reader", [&] { cr_assert_eq(orders.receive(), 5); });
        spawn_named("locker", [&] {
            cr_assert_eq(mc_mutex_lock(mutex), MC_OK);
            cr_assert_eq(mc_mutex_unlock(mutex), MC_OK);
        });
        spawn_named("sleeper", [] { csp_sleep_until(mc_after(20 * unit)); });
        until([] {
            const Snapshot snapshot;
            int waiting = 0;
            for (const char *name : {"reader", "locker", "sleeper"})
                waiting += snapshot.find(name) != nullptr && snapshot.named(name).state == MC_TASK_WAITING;
            return waiting == 3;
        });
        const Snapshot snapshot;
        cr_assert_eq(snapshot.named("reader").waits_for, MC_WAIT_RECEIVE);
        cr_assert_str_eq(snapshot.named("reader").object_name, "orders");
        cr_assert_eq(snapshot.named("locker").waits_for, MC_WAIT_MUTEX);
        cr_assert_str_eq(snapshot.named("locker").holder_name, "owner");
        cr_assert_eq(snapshot.named("locker").holder, snapshot.named("owner").id);
        cr_assert_eq(snapshot.named("sleeper").waits_for, MC_WAIT_SLEEP);
        cr_assert_eq(snapshot.named("sleeper").timed, 1u);
        for (const char *name : {"owner", "reader", "locker"}) {
            const mc_task_info &info = snapshot.named(name);
            cr_assert_eq(info.kind, MC_TASK_MICROTHREAD);
            cr_assert_eq(info.runtime, mc_runtime_default());
            cr_assert_lt(info.executor, 2u);
            cr_assert_eq(info.timed, 0u);
            cr_assert_geq(info.waited_ns, 0);
            cr_assert_lt(info.waited_ns, 20 * MC_SEC);
            cr_assert_eq(info.stack_bytes, MC_STACK_DEFAULT);
            cr_assert_gt(info.stack_used, 100u);
            cr_assert_leq(info.stack_used, info.stack_high);
            cr_assert_leq(info.stack_high, info.stack_bytes);
        }
        cr_assert_eq(orders.send(5), 1);
        cr_assert_eq(mc_semaphore_release(semaphore, 1), MC_OK);
        csp_schedule();
        cr_assert_eq(mc_mutex_destroy(mutex), MC_OK);
        cr_assert_eq(mc_semaphore_destroy(semaphore), MC_OK);
    }
}

// Goal: a snapshot while all are parked disturbs nobody: what is sent afterwards is received, many times over.
Test(Inspect, disturbs_nothing, .timeout = 60) {
    World world;
    Many many(2);
    Chan channel;
    sync::atomic<int> received{0};
    const int rounds = scaled(200);
    for (int i = 0; i < 4; ++i)
        spawn_named("receiver", [&] {
            for (int n = 0; n < rounds; ++n) {
                (void)channel.receive();
                received.fetch_add(1, sync::acq_rel);
            }
        });
    for (int i = 0; i < 4 * rounds; ++i) {
        const Snapshot snapshot;
        if (i % 16 == 0)
            (void)json();
        cr_assert_eq(channel.send(i), 1);
    }
    until([&] { return received.load(sync::acquire) == 4 * rounds; });
}

// Goal: taken while microthreads begin, run, wait and end on several executors: each is described as of one moment.
Test(Inspect, while_everything_moves, .timeout = 60) {
    World world;
    Many many(3);
    Chan there, back;
    const int rounds = scaled(2000);
    spawn_named("ping", [&] {
        for (int i = 0; i < rounds; ++i) {
            cr_assert_eq(there.send(i), 1);
            cr_assert_eq(back.receive(), i);
        }
    });
    spawn_named("pong", [&] {
        for (int i = 0; i < rounds; ++i)
            cr_assert_eq(back.send(there.receive()), 1);
    });
    spawn_named("breeder", [&] {
        for (int i = 0; i < rounds / 4; ++i)
            join(start([] { csp_yield(); }));
    });
    for (int i = 0; i < scaled(200); ++i) {
        const Snapshot snapshot;
        for (const mc_task_info &info : snapshot.all) {
            const std::string name(info.name);
            if (name == "ping" || name == "pong") {
                const bool waits = info.waits_for == MC_WAIT_SEND || info.waits_for == MC_WAIT_RECEIVE;
                cr_assert(info.state != MC_TASK_WAITING || waits, "%s waits for %u", info.name, info.waits_for);
            }
        }
    }
    csp_schedule();
}

// Goal: those that have waited for long are the report of what is forgotten, with channel and description; threads too.
Test(Inspect, names_what_is_forgotten, .timeout = 30) {
    World world;
    Chan forgotten, busy;
    csp_chdescr(forgotten.r, "forgotten");
    spawn_named("leaked", [&] { (void)forgotten.receive(); });
    cr_assert_eq(mc_sleep(4 * unit), MC_OK);
    const int64_t began = mc_now();
    spawn_named("fresh", [&] { (void)busy.receive(); });
    const Snapshot leaks(0, 2 * unit);
    if (mc_now() - began < 2 * unit) // else it may have waited for as long itself
        cr_assert_eq(leaks.all.size(), 1u);
    cr_assert_str_eq(leaks.named("leaked").object_name, "forgotten");
    cr_assert_geq(leaks.named("leaked").waited_ns, 2 * unit);
    {
        PosixThread thread([&] {
            csp_descr("a thread");
            (void)forgotten.receive();
        });
        until([&] { return Snapshot(0, unit).find("a thread") != nullptr; });
        const Snapshot all;
        cr_assert_eq(all.named("a thread").kind, MC_TASK_THREAD);
        cr_assert_eq(all.named("a thread").waits_for, MC_WAIT_RECEIVE);
        cr_assert_null(Snapshot(mc_runtime_default()).find("a thread"), "it is of no runtime");
        forgotten.release_writer();
    }
    busy.release_writer();
}

// Goal: the JSON is well-formed, says the same, and takes any name.
Test(Inspect, json, .timeout = 30) {
    World world;
    Many many(2);
    Chan channel;
    csp_chdescr(channel.r, "a \"quoted\" \\ name\n");
    spawn_named("caf\xc3\xa9 \xe2\x82\xac", [&] { (void)channel.receive(); });
    spawn_named("broken \xc3( \xff", [&] { (void)channel.receive(); });
    until([] {
        int waiting = 0;
        for (const mc_task_info &info : Snapshot().all)
            waiting += info.waits_for == MC_WAIT_RECEIVE;
        return waiting == 2;
    });
    rapidjson::Document document;
    const std::string text = json();
    document.Parse<rapidjson::kParseValidateEncodingFlag>(text.c_str());
    cr_assert(!document.HasParseError(), "%s", text.c_str());
    cr_assert_eq(document["version"].GetInt(), 1);
    cr_assert_eq(document["runtimes"].Size(), 1u);
    cr_assert_eq(document["runtimes"][0]["executors"].GetUint(), 2u);
    cr_assert_eq(document["runtimes"][0]["executor_stats"].Size(), 2u);
    cr_assert_eq(document["runtimes"][0]["microthreads"].GetUint(), 2u);
    std::map<std::string, std::string> objects;
    for (const auto &task : document["tasks"].GetArray()) {
        cr_assert(task["kind"].IsString() && task["state"].IsString() && task["id"].IsUint64());
        if (task["state"] == "waiting")
            objects[task["name"].GetString()] = task["object_name"].GetString();
    }
    cr_assert_str_eq(objects["caf\xc3\xa9 \xe2\x82\xac"].c_str(), "a \"quoted\" \\ name\n");
    cr_assert(objects.count("broken \xef\xbf\xbd( \xef\xbf\xbd") == 1, "%s", text.c_str());
    channel.release_writer();
    csp_schedule();
    const std::string after = json(mc_runtime_default(), MC_SEC);
    document.Parse(after.c_str());
    cr_assert(!document.HasParseError());
    cr_assert_eq(document["tasks"].Size(), 0u);
}
