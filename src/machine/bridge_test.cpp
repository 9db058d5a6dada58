// Words that name nothing; and the managed runtime, one for the process: made and ended by several threads, and by the
// program's bootstrap function.
#include "machine/runtimes.hpp"
#include "machine/test_machine.hpp"
#include "testing/systematic.hpp"

#include <mc/sync.h>

#include <algorithm>

using namespace mc;
using namespace mc::machine::test;
using testing::Thread;

namespace {

Memory memory;
sync::atomic<uint32_t> bootstraps{0};
uint64_t (*in_bootstrap)() = nullptr; // what else it does
uint64_t made_in_bootstrap = 0;

} // namespace

extern "C" MC_API void __mc_machine_bootstrap(void) {
    bootstraps.fetch_add(1, sync::relaxed);
    if (in_bootstrap != nullptr)
        made_in_bootstrap = in_bootstrap();
}

// Goal: a word that names no runtime, and one above 2^32 - 1 for a machine: each function says what it has to, and does nothing.
Test(MachineBridge, bad_words) {
    World world;
    const uint32_t id = world.sink();
    cr_assert_eq(id, 1);
    const uint64_t cap = world.ask(id, id, envelope(1));
    mc_machine_runtime_register_thunk(8901, call_handler);
    Bytes blob;
    blob.head("T", 0, 0, 0, 0);
    const uint64_t descriptor = mc_machine_runtime_register_descriptor(blob.data(), blob.size());
    const uint64_t ended = __mc_machine_runtime_new();
    __mc_machine_runtime_free(ended);
    __mc_machine_runtime_free(ended);
    mc_machine_runtime_t dropped;
    mc_machine_runtime_init(&dropped);
    mc_machine_runtime_drop(&dropped);
    const uint64_t no_runtimes[] = {0, 1, UINT64_MAX, ended, reinterpret_cast<uintptr_t>(&dropped), world.word() + 8};
    const uint64_t before = live();
    for (const uint64_t rt : no_runtimes) {
        cr_assert_eq(__mc_machine_runtime_spawn_u64(rt, 1), 0);
        cr_assert_eq(__mc_machine_runtime_start_u64(rt, 1), 0);
        cr_assert_eq(__mc_machine_runtime_set_state_u64(rt, 1, 5), 0);
        cr_assert_eq(__mc_machine_runtime_send_u64(rt, 1, 2, 0, 0), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
        cr_assert_eq(__mc_machine_runtime_request_u64(rt, 1, 1, 2, 0, 0), 0);
        cr_assert_eq(__mc_machine_runtime_reply_u64(rt, 1, cap, 2, 0, 0), MC_REPLY_CAP_UNKNOWN);
        cr_assert_eq(__mc_machine_runtime_bind_dispatch_u64(rt, 1, 0, 0), 0);
        cr_assert_eq(__mc_machine_runtime_bind_dispatch_thunk_u64(rt, 1, 8901, 0), 0);
        cr_assert_eq(__mc_machine_runtime_bind_descriptor_u64(rt, 1, descriptor, 1), 0);
        cr_assert_eq(__mc_machine_runtime_step_u64(rt), MC_STEP_IDLE);
        auto *pointer = reinterpret_cast<mc_machine_runtime_t *>(rt);
        const Envelope env = envelope(1);
        mc_machine_id_t out = 7;
        uint64_t pending = 7;
        cr_assert_eq(mc_machine_runtime_spawn(pointer, 1, &out), 0);
        cr_assert_eq(mc_machine_runtime_request(pointer, 1, 1, &env, &pending), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
        cr_assert_eq(out, 7);
        cr_assert_eq(pending, 7);
        cr_assert_eq(mc_machine_runtime_enqueue(pointer, 1, &env), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
        cr_assert_eq(mc_machine_runtime_reply(pointer, 1, cap, &env), MC_REPLY_CAP_UNKNOWN);
        cr_assert_eq(mc_machine_runtime_lifecycle(pointer, 1), MC_MACHINE_STOPPED);
        cr_assert_eq(mc_machine_runtime_stop(pointer, 1), 0);
        cr_assert_eq(mc_machine_runtime_mark_faulted(pointer, 1), 0);
        cr_assert_eq(mc_machine_runtime_dispatch_one_txn(pointer, call_handler, nullptr), 0);
        cr_assert_eq(mc_machine_runtime_pending_contains(pointer, cap), 0);
        cr_assert_eq(mc_machine_runtime_ready_len(pointer), 0);
    }
    for (const uint64_t machine : {uint64_t{1} << 32 | 1, uint64_t{1} << 32, UINT64_MAX, uint64_t{2}, uint64_t{0}}) {
        const uint64_t rt = world.word();
        cr_assert_eq(__mc_machine_runtime_start_u64(rt, machine), 0);
        cr_assert_eq(__mc_machine_runtime_set_state_u64(rt, machine, 5), 0);
        cr_assert_eq(__mc_machine_runtime_send_u64(rt, machine, 2, box(), owned), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
        cr_assert_eq(__mc_machine_runtime_request_u64(rt, 1, machine, 2, box(), owned), 0);
        if (machine > UINT32_MAX) {
            cr_assert_eq(__mc_machine_runtime_request_u64(rt, machine, 1, 2, box(), owned), 0);
            cr_assert_eq(__mc_machine_runtime_reply_u64(rt, machine, cap, 2, box(), owned), MC_REPLY_CAP_UNKNOWN);
        }
        cr_assert_eq(__mc_machine_runtime_bind_dispatch_u64(rt, machine, 0, 0), 0);
        cr_assert_eq(__mc_machine_runtime_bind_dispatch_thunk_u64(rt, machine, 8901, 0), 0);
        cr_assert_eq(__mc_machine_runtime_bind_descriptor_u64(rt, machine, descriptor, 1), 0);
    }
    cr_assert_eq(live(), before); // what the runtime was given it has freed
    cr_assert_eq(world.mail(id), 1);
    cr_assert_eq(world.state(id), 0);
    cr_assert_eq(world.requests(), 1);
    cr_assert_eq(__mc_machine_runtime_reply_u64(world.word(), 0, cap, 2, 0, 0), MC_REPLY_OK);
}

// Goal: the bootstrap function is called once, by the first runtime; one that makes the managed runtime itself has made it.
Test(MachineManaged, made_by_the_bootstrap_function) {
    memory.install();
    World warm;         // the table of runtimes is there
    mc_once_t once = 0; // and so is what a wait for another's bootstrap takes
    cr_assert_eq(mc_once_create(&once), MC_OK);
    cr_assert_eq(mc_once_call(
                     once, [](void *) { return int32_t{0}; }, nullptr, MC_FOREVER),
                 MC_OK);
    const uint64_t blocks = memory.blocks;
    in_bootstrap = __mc_machine_runtime_managed_bootstrap_u64;
    const uint64_t word = __mc_machine_runtime_managed_bootstrap_u64();
    cr_assert_neq(word, 0);
    cr_assert_eq(word, made_in_bootstrap);
    cr_assert_eq(__mc_machine_runtime_managed_current_u64(), word);
    const uint64_t another = __mc_machine_runtime_new();
    cr_assert_neq(another, 0);
    cr_assert_eq(bootstraps.load(sync::relaxed), 1);
    cr_assert_eq(__mc_machine_runtime_managed_shutdown_u64(), 1);
    cr_assert_not(machine::find_runtime(word));
    __mc_machine_runtime_free(another);
    cr_assert_eq(memory.blocks, blocks); // the one that came second has ended, too
}

// Goal: also when there is no memory for another one after that; and with none at all there is none.
Test(MachineManaged, without_memory) {
    memory.install();
    World warm;
    in_bootstrap = [] {
        const uint64_t word = __mc_machine_runtime_managed_bootstrap_u64();
        memory.allowed = 0;
        return word;
    };
    const uint64_t word = __mc_machine_runtime_managed_bootstrap_u64();
    cr_assert_neq(word, 0);
    cr_assert_eq(word, made_in_bootstrap);
    cr_assert_eq(__mc_machine_runtime_managed_shutdown_u64(), 1);
    cr_assert_eq(__mc_machine_runtime_managed_bootstrap_u64(), 0);
    cr_assert_eq(__mc_machine_runtime_managed_current_u64(), 0);
    memory.allowed = INT64_MAX;
}

// Goal: ended by its word, in either way, it is the managed one no more; another's end leaves it.
Test(MachineManaged, ended_by_its_word) {
    for (const bool by_free : {true, false}) {
        const uint64_t word = __mc_machine_runtime_managed_bootstrap_u64(), other = __mc_machine_runtime_new();
        __mc_machine_runtime_free(other);
        cr_assert_eq(__mc_machine_runtime_managed_current_u64(), word);
        if (by_free)
            __mc_machine_runtime_free(word);
        else
            mc_machine_runtime_drop(reinterpret_cast<mc_machine_runtime_t *>(word));
        cr_assert_eq(__mc_machine_runtime_managed_current_u64(), 0);
        cr_assert_eq(__mc_machine_runtime_managed_shutdown_u64(), 0);
        cr_assert_neq(__mc_machine_runtime_managed_bootstrap_u64(), word);
        cr_assert_eq(__mc_machine_runtime_managed_shutdown_u64(), 1);
    }
}

// Goal: of threads that make it and end it at the same time, who ends one has ended it alone: as many are ended as were made.
Test(MachineManaged, made_and_ended_by_threads) {
    constexpr int threads = 4;
    const int rounds = (testing::under_valgrind ? 200 : 5000) * static_cast<int>(testing::scale());
    std::vector<uint64_t> words[threads];
    uint64_t ended[threads] = {};
    const auto play = [&](int i) {
        base::Prng prng(static_cast<uint64_t>(i));
        for (int round = 0; round < rounds; ++round) {
            if (prng.below(2) == 0) {
                words[i].push_back(__mc_machine_runtime_managed_bootstrap_u64());
                cr_assert_neq(words[i].back(), 0);
            } else {
                ended[i] += __mc_machine_runtime_managed_shutdown_u64();
            }
        }
    };
    {
        Thread one([&] { play(0); });
        Thread two([&] { play(1); });
        Thread three([&] { play(2); });
        Thread four([&] { play(3); });
    }
    static_assert(threads == 4);
    std::vector<uint64_t> made;
    uint64_t ends = __mc_machine_runtime_managed_shutdown_u64();
    for (int i = 0; i < threads; ++i) {
        made.insert(made.end(), words[i].begin(), words[i].end());
        ends += ended[i];
    }
    std::sort(made.begin(), made.end());
    made.erase(std::unique(made.begin(), made.end()), made.end());
    cr_assert_eq(made.size(), ends);
    for (const uint64_t word : made)
        cr_assert_not(machine::find_runtime(word));
    cr_assert_eq(bootstraps.load(sync::relaxed), 1);
}

// Goal: while it ends it is the managed one no more: a drop function that shuts it down finds none.
Test(MachineManaged, none_while_its_boxes_are_dropped) {
    Drops::begin();
    const uint64_t word = __mc_machine_runtime_managed_bootstrap_u64();
    const uint64_t id = __mc_machine_runtime_spawn_u64(word, 1);
    cr_assert_eq(__mc_machine_runtime_send_u64(word, id, 1, box(), owned | Drops::layout), MC_MAILBOX_ENQUEUE_OK);
    Drops::then = [&](uint64_t) {
        cr_assert_eq(__mc_machine_runtime_managed_current_u64(), 0);
        cr_assert_eq(__mc_machine_runtime_managed_shutdown_u64(), 0);
        cr_assert_eq(__mc_machine_runtime_start_u64(word, id), 0);
    };
    cr_assert_eq(__mc_machine_runtime_managed_shutdown_u64(), 1);
    cr_assert_eq(Drops::seen.size(), 1);
}
