// Fuzz target: arrays of csp_chanop words over a few channels of both kinds, against a model of what mc/csp.h promises.
//
// An input is a program: main's alts that do not wait, microthreads that wait in alts, releases, closes, destructions.
// Words have random sides, modes, bits that must be set, disabled handles, duplicates, NULL messages; the handles are
// always live, since a wild pointer is nothing that the library could survive. After each step everything runs that can,
// and every result, every message and every drop must be as the model says.
//
// Built by tests/fuzz/run with libFuzzer, and by tests/fuzz_replay.cpp, which plays the corpus and random inputs.
#include "input.hpp"

#include <mc/mc.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

using fuzz::Input;
using fuzz::steps;

namespace {

constexpr size_t most_arms = 24, most_parked = 8, most_steps = 48;
constexpr int untouched = -1, from_null = -7;

int drops, expected_drops; // real and in the model

struct Task;

// A channel as the model sees it. It lives as long as somebody refers to it.
struct Channel {
    csp_writer w = nullptr;
    csp_reader r = nullptr;
    mc_chan_t handle = 0; // of a channel of elements; 0: a csp channel
    size_t capacity = 0;
    bool drops = false;
    int references[2] = {1, 1}; // main's; a handle's are in it too
    bool main_has[2] = {true, true};
    bool closed[2] = {};
    std::deque<int> buffer;
    struct Waiter {
        Task *task;
        size_t arm;
    };
    std::vector<Waiter> waiters[2], vultures[2]; // [side], in the order in which they came

    bool dead_to(int side) const { return closed[side] || (closed[1 - side] && (side == 0 || buffer.empty())); }
};
using ChannelRef = std::shared_ptr<Channel>;

struct Arm {
    ChannelRef channel; // null: disabled
    unsigned low = 0;   // the low four bits
    bool null_message = false;
    int value = untouched; // what is sent, or received

