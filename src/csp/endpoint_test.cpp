// Endpoints: references, and what wrong handles get.
#include "csp/test_csp.hpp"

#include <vector>

using namespace mc::csp::testing;

namespace {

template <class Handle> Handle offset(Handle handle, uintptr_t by) {
    return reinterpret_cast<Handle>(reinterpret_cast<uintptr_t>(handle) + by);
}

} // namespace

// Goal: a reference returns its argument; NULL gives NULL, and releasing NULL does nothing.
Test(Endpoint, references) {
    World world;
    Chan chan;
    cr_assert_eq(csp_writer_addref(chan.w), chan.w);
    cr_assert_eq(csp_reader_addref(chan.r), chan.r);
    csp_writer_release(chan.w);
    csp_reader_release(chan.r);
    cr_assert_null(csp_writer_addref(nullptr));
    cr_assert_null(csp_reader_addref(nullptr));
    csp_writer_release(nullptr);
    csp_reader_release(nullptr);
    cr_assert_eq(csp__internal__channel_count(0), 1);
    cr_assert_eq(csp__internal__channel_count(1), 1);
}

// Goal: a misaligned handle, or one of the other end, is logged by addref and release, and changes nothing.
Test(Endpoint, misaligned_handles_are_logged) {
    World world;
    Chan chan;
    for (uintptr_t by = 1; by < 16; ++by) {
        cr_assert_null(csp_writer_addref(offset(chan.w, by)));
        csp_writer_release(offset(chan.w, by));
        world.expected_lines += 2;
        if (by == 15)
            continue; // a writer again
        cr_assert_null(csp_reader_addref(offset(chan.r, by)));
        csp_reader_release(offset(chan.r, by));
        world.expected_lines += 2;
    }
    cr_assert_null(csp_reader_addref(reinterpret_cast<csp_reader>(chan.w)));
    csp_reader_release(reinterpret_cast<csp_reader>(chan.w));
    csp_chdescr(offset(chan.w, 2), "x");
    world.expected_lines += 3;
    cr_assert_eq(world.log.count(MC_E_INVAL), world.expected_lines);
    int message = 0;
    cr_assert_eq(csp_try_send(chan.w, &message), 0); // alive as ever
}

// Goal: operations on NULL and on misaligned handles are MC_E_INVAL.
Test(Endpoint, bad_handles_are_invalid) {
    World world;
    Chan chan;
    int message = 0;
    std::vector<csp_writer> writers{nullptr, reinterpret_cast<csp_writer>(chan.r)};
    std::vector<csp_reader> readers{nullptr, reinterpret_cast<csp_reader>(chan.w)};
    for (uintptr_t by : {2, 4, 8, 10}) {
        writers.push_back(offset(chan.w, by));
        readers.push_back(offset(chan.r, by));
    }
    for (csp_writer w : writers) {
        cr_assert_eq(csp_send(w, &message), MC_E_INVAL);
        cr_assert_eq(csp_try_send(w, &message), MC_E_INVAL);
        cr_assert_eq(csp_send_until(w, &message, MC_NOW), MC_E_INVAL);
        cr_assert_eq(csp_writer_close(w), MC_E_INVAL);
    }
    for (csp_reader r : readers) {
        cr_assert_eq(csp_recv(r, &message), MC_E_INVAL);
        cr_assert_eq(csp_try_recv(r, &message), MC_E_INVAL);
        cr_assert_eq(csp_recv_until(r, &message, MC_FOREVER), MC_E_INVAL);
    }
}

// Goal: csp_chan refuses null results, and then makes nothing.
Test(Endpoint, chan_refuses_null_results) {
    World world;
    csp_writer w = nullptr;
    csp_reader r = nullptr;
    cr_assert_eq(csp_chan(nullptr, &r, copy_int), 0);
    cr_assert_eq(csp_chan(&w, nullptr, copy_int), 0);
    cr_assert_eq(csp_chan(nullptr, nullptr, nullptr), 0);
    cr_assert(w == nullptr && r == nullptr);
    cr_assert_eq(world.log.count(MC_E_INVAL), 3);
    world.expected_lines = 3;
}

#ifdef MC_DEBUG

// Goal: builds with assertions detect a release too many, and a use after the last release, log it and survive.
Test(Endpoint, use_after_the_last_release) {
    World world;
    Chan chan;
    int message = 0;
    const csp_writer w = chan.w;
    const csp_reader r = chan.r;
    chan.release_writer();
    for (bool both_gone : {false, true}) {
        if (both_gone)
            chan.release_reader();
        csp_writer_release(w);
        cr_assert_null(csp_writer_addref(w));
        cr_assert_eq(csp_writer_close(w), MC_E_STALE);
        cr_assert_eq(csp_send(w, &message), MC_E_STALE);
        cr_assert_eq(csp_try_send(w, &message), MC_E_STALE);
        for (int nowait : {0, 1}) {
            const csp_chanop ready = sends(w, &message), dead = dies(w);
            cr_assert_eq(csp_alt(&ready, 1, nowait), MC_E_STALE);
            cr_assert_eq(csp_prialt(&dead, 1, nowait), MC_E_STALE);
        }
    }
    csp_reader_release(r);
    cr_assert_null(csp_reader_addref(r));
    cr_assert_eq(csp_recv(r, &message), MC_E_STALE);
    cr_assert_eq(csp__internal__channel_count(0), 0);
    cr_assert_eq(csp__internal__channel_count(1), 0);
    world.expected_lines = world.log.count(MC_E_STALE);
}

