// Threads that come and go: many at once, some holding what others wait for, the owner itself.
#include "csp/test_csp.hpp"

#include <list>
#include <vector>

using namespace mc::csp::testing;

namespace {

// Releases what a thread holds in its last moments, as a binding's thread-local would.
struct Held {
    csp_writer w = nullptr;
    csp_reader r = nullptr;
    ~Held() {
        csp_writer_release(w);
        csp_reader_release(r);
    }
};
thread_local Held held;

void release_writer_of_key(void *w) { csp_writer_release(static_cast<csp_writer>(w)); }

} // namespace

// Goal: sixty-four threads at once, each alive for one message, over and over.
Test(ForeignEnd, many_short_lived_threads, .timeout = 30) {
    World world;
    Chan to_threads, from_threads;
    for (unsigned round = 0; round < 3 * mc::testing::scale(); ++round) {
        std::list<PosixThread> threads;
        for (int i = 0; i < 64; ++i)
            threads.emplace_back([&, i] {
                if (i % 2 == 0)
                    cr_assert_eq(from_threads.send(i), 1);
                else
                    cr_assert_eq(to_threads.receive(), 1000);
            });
        int sum = 0;
        spawn([&] {
            for (int i = 0; i < 32; ++i)
                sum += from_threads.receive();
        });
        for (int i = 0; i < 32; ++i)
            cr_assert_eq(to_threads.send(1000), 1);
        while (sum < 31 * 32)
            csp_yield();
        for (PosixThread &thread : threads)
            thread.join();
        csp_schedule();
        cr_assert_eq(sum, 31 * 32);
    }
}

// Goal: a thread that ends while others wait on what it held: its last destructors may release, before and after the
// library's own: thread_local objects, and keys made before and after the library was first used.
Test(ForeignEnd, thread_local_destructors_release, .timeout = 20) {
    pthread_key_t early, late;
    cr_assert_eq(pthread_key_create(&early, release_writer_of_key), 0);
    World world;
    cr_assert_eq(pthread_key_create(&late, release_writer_of_key), 0);
    for (int round = 0; round < 20; ++round) {
        Chan by_object, by_object_too, by_early_key, by_late_key;
        PosixThread thread([&] {
            held.w = std::exchange(by_object.w, nullptr);
            held.r = std::exchange(by_object_too.r, nullptr);
            pthread_setspecific(early, std::exchange(by_early_key.w, nullptr));
            pthread_setspecific(late, std::exchange(by_late_key.w, nullptr));
            if (round % 2 == 0) // a thread that has used the library, or one that has not
                csp_yield();
        });
        for (Chan *chan : {&by_object, &by_early_key, &by_late_key})
            spawn([=] { cr_assert_eq(chan->receive(), -1); });
        spawn([&] { cr_assert_eq(by_object_too.send(1), -1); });
        cr_assert_eq(by_object.receive(), -1);
        cr_assert_eq(by_late_key.receive(), -1);
        thread.join();
        csp_schedule();
    }
    pthread_key_delete(early);
    pthread_key_delete(late);
}

// Goal: threads' records are used again: ten thousand threads, one after the other.
Test(ForeignEnd, records_are_used_again, .timeout = 30) {
    World world;
    Chan chan;
    const int count = mc::testing::under_tsan || mc::testing::under_valgrind ? 500 : 5000;
    for (int i = 0; i < count; ++i) {
        PosixThread thread([&] { cr_assert_eq(csp_try_recv(chan.r, nullptr), 0); });
    }
}

// Goal: when the owner ends, its microthreads stay, ready ones and blocked ones and sleepers; the next thread that
// needs the runtime owns it and runs them.
Test(ForeignEnd, the_owner_ends_and_another_takes_over, .timeout = 20) {
    static csp_writer w;
    static csp_reader r;
    static int ran, got;
    PosixThread first([] {
        cr_assert_eq(csp_chan(&w, &r, copy_int), 1);
        cr_assert_eq(csp_run(), 0);
        spawn([] {
            int value = 0;
            while (csp_recv(r, &value) == 1)
                got += value;
        });
        spawn_at_tail([] {
            csp_sleep_until(mc_after(20 * MC_MS));
            ++ran;
        });
        csp_yield();
        spawn_at_tail([] { ++ran; });
        spawn_at_tail([] {
            csp_yield();
            ++ran;
        });
    });
    first.join();
    cr_assert_eq(ran, 0);
    for (int i = 1; i <= 5; ++i) {
        PosixThread next([i] {
            int value = i;
            cr_assert_eq(csp_send(w, &value), 1); // to the microthread, which runs on this thread now
            cr_assert_eq(got, i * (i + 1) / 2);
            spawn([] { ++ran; });
        });
        next.join();
    }
    csp_schedule(); // this thread owns it now; the sleeper is pending
    cr_assert_eq(ran, 8);
    csp_writer_release(w);
    csp_schedule();
    csp_reader_release(r);
    cr_assert_eq(bodies.load(mc::sync::acquire), 0);
    cr_assert_eq(csp__internal__channel_count(1), 0);
}

