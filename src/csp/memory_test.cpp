// Memory: what allocates and what does not, and what happens when there is none. abi-tests/allocator.c lets every
// single allocation fail in turn.
#include "csp/test_csp.hpp"

#include <cstdlib>
#include <vector>

using namespace mc::csp::testing;

namespace {

bool failing;
int allocations;

void *allocate(void *, uint64_t size, uint64_t align) {
    ++allocations;
    if (failing)
        return nullptr;
    return std::aligned_alloc(align, (size + align - 1) / align * align);
}
void release(void *, void *memory, uint64_t, uint64_t) { std::free(memory); }

void install() {
    mc_allocator allocator = MC_ALLOCATOR_INIT;
    allocator.alloc = allocate;
    allocator.free = release;
    cr_assert_eq(mc_set_allocator(&allocator), MC_OK);
}

// While it lives, no allocation succeeds.
struct NoMemory {
    NoMemory() { failing = true; }
    ~NoMemory() { failing = false; }
};

mc_chan_t make(uint32_t capacity, mc_chan_drop_fn drop) {
    mc_chan_t chan = 0;
    cr_assert_eq(mc_chan_create(0, sizeof(int), capacity, drop, nullptr, &chan), MC_OK);
    return chan;
}

} // namespace

// Goal: messages move, waits begin and end, alts of up to 16 arms choose, without an allocation.
Test(Memory, messages_do_not_allocate) {
    install();
    World world;
    Chan chans[16], back;
    const mc_chan_t elements = make(2, nullptr);
    csp_chanop ops[16];
    int got = 0;
    for (int i = 0; i < 16; ++i)
        ops[i] = receives(chans[i].r, &got);
    spawn([&] { // answers whatever comes, until the last channel dies
        while (csp_alt(ops, 16, 0) > 0)
            cr_assert_eq(back.send(got), 1);
    });
    {
        NoMemory none;
        allocations = 0;
        for (int i = 0; i < 100; ++i) {
            int value = i;
            cr_assert_eq(csp_send(chans[i % 16].w, &value), 1);
            cr_assert_eq(back.receive(), i);
            cr_assert_eq(mc_send(elements, &value), MC_OK);
            cr_assert_eq(mc_recv(elements, &value), MC_OK);
            cr_assert_eq(mc_recv_try(elements, nullptr), MC_E_AGAIN);
            cr_assert_eq(csp_recv_until(back.r, &value, mc_after(1000)), MC_E_TIMEDOUT);
            cr_assert_eq(csp_prialt(ops, 16, 1), 0);
            csp_writer_release(csp_writer_addref(back.w));
            csp_sleep_until(mc_after(1000));
            csp_yield();
        }
        chans[3].release_writer();
        csp_schedule();
        cr_assert_eq(allocations, 0);
    }
    cr_assert_eq(mc_chan_destroy(elements), MC_OK);
}

// Goal: nor does it allocate to discard an element that must be dropped, alone or as an arm.
Test(Memory, discarding_does_not_allocate) {
    install();
    World world;
    static int drops = 0;
    const mc_chan_t elements = make(4, [](void *, void *, uint64_t) { ++drops; });
    csp_reader r = nullptr;
    cr_assert_eq(mc_chan_reader(elements, &r), MC_OK);
    for (int i = 0; i < 3; ++i)
        cr_assert_eq(mc_send(elements, &i), MC_OK);
    {
        NoMemory none;
        const csp_chanop ops[] = {disabled(), receives(r)};
        cr_assert_eq(mc_recv(elements, nullptr), MC_OK);
        cr_assert_eq(csp_recv(r, nullptr), 1);
        cr_assert_eq(prialt(ops), 2);
    }
    cr_assert_eq(drops, 3);
    csp_reader_release(r);
    cr_assert_eq(mc_chan_destroy(elements), MC_OK);
}

// Goal: more than 16 arms need memory; without it MC_E_NOMEM, whatever could have gone, and nothing has happened.
Test(Memory, many_arms_without_memory) {
    install();
    World world;
    Chan chan;
    int got = -5, message = 4;
    std::vector<csp_chanop> ops(17, receives(chan.r, &got));
    spawn([&] { cr_assert_eq(csp_send(chan.w, &message), 1); });
    {
        NoMemory none;
        cr_assert_eq(csp_alt(ops.data(), 17, 0), MC_E_NOMEM);
        cr_assert_eq(csp_prialt(ops.data(), 17, 1), MC_E_NOMEM);
        cr_assert_eq(csp_alt_until(ops.data(), 17, MC_NOW), MC_E_NOMEM);
    }
    cr_assert_eq(got, -5);
    cr_assert_eq(csp_alt(ops.data(), 17, 0), 1);
    cr_assert_eq(got, 4);
}