// Goal: such a use is logged, once, by every call that can meet it.
Test(Endpoint, use_after_the_last_release_is_logged) {
    World world;
    Chan chan, alive;
    int message = 0;
    const csp_writer w = chan.w;
    chan.release_writer();
    const csp_chanop ready = sends(w, &message), dead = dies(w);
    const csp_chanop ops[] = {disabled(), receives(alive.r, &message), sends(w, &message)};
    const std::function<void()> uses[] = {
        [&] { csp_writer_release(w); },
        [&] { cr_assert_null(csp_writer_addref(w)); },
        [&] { cr_assert_eq(csp_writer_close(w), MC_E_STALE); },
        [&] { cr_assert_eq(csp_send(w, &message), MC_E_STALE); },
        [&] { cr_assert_eq(csp_try_send(w, &message), MC_E_STALE); },
        [&] { cr_assert_eq(csp_send_until(w, &message, MC_NOW), MC_E_STALE); },
        [&] { cr_assert_eq(csp_alt(&ready, 1, 0), MC_E_STALE); },
        [&] { cr_assert_eq(csp_prialt(&dead, 1, 1), MC_E_STALE); },
        [&] { cr_assert_eq(prialt(ops), MC_E_STALE); },
        [&] { cr_assert_eq(csp_alt_until(ops, 3, MC_NOW), MC_E_STALE); },
    };
    for (const auto &use : uses) {
        use();
        cr_assert_eq(world.log.count(MC_E_STALE), ++world.expected_lines);
    }
}

// Goal: a handle that was released stays dead while a thousand other channels come and go.
Test(Endpoint, released_channels_are_not_reused_at_once) {
    World world;
    Chan chan;
    const csp_writer w = chan.w;
    chan.release_writer();
    chan.release_reader();
    for (int i = 0; i < 1000; ++i) {
        Chan other;
        cr_assert_neq(other.w, w);
    }
    cr_assert_null(csp_writer_addref(w));
    world.expected_lines = 1;
}

#endif

// Goal: many more channels than are ever alive at once come and go, each with its two ends.
Test(Endpoint, channels_come_and_go) {
    World world;
    for (int i = 0; i < 50'000; ++i) {
        Chan chan;
        int message = i, got = 0;
        if (i % 100 == 0) {
            spawn([&] { cr_assert_eq(csp_recv(chan.r, &got), 1); });
            cr_assert_eq(csp_send(chan.w, &message), 1);
            cr_assert_eq(got, i);
        }
        if (i % 3 == 0)
            chan.release_reader();
    }
}

// Goal: a description is taken for either end, of any length, and NULL clears it.
Test(Endpoint, descriptions) {
    World world;
    Chan chan;
    csp_chdescr(chan.w, "a channel");
    csp_chdescr(chan.r, "with a description that is much longer than thirty-one bytes");
    csp_chdescr(chan.w, "");
    csp_chdescr(chan.r, nullptr);
    csp_chdescr(nullptr, "nothing");
    csp_chdescr(nullptr, nullptr);
}

// Goal: a channel that is left out of the count stays out of it, whichever of its ends have closed; once is enough.
Test(Endpoint, uncounted_channels) {
    World world;
    const auto counts = [] { return csp__internal__channel_count(0) * 10 + csp__internal__channel_count(1); };
    Chan counted;
    {
        Chan chan;
        cr_assert_eq(counts(), 22);
        csp_chuncount(chan.r);
        cr_assert_eq(counts(), 11);
        csp_chuncount(chan.w);
        cr_assert_eq(counts(), 11);
        chan.release_writer();
        cr_assert_eq(counts(), 11);
        cr_assert_eq(chan.receive(), -1);
    }
    cr_assert_eq(counts(), 11);
    Chan closed;
    closed.release_writer();
    cr_assert_eq(counts(), 12);
    csp_chuncount(closed.r);
    cr_assert_eq(counts(), 11);
    int got = 0;
    Chan works;
    csp_chuncount(works.w);
    spawn([&] { got = works.receive(); });
    cr_assert_eq(works.send(5), 1);
    cr_assert_eq(got, 5);
    csp_reader timer = csp_after(MC_FOREVER); // counted on the reader's side alone
    cr_assert_eq(counts(), 12);
    csp_chuncount(timer);
    cr_assert_eq(counts(), 11);
    csp_reader_release(timer);
    cr_assert_eq(counts(), 11);
    csp_chuncount(nullptr);
    cr_assert_eq(world.log.total(), 0);
    csp_chuncount(reinterpret_cast<void *>(uintptr_t{6}));
    world.expected_lines = 1;
}

// Goal: csp_skip is one channel, dead from the start, counted nowhere, whatever is released of it; asking for it makes nobody
// the owner of the runtime.
Test(Endpoint, skip_is_dead_and_nobodys) {
    csp_reader first = nullptr;
    PosixThread([&] { first = csp_skip(); }).join();
    World world; // this thread owns it, not the other
    cr_assert_not_null(first);
    for (int i = 0; i < 3; ++i) {
        csp_reader skip = csp_skip();
        cr_assert_eq(skip, first);
        int message = 3;
        const csp_chanop ops[] = {receives(skip, &message)};
        cr_assert_eq(prialt(ops), -1);
        const csp_chanop death[] = {disabled(), dies(skip)};
        cr_assert_eq(alt(death), -2);
        csp_reader_release(skip);
    }
    csp_reader_release(first);
    cr_assert_eq(csp_skip(), first);
    csp_reader_release(first);
}