    bool reader() const { return (low & 1) != 0; }
    int side() const { return reader() ? 1 : 0; }
    bool dead_mode() const { return (low & 2) == 0; }
    bool valid() const { return (low & 12) == 12; }
    bool same(const Arm &other) const { return channel == other.channel && low == other.low; }
};

// An alt, of main or of a microthread.
struct Task {
    std::vector<Arm> arms;
    std::vector<csp_chanop> ops;
    bool random = false;
    bool holds_references = false;
    bool ended = false;      // really
    int result = 0;          // really
    int expected = 0;        // in the model, once woken
    bool woken = false;      // in the model
    Channel *died = nullptr; // in the model: whose death woke it
    std::vector<int> values; // in the model: what each arm's message ends up with
};

std::vector<std::unique_ptr<Task>> parked; // in the model: they wait
std::deque<Task *> ending;                 // in the model: woken, in the order in which they run

void copy_int(void *source, void *destination) {
    *static_cast<int *>(destination) = source == nullptr ? from_null : *static_cast<int *>(source);
}
void drop_int(void *, void *elem, uint64_t size) {
    REQUIRE(size == sizeof(int) && *static_cast<int *>(elem) != untouched);
    ++drops;
}

// --- the model --------------------------------------------------------------------------------------------------------------

void wake(Task *task, int result) {
    task->woken = true;
    task->expected = result;
    ending.push_back(task);
}

// The first who waits on that side and is not woken yet; he is woken with that arm.
Task *claim(Channel &channel, int side, size_t *arm) {
    for (const Channel::Waiter &waiter : channel.waiters[side])
        if (!waiter.task->woken) {
            *arm = waiter.arm;
            return waiter.task;
        }
    return nullptr;
}

void wake_all(Channel &channel, const std::vector<Channel::Waiter> &waiters) {
    for (const Channel::Waiter &waiter : waiters) {
        if (waiter.task->woken)
            continue;
        wake(waiter.task, -static_cast<int>(waiter.arm) - 1);
        waiter.task->died = &channel;
    }
}

void wake_dead(Channel &channel) {
    for (int side : {1, 0})
        if (channel.dead_to(side))
            wake_all(channel, channel.waiters[side]);
    for (int side : {1, 0})
        if (channel.dead_to(side))
            wake_all(channel, channel.vultures[side]);
}

void close_in_model(Channel &channel, bool writer, bool reader) {
    channel.closed[0] |= writer;
    channel.closed[1] |= reader;
    if (channel.closed[1]) {
        expected_drops += channel.drops ? static_cast<int>(channel.buffer.size()) : 0;
        channel.buffer.clear();
    }
    wake_dead(channel);
}

void release_in_model(Channel &channel, int side) {
    if (--channel.references[side] == 0 && !channel.closed[side])
        close_in_model(channel, side == 0, side == 1);
}

// What a message becomes on its way.
int sent(const Arm &arm) { return !arm.null_message ? arm.value : arm.channel->handle != 0 ? 0 : from_null; }
void arrives(Task &receiver, size_t arm, int value) {
    if (!receiver.arms[arm].null_message)
        receiver.values[arm] = value;
    else
        expected_drops += receiver.arms[arm].channel->drops;
}

enum class Decision { none, dead, went };

// Arm i, if it decides; with `act` what it does is done.
Decision decide(Task &task, size_t i, bool act, bool *woke_receiver) {
    Arm &arm = task.arms[i];
    if (arm.channel == nullptr)
        return Decision::none;
    Channel &channel = *arm.channel;
    if (channel.dead_to(arm.side()))
        return Decision::dead;
    if (arm.dead_mode())
        return Decision::none;
    size_t peer_arm = 0;
    if (arm.reader() && !channel.buffer.empty()) {
        if (!act)
            return Decision::went;
        arrives(task, i, channel.buffer.front());
        channel.buffer.pop_front();
        if (Task *sender = claim(channel, 0, &peer_arm)) {
            channel.buffer.push_back(sent(sender->arms[peer_arm]));
            wake(sender, static_cast<int>(peer_arm) + 1);
        }
        wake_dead(channel);
        return Decision::went;
    }
    if (Task *peer = claim(channel, 1 - arm.side(), &peer_arm)) {
        if (!act)
            return Decision::went;
        if (arm.reader())
            arrives(task, i, sent(peer->arms[peer_arm]));
        else
            arrives(*peer, peer_arm, sent(arm));
        *woke_receiver = !arm.reader();
        wake(peer, static_cast<int>(peer_arm) + 1);
        return Decision::went;
    }
    if (arm.reader() || channel.handle == 0 || channel.buffer.size() >= channel.capacity)
        return Decision::none;
    if (act)
        channel.buffer.push_back(sent(arm));
    return Decision::went;
}

size_t lowest_duplicate(const Task &task, size_t arm) {
    for (size_t i = 0; i < arm; ++i)
        if (task.arms[i].same(task.arms[arm]))
            return i;
    return arm;
}

// The answer of an alt that starts at this arm; 0: nothing can go.
int answer(Task &task, size_t start) {
    for (size_t k = 0; k < task.arms.size(); ++k) {
        const size_t i = (start + k) % task.arms.size();
        const Decision decision = decide(task, i, false, nullptr);
        if (decision != Decision::none) {
            const int index = static_cast<int>(lowest_duplicate(task, i)) + 1;
            return decision == Decision::went ? index : -index;
        }
    }
    return 0;
}

bool all_disabled(const Task &task) {
    return std::all_of(task.arms.begin(), task.arms.end(), [](const Arm &arm) { return arm.channel == nullptr; });
}
bool all_valid(const Task &task) {
    return std::all_of(task.arms.begin(), task.arms.end(),
                       [](const Arm &arm) { return arm.channel == nullptr || arm.valid(); });
}

// Checks a result that came at once (nothing: what stands for "nothing could go"), and does in the model what it says.
void check_immediate(Task &task, int result, int nothing, bool *woke_receiver) {
    if (!all_valid(task)) {
        REQUIRE(result == MC_E_INVAL);
        return;
    }
    if (all_disabled(task)) {
        REQUIRE(result == 0);
        return;
    }
    bool possible = false;
    for (size_t start = 0; start < (task.random ? task.arms.size() : 1); ++start) {
        const int wanted = answer(task, start);
        possible |= result == (wanted == 0 ? nothing : wanted);
    }
    REQUIRE(possible);
    if (result > 0)
        decide(task, static_cast<size_t>(result) - 1, true, woke_receiver);
}

// Of an alt that has arms on both ends of a channel which dies as a whole, any of them may be named.
bool as_expected(const Task &task) {
    if (task.result == task.expected)
        return true;
    const auto arm = static_cast<size_t>(-task.result) - 1;
    return task.died != nullptr && task.result < 0 && arm < task.arms.size() &&
           task.arms[arm].channel.get() == task.died && lowest_duplicate(task, arm) == arm;
}

void check_values(const Task &task) {
    for (size_t i = 0; i < task.arms.size(); ++i)
        REQUIRE(task.arms[i].value == task.values[i]);
}

// --- the library ------------------------------------------------------------------------------------------------------------

ChannelRef make_channel(unsigned kind) {
    auto channel = std::make_shared<Channel>();
    if (kind < 2) {
        REQUIRE(csp_chan(&channel->w, &channel->r, copy_int) == 1);
        return channel;
    }
    channel->capacity = kind == 2 ? 0 : 2;
    channel->drops = kind == 3;
    REQUIRE(mc_chan_create(0, sizeof(int), static_cast<uint32_t>(channel->capacity),
                           channel->drops ? drop_int : nullptr, nullptr, &channel->handle) == MC_OK);
    REQUIRE(mc_chan_writer(channel->handle, &channel->w) == MC_OK);
    REQUIRE(mc_chan_reader(channel->handle, &channel->r) == MC_OK);
    ++channel->references[0];
    ++channel->references[1];
    return channel;
}

void release_one(Channel &channel, int side) {
    side == 0 ? csp_writer_release(channel.w) : csp_reader_release(channel.r);
}

std::unique_ptr<Task> read_alt(Input &input, const ChannelRef (&channels)[4]) {
    static int next_value = 0;
    auto task = std::make_unique<Task>();
    task->random = input.below(2) != 0;
    task->arms.resize(input.below(8) == 0 ? input.below(most_arms) : input.below(5));
    for (Arm &arm : task->arms) {
        const unsigned dice = input.below(64), bits = input.below(16);
        arm.low = dice >= 60 ? bits : bits | 12; // now and then a bad one
        arm.channel = dice % 8 == 7 ? nullptr : channels[dice % 4];
        if (arm.channel != nullptr && !arm.channel->main_has[arm.side()])
            arm.channel = nullptr; // that end is not ours any more
        arm.null_message = (bits & 4) != 0 && dice % 3 == 0;
        arm.value = arm.reader() || arm.dead_mode() ? untouched : next_value++ & 0xffff;
    }
    for (Arm &arm : task->arms) {
        const uintptr_t address = arm.channel == nullptr ? 0 : reinterpret_cast<uintptr_t>(arm.channel->w);
        task->ops.push_back({reinterpret_cast<csp_waiter>(address | arm.low), arm.null_message ? nullptr : &arm.value});
        task->values.push_back(arm.value);
    }
    return task;
}

int call(const Task &task, int nowait) {
    const int count = static_cast<int>(task.ops.size());
    return (task.random ? csp_alt : csp_prialt)(task.ops.data(), count, nowait);
}

// Runs all that can run, as the model has woken it, and compares.
void settle() {
    csp_schedule();
    while (!ending.empty()) {
        Task *task = ending.front();
        ending.pop_front();
        REQUIRE(task->ended && as_expected(*task));
        check_values(*task);
        if (task->holds_references)
            for (const Arm &arm : task->arms)
                if (arm.channel != nullptr)
                    release_in_model(*arm.channel, arm.side());
        for (const Arm &arm : task->arms) {
            if (arm.channel == nullptr)
                continue;
            for (auto *list : {&arm.channel->waiters[0], &arm.channel->waiters[1], &arm.channel->vultures[0],
                               &arm.channel->vultures[1]})
                std::erase_if(*list, [=](const Channel::Waiter &waiter) { return waiter.task == task; });
        }
        std::erase_if(parked, [=](const std::unique_ptr<Task> &other) { return other.get() == task; });
    }
    for (const auto &task : parked)
        REQUIRE(!task->ended);
    REQUIRE(drops == expected_drops);
}

void alt_at_once(Task &task, unsigned form) {
    const int count = static_cast<int>(task.ops.size());
    const auto until = task.random ? csp_alt_until : csp_prialt_until;
    bool woke = false;
    if (form != 0)
        check_immediate(task, call(task, 1), 0, &woke);
    else
        check_immediate(task, until(task.ops.data(), count, MC_NOW), MC_E_TIMEDOUT, &woke);
    check_values(task);
}

// Of a task that decided at once: what it woke runs before its end when it handed over to a receiver, else after.
void end_at_once(Task *task) {
    bool woke_receiver = false;
    check_immediate(*task, task->result, 1 << 20, &woke_receiver); // waiting is no answer
    task->woken = true;
    task->expected = task->result;
    woke_receiver ? ending.push_back(task) : ending.push_front(task);
}

void alt_in_a_microthread(std::unique_ptr<Task> owned) {
    Task *task = owned.get();
    parked.push_back(std::move(owned));
    for (const Arm &arm : task->arms) {
        if (arm.channel == nullptr)
            continue;
        ++arm.channel->references[arm.side()];
        arm.reader() ? (void)csp_reader_addref(arm.channel->r) : (void)csp_writer_addref(arm.channel->w);
    }
    task->holds_references = true;
    const auto run = [](void *data) {
        auto *self = static_cast<Task *>(data);
        self->result = call(*self, 0);
        self->ended = true;
        for (const Arm &arm : self->arms)
            if (arm.channel != nullptr)
                release_one(*arm.channel, arm.side());
    };
    bool waits = all_valid(*task) && !all_disabled(*task) && answer(*task, 0) == 0;
    REQUIRE(csp_spawn(run, task) == 1);
    csp_schedule();
    if (!waits)
        return end_at_once(task);
    REQUIRE(!task->ended);
    for (size_t i = 0; i < task->arms.size(); ++i) {
        const Arm &arm = task->arms[i];
        if (arm.channel != nullptr)
            (arm.dead_mode() ? arm.channel->vultures : arm.channel->waiters)[arm.side()].push_back({task, i});
    }
}

void release_main(Channel &channel, int side) {
    if (!channel.main_has[side])
        return;
    channel.main_has[side] = false;
    release_one(channel, side);
    release_in_model(channel, side);
}

void close_writer(Channel &channel) {
    const int result = csp_writer_close(channel.w);
    REQUIRE(result == (channel.closed[0] ? -1 : 1));
    close_in_model(channel, true, false);
}

void destroy(Channel &channel) {
    if (channel.handle == 0)
        return;
    REQUIRE(mc_chan_destroy(channel.handle) == MC_OK);
    REQUIRE(mc_chan_destroy(channel.handle) == MC_E_STALE);
    channel.handle = 0;
    channel.capacity = 0;
    close_in_model(channel, true, true);
    --channel.references[0];
    --channel.references[1];
}

void clean_up(ChannelRef (&channels)[4]) {
    std::vector<ChannelRef> all(channels, channels + 4);
    for (const auto &task : parked)
        for (const Arm &arm : task->arms)
            if (arm.channel != nullptr)
                all.push_back(arm.channel);
    for (const ChannelRef &channel : all) {
        if (channel->references[0] > 0)
            close_writer(*channel); // by a reference of somebody who waits, if by no other
        destroy(*channel);
        settle();
        release_main(*channel, 0);
        release_main(*channel, 1);
        settle();
    }
    REQUIRE(parked.empty());
    REQUIRE(csp__internal__channel_count(0) == 0 && csp__internal__channel_count(1) == 0);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Input input(data, size);
    ChannelRef channels[4] = {make_channel(0), make_channel(1), make_channel(2), make_channel(3)};
    for (steps = 0; steps < static_cast<int>(most_steps) && !input.empty(); ++steps) {
        const unsigned dice = input.below(16);
        Channel &channel = *channels[dice % 4];
        if (dice < 6)
            alt_at_once(*read_alt(input, channels), input.below(3));
        else if (dice < 11 && parked.size() < most_parked)
            alt_in_a_microthread(read_alt(input, channels));
        else if (dice < 13)
            release_main(channel, static_cast<int>(input.below(2)));
        else if (dice == 13 && channel.main_has[0])
            close_writer(channel);
        else if (dice == 14)
            destroy(*channels[2 + input.below(2)]);
        else if (const unsigned kind = input.below(4); !channels[kind]->main_has[0] && !channels[kind]->main_has[1]) {
            destroy(*channels[kind]);
            settle();
            channels[kind] = make_channel(kind);
        }
        settle();
    }
    clean_up(channels);
    return 0;
}