// Goal: what is made without memory is not made, said so in each call's way, and leaves its results alone; later it
// works.
Test(Memory, creation_without_memory) {
    install();
    World world;
    mc_chan_t chan = 77;
    std::vector<csp_writer> writers;
    std::vector<csp_reader> readers, timers;
    std::vector<mc_task_t> tasks;
    const mc_task_fn nothing = [](void *) -> int32_t { return 0; };
    {
        NoMemory none;
        cr_assert_eq(mc_chan_create(0, 8, 8, nullptr, nullptr, &chan), MC_E_NOMEM);
        cr_assert_eq(mc_chan_create(0, 0, 0, nullptr, nullptr, &chan), MC_E_NOMEM);
        cr_assert_eq(chan, 77u);
        cr_assert_null(csp_after(MC_SEC));
        cr_assert_null(csp_tick(MC_SEC));
        // Slots that were made before are used; then there are none.
        csp_writer w = nullptr;
        csp_reader r = nullptr;
        while (csp_chan(&w, &r, copy_int) == 1) {
            writers.push_back(std::exchange(w, nullptr));
            readers.push_back(std::exchange(r, nullptr));
        }
        cr_assert(w == nullptr && r == nullptr);
        mc_task_t task = 77;
        int32_t status = MC_OK;
        for (; (status = mc_spawn(0, nothing, nullptr, nullptr, &task)) == MC_OK; task = 77)
            tasks.push_back(task);
        cr_assert_eq(status, MC_E_NOMEM);
        cr_assert_eq(task, 77u);
        cr_assert_eq(csp_spawn([](void *) {}, nullptr), 0);
        cr_assert_eq(world.log.count(MC_E_NOMEM), 4);
        world.expected_lines = 4;
    }
    for (size_t i = 0; i < writers.size(); ++i) {
        csp_writer_release(writers[i]);
        csp_reader_release(readers[i]);
    }
    for (mc_task_t task : tasks)
        cr_assert_eq(mc_join(task, MC_FOREVER, nullptr), MC_OK);
    Chan good;
    spawn([&] { cr_assert_eq(good.receive(), 3); });
    cr_assert_eq(good.send(3), 1);
    csp_reader timer = csp_after(1000);
    cr_assert_eq(csp_recv(timer, nullptr), 1);
    csp_reader_release(timer);
}

// Goal: a thread whose first call finds no memory is told so by each call, and attached by a later one.
Test(Memory, a_threads_first_call_without_memory, .timeout = 20) {
    install();
    World world;
    Chan chan;
    PosixThread thread([&] {
        int value = 5;
        {
            NoMemory none;
            cr_assert_eq(csp_send(chan.w, &value), MC_E_NOMEM);
            cr_assert_eq(csp_try_send(chan.w, &value), MC_E_NOMEM);
            cr_assert_eq(mc_recv(1, &value), MC_E_NOMEM);
            cr_assert_eq(csp_run(), 0);
            csp_yield();
        }
        cr_assert_eq(csp_try_send(chan.w, &value), 0);
    });
    thread.join();
    cr_assert_eq(world.log.count(MC_E_NOMEM), 1);
    world.expected_lines = 1;
}

// Goal: the very first call without memory fails; the next one makes it good.
Test(Memory, the_first_call_without_memory) {
    install();
    csp_writer w = nullptr;
    csp_reader r = nullptr;
    {
        Log log;
        NoMemory none;
        cr_assert_eq(csp_chan(&w, &r, nullptr), 0);
        cr_assert_eq(csp_spawn([](void *) {}, nullptr), 0);
        cr_assert_eq(csp_run(), 0);
        cr_assert_eq(csp_send(nullptr, nullptr), MC_E_INVAL);
        cr_assert_eq(log.count(MC_E_NOMEM), 3);
    }
    World world;
    Chan chan;
    spawn([&] { cr_assert_eq(chan.receive(), 3); });
    cr_assert_eq(chan.send(3), 1);
    mc_allocator late = MC_ALLOCATOR_INIT;
    late.alloc = allocate;
    late.free = release;
    cr_assert_eq(mc_set_allocator(&late), MC_E_BUSY);
}
