// Random histories of attached machines, checked for a serial order: is there one order of all transactions, the same for all machines,
// in which no effect comes before its cause, each machine gets its mail in the order in which it was sent, and each mailbox had
// room for what it got?
//
// Handlers write down which message they were given and which they sent. A dispatch that was committed is a node; so is each
// message from outside. Edges:
//   a machine's dispatch           -> its next one
//   who sent a message             -> who was given it
//   who sent a message             -> who sent the one that the same machine was given next
//   who was given message k - room -> who sent message k, where a message leaves the mailbox with the commit (RETRY)
// There is a serial order exactly if there is no cycle.
#include "base/prng.hpp"
#include "compose/test_attached.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace mc::compose::test {
namespace {

struct Shape {
    const char *name;
    uint32_t executors;
    uint32_t machines;
    uint32_t room;
    uint64_t starts;      // messages from outside, by each of two
    uint32_t generations; // how long a chain of messages is
    bool retry;
};

// A message's number says who sent it: machine, which of its dispatches, and which of that one's messages.
uint64_t number_of(uint64_t sender, uint64_t dispatch, uint64_t index) { return sender << 48 | dispatch << 8 | index; }
uint64_t node_of(uint64_t message) { return message >> 8; }

struct Given {
    uint64_t message;
    std::vector<uint64_t> sent; // all that it sent, in order
};

struct History {
    explicit History(const Shape &s, uint64_t seed_) : shape(s), seed(seed_), given(s.machines + 1) {}

    // Who may run again with the same message has run in vain before.
    mc_dispatch_result_t handle(Call call) {
        std::vector<Given> &log = given[call.id];
        const uint64_t message = call.env.payload0;
        if (log.empty() || log.back().message != message)
            log.push_back({message, {}});
        Given &now = log.back();
        now.sent.clear();
        const uint64_t dispatch = log.size();
        base::Prng random(seed ^ message);
        const uint64_t left = call.env.payload1;
        auto next_number = [&] {
            now.sent.push_back(number_of(call.id, dispatch, now.sent.size()));
            return now.sent.back();
        };
        auto somebody = [&] { return 1 + random.next() % shape.machines; };
        if (call.env.reply_cap_id != 0 && random.next() % 4 != 0)
            cr_assert_eq(__mc_machine_emit_reply(call.env.reply_cap_id, 1, next_number(), left == 0 ? 0 : left - 1), 1);
        if (left != 0) {
            const uint64_t messages = random.next() % 3 + (shape.retry ? 0 : random.next() % 2);
            for (uint64_t i = 0; i < messages; ++i)
                if (random.next() % 4 == 0)
                    cr_assert_neq(__mc_machine_emit_request(somebody(), 2, next_number(), left - 1, 3), 0);
                else
                    cr_assert_eq(__mc_machine_emit_send(somebody(), 1, next_number(), left - 1), 1);
        }
        return MC_DISPATCH_OK;
    }