// Goal: a thread that was one of many while the first owner lived owns the runtime by its next call, whichever that is,
// and runs what it waits for.
namespace {
void a_known_thread_needs(int (*call)(csp_writer w, mc_task_t task)) {
    static csp_writer w;
    static csp_reader r;
    static mc_task_t task;
    static int got;
    static mc::sync::atomic<int32_t> stage{0};
    const auto wait_for = [](int32_t wanted) {
        while (stage.load(mc::sync::acquire) < wanted)
            sched_yield();
    };
    PosixThread thread([&] {
        wait_for(1);
        csp_yield(); // known from here on
        stage.store(2, mc::sync::release);
        wait_for(3);
        cr_assert_eq(call(w, task), 1);
        cr_assert_eq(got, 4);
        spawn([] { got += 10; });
        cr_assert_eq(got, 14); // at once: it owns the runtime
    });
    PosixThread owner([&] {
        cr_assert_eq(csp_chan(&w, &r, copy_int), 1);
        spawn([] { cr_assert_eq(csp_recv(r, &got), 1); });
        const auto sends = [](void *) -> int32_t {
            int value = 4;
            return got != 0 ? 1 : csp_send(w, &value);
        };
        cr_assert_eq(mc_spawn(0, sends, nullptr, nullptr, &task), MC_OK);
        stage.store(1, mc::sync::release);
        wait_for(2);
    });
    owner.join();
    cr_assert_eq(got, 0);
    stage.store(3, mc::sync::release);
    thread.join();
    csp_schedule();
    csp_writer_release(w);
    csp_reader_release(r);
    cr_assert_eq(csp__internal__channel_count(0), 0);
}
} // namespace

Test(ForeignEnd, a_known_thread_that_joins_takes_over, .timeout = 20) {
    a_known_thread_needs([](csp_writer, mc_task_t task) {
        int32_t result = 0;
        cr_assert_eq(mc_join(task, MC_FOREVER, &result), MC_OK);
        return result;
    });
}

Test(ForeignEnd, a_known_thread_that_sends_takes_over, .timeout = 20) {
    a_known_thread_needs([](csp_writer w, mc_task_t task) {
        int value = 4;
        const int sent = csp_send(w, &value);
        cr_assert_eq(mc_detach(task), MC_OK);
        return sent;
    });
}

Test(ForeignEnd, a_known_thread_that_yields_takes_over, .timeout = 20) {
    a_known_thread_needs([](csp_writer, mc_task_t task) {
        csp_yield();
        cr_assert_eq(mc_detach(task), MC_OK);
        return 1;
    });
}

Test(ForeignEnd, a_known_thread_that_chooses_takes_over, .timeout = 20) {
    a_known_thread_needs([](csp_writer w, mc_task_t task) {
        int value = 4;
        csp_chanop ops[] = {csp_chanop{}, sends(w, &value)};
        const int chosen = csp_prialt(ops, 2, 0);
        cr_assert_eq(mc_detach(task), MC_OK);
        return chosen - 1;
    });
}

// Goal: a thread that was one of many takes over by csp_run or csp_schedule once there is no owner, and runs what is left;
// then main is one of many.
Test(ForeignEnd, a_known_thread_takes_over, .timeout = 20) {
    static csp_reader r;
    static csp_writer w;
    static int ran;
    static mc::sync::atomic<int32_t> stage{0};
    const auto wait_for = [](int32_t wanted) {
        while (stage.load(mc::sync::acquire) < wanted)
            sched_yield();
    };
    PosixThread thread([&] {
        wait_for(1);
        csp_yield(); // known from here on
        stage.store(2, mc::sync::release);
        wait_for(3);
        cr_assert_eq(csp_run(), 0);
        cr_assert_eq(ran, 1);
        spawn([] { ++ran; });
        cr_assert_eq(ran, 2); // at once: it owns the runtime
        int value = 0;
        cr_assert_eq(csp_recv_until(r, &value, mc_after(MC_MS)), MC_E_TIMEDOUT);
        stage.store(4, mc::sync::release);
        cr_assert_eq(csp_recv(r, &value), 1); // main is one of many now
        cr_assert_eq(value, 6);
        csp_schedule();
        cr_assert_eq(ran, 3);
    });
    PosixThread owner([&] {
        cr_assert_eq(csp_chan(&w, &r, copy_int), 1);
        spawn_at_tail([] { ++ran; });
        stage.store(1, mc::sync::release);
        wait_for(2);
    });
    owner.join();
    stage.store(3, mc::sync::release);
    wait_for(4);
    spawn([] { ++ran; });
    int value = 6;
    cr_assert_eq(csp_send(w, &value), 1);
    thread.join();
    csp_writer_release(w);
    csp_reader_release(r);
    cr_assert_eq(csp__internal__channel_count(0), 0);
}