    const Shape &shape;
    const uint64_t seed;
    std::vector<std::vector<Given>> given; // by machine; its handler's alone until all is idle
};

uint64_t check(const History &history) {
    std::map<uint64_t, std::vector<uint64_t>> after; // edges
    std::map<uint64_t, uint64_t> before;             // how many lead to a node
    auto edge = [&](uint64_t from, uint64_t to) {
        if (from == to)
            return;
        after[from].push_back(to);
        ++before[to];
        (void)before[from];
    };
    std::map<uint64_t, int> sent, got;
    for (const uint64_t sender : {1000, 1001})
        for (uint64_t i = 1; i < history.shape.starts; ++i)
            edge(node_of(number_of(sender, i, 0)), node_of(number_of(sender, i + 1, 0)));
    for (uint32_t machine = 1; machine <= history.shape.machines; ++machine) {
        const std::vector<Given> &log = history.given[machine];
        for (uint64_t k = 0; k < log.size(); ++k) {
            const uint64_t self = node_of(number_of(machine, k + 1, 0));
            (void)before[self];
            ++got[log[k].message];
            for (const uint64_t message : log[k].sent)
                ++sent[message];
            edge(node_of(log[k].message), self);
            if (k + 1 < log.size()) {
                edge(self, node_of(number_of(machine, k + 2, 0)));
                edge(node_of(log[k].message), node_of(log[k + 1].message));
            }
            const uint32_t room = history.shape.room;
            if (history.shape.retry && k >= room)
                edge(node_of(number_of(machine, k - room + 1, 0)), node_of(log[k].message));
        }
    }
    for (const auto &[message, times] : got)
        cr_assert_eq(times, 1, "seed %llu: message %llx came %d times", static_cast<unsigned long long>(history.seed),
                     static_cast<unsigned long long>(message), times);
    for (const auto &[message, times] : sent)
        cr_assert_eq(got.count(message), 1, "seed %llu: message %llx never came",
                     static_cast<unsigned long long>(history.seed), static_cast<unsigned long long>(message));
    std::vector<uint64_t> free;
    for (const auto &[node, count] : before)
        if (count == 0)
            free.push_back(node);
    uint64_t ordered = 0;
    while (!free.empty()) {
        const uint64_t node = free.back();
        free.pop_back();
        ++ordered;
        for (const uint64_t to : after[node])
            if (--before[to] == 0)
                free.push_back(to);
    }
    cr_assert_eq(ordered, before.size(), "%s, seed %llu: there is no serial order of %zu transactions",
                 history.shape.name, static_cast<unsigned long long>(history.seed), before.size());
    return ordered;
}

// How many transactions it had; 0: a circle of waits was broken, so messages are missing.
uint64_t run(const Shape &shape, uint64_t seed) {
    World world;
    History history(shape, seed);
    cr_assert_eq(mc_machine_set_on_full(&world.rt, shape.retry ? MC_MACHINE_ON_FULL_RETRY : MC_MACHINE_ON_FULL_FAULT),
                 MC_OK);
    for (uint32_t i = 0; i < shape.machines; ++i)
        (void)world.machine([&](Call call) { return history.handle(call); }, shape.room);
    world.attach();
    // From outside: the test's own thread, and a microthread. Each message is a transaction of its own.
    auto start = [&](uint64_t sender) {
        base::Prng random(seed + sender);
        for (uint64_t i = 1; i <= shape.starts; ++i) {
            const uint32_t dst = static_cast<uint32_t>(1 + random.next() % shape.machines);
            while (world.send(dst, 1, number_of(sender, i, 0), shape.generations) == MC_MAILBOX_ENQUEUE_FULL)
                cr_assert_eq(mc_yield(), MC_OK);
        }
    };
    const mc_task_t task = csp::testing::start([&] { start(1000); });
    start(1001);
    csp::testing::join(task);
    world.idle();
    return get(world.faults) != 0 ? 0 : check(history);
}

// At least every fourth must have got to its end, and they were not small.
void run_all(const Shape &shape, int seeds, uint64_t average) {
    uint64_t transactions = 0;
    int checked = 0;
    for (int seed = 0; seed < seeds; ++seed)
        if (const uint64_t count = run(shape, static_cast<uint64_t>(seed) * 3 + shape.executors); count != 0) {
            ++checked;
            transactions += count;
        }
    if (seeds >= 40) // of a few, chance has it
        cr_assert_geq(checked, seeds / 4, "%s", shape.name);
    cr_assert_geq(transactions, average * static_cast<uint64_t>(checked), "%s", shape.name);
}

// Goal: a serial order, with mailboxes that are never full.
Test(History, with_room) {
    for (const uint32_t executors : {1u, 2u, 3u}) {
        const Many many(static_cast<int>(executors));
        const Shape shape{"with room", executors, 5, 1'000'000, 5, 6, false};
        run_all(shape, scaled(60), 100);
    }
}

// Goal: likewise where senders wait for room all the time.
Test(History, without_room) {
    for (const uint32_t executors : {1u, 2u, 3u}) {
        const Many many(static_cast<int>(executors));
        const Shape shape{"without room", executors, 6, 4, 6, 4, true};
        run_all(shape, scaled(100), 20);
    }
}

} // namespace
} // namespace mc::compose::test
