// Microthreads from callables: when they run, what becomes of their exceptions, ranges, the runtime's functions.
#include "hpp/test_hpp.hpp"

#include <csignal>

using namespace mc::hpp::testing;

// Goal: a spawned callable runs at once, moved in, and is destroyed when it ends.
Test(HppSpawn, runs_at_once_and_destroys_its_callable) {
    World world;
    bool ran = false;
    auto token = std::make_shared<int>(1);
    auto ended = csp::spawn([&ran, token, only = std::make_unique<int>(2)] { ran = *only == 2; });
    cr_assert(ran);
    cr_assert_eq(token.use_count(), 1);
    csp::join(std::move(ended));
    const auto named = [&ran] { ran = false; };
    csp::spawn(named);
    cr_assert_not(ran);
    csp::join(reader<std::exception_ptr>());
}

// Goal: join waits for the end, and throws what left the microthread; what it held is gone by then.
Test(HppSpawn, join_throws_what_was_thrown) {
    World world;
    auto token = std::make_shared<int>(1);
    auto ended = csp::spawn([token] {
        csp_yield();
        throw Boom("from within");
    });
    cr_assert_eq(token.use_count(), 2);
    expect_text(thrown<Boom>([&] { csp::join(ended); }).c_str(), "from within");
    cr_assert_eq(token.use_count(), 1);
    csp::join(ended); // has ended
    bool waited = false;
    csp::join(csp::spawn([&] {
        csp_yield();
        waited = true;
    }));
    cr_assert(waited);
}

// Goal: a wait that ends otherwise is not mistaken for the end.
Test(HppSpawn, join_tells_an_end_from_a_cancelled_wait) {
    World world;
    csp::channel<> hold;
    mc_scope_t scope = 0;
    cr_assert_eq(mc_scope_create(MC_FOREVER, &scope), MC_OK);
    std::string told;
    csp::spawn([&] {
        auto ended = csp::spawn([r = -hold] { r >> csp::poke; });
        cr_assert_eq(mc_scope_enter(scope), MC_OK);
        told = thrown<csp::microthread_error>([&] { csp::join(std::move(ended)); });
        cr_assert_eq(mc_scope_leave(), MC_OK);
    });
    cr_assert_eq(mc_scope_cancel(scope, 0), MC_OK);
    csp_schedule();
    expect_text(told.c_str(), "join failed: canceled");
    cr_assert_eq(mc_scope_destroy(scope), MC_OK);
    hold.release();
}

// Goal: a microthread that ends by an exception inside a cancelled scope tells its joiner all the same.
Test(HppSpawn, tells_its_exception_out_of_a_cancelled_scope) {
    World world;
    mc_scope_t scope = 0;
    cr_assert_eq(mc_scope_create(MC_FOREVER, &scope), MC_OK);
    cr_assert_eq(mc_scope_cancel(scope, 0), MC_OK);
    auto ended = csp::spawn([&] {
        cr_assert_eq(mc_scope_enter(scope), MC_OK);
        throw Boom("inside");
    });
    expect_text(thrown<Boom>([&] { csp::join(std::move(ended)); }).c_str(), "inside");
    cr_assert_eq(mc_scope_destroy(scope), MC_OK);
}

// Goal: what nobody joins for goes to the global handler, whose channels are not counted, the first and the next.
Test(HppSpawn, unjoined_exceptions_go_to_the_global_handler) {
    World world;
    std::vector<std::string> first;
    std::vector<std::string> second;
    const auto collect = [](std::vector<std::string> &into) {
        return csp::spawn_consumer<std::exception_ptr>([&into](const reader<std::exception_ptr> &r) {
            for (const auto &exception : r)
                into.push_back(thrown<Boom>([&] { std::rethrow_exception(exception); }));
        });
    };
    csp::global_exception_handler = collect(first);
    cr_assert_eq(csp__internal__channel_count(0), 0);
    cr_assert_eq(csp__internal__channel_count(1), 0);
    csp::spawn([] { throw Boom("one"); });
    csp_schedule();
    const writer<std::exception_ptr> former = csp::global_exception_handler;
    csp::global_exception_handler = collect(second);
    cr_assert_eq(csp__internal__channel_count(1), 0);
    csp::spawn([] { throw Boom("two"); });
    csp_schedule();
    csp::global_exception_handler = former;
    csp::spawn([] { throw Boom("three"); });
    csp_schedule();
    cr_assert(bool(csp::global_exception_handler));
    const writer<std::exception_ptr> copy = csp::global_exception_handler;
    cr_assert(copy == csp::global_exception_handler);
    csp::global_exception_handler = {};
    cr_assert_not(bool(csp::global_exception_handler));
    cr_assert_eq(first.size(), 2U);
    expect_text(first[0].c_str(), "one");
    expect_text(first[1].c_str(), "three");
    cr_assert_eq(second.size(), 1U);
    expect_text(second[0].c_str(), "two");
}

// Goal: and if there is none, the program ends.
Test(HppSpawn, unhandled_exceptions_terminate, .signal = SIGABRT) {
    csp::spawn([] { throw Boom("nobody catches this"); });
    csp_schedule();
}

// Goal: consumers, producers and filters are joined to what is returned.
Test(HppSpawn, makes_consumers_producers_and_filters) {
    World world;
    int sum = 0;
    {
        const auto w = csp::spawn_consumer<int>([&](auto &&r) {
            for (int n : r)
                sum += n;
        });
        w << 1;
        w << 2;
    }
    csp_schedule();
    cr_assert_eq(sum, 3);
    cr_assert_eq(csp::spawn_producer<int>([](auto &&w) { w << 5; }).read(), 5);
    auto twice = csp::spawn_filter<int>([](auto &&r, auto &&w) {
        for (int n : r)
            if (!(w << 2 * n))
                return;
    });
    csp::spawn([w = ++twice] {
        w << 4;
        w << 5;
    });
    const auto got = all(--twice);
    cr_assert_eq(got.size(), 2U);
    cr_assert_eq(got[1], 10);
}

// Goal: a range gives the messages, then throws what ended the producer.
Test(HppSpawn, range_gives_messages_and_then_throws) {
    World world;
    int sum = 0;
    for (const int n : csp::spawn_range<int>([](auto &&w) {
             w << 1;
             w << 2;
         }))
        sum += n;
    cr_assert_eq(sum, 3);
    sum = 0;
    const auto range = csp::spawn_range<NoDefault>([](const writer<NoDefault> &w) {
        w << NoDefault(5);
        throw Boom("after one");
    });
    expect_text(thrown<Boom>([&] {
                    for (const auto &n : range)
                        sum += n.value;
                }).c_str(),
                "after one");
    cr_assert_eq(sum, 5);
    cr_assert(bool(range.source()));
    cr_assert(bool(range.except()));
}

// Goal: schedule runs what can run, or what set_scheduler said.
Test(HppSpawn, schedule_runs_the_rest) {
    World world;
    int runs = 0;
    csp::spawn([&] {
        csp_yield();
        ++runs;
    });
    cr_assert_eq(runs, 0);
    csp::schedule();
    cr_assert_eq(runs, 1);
    csp::set_scheduler([&] { runs += 10; });
    csp::schedule();
    cr_assert_eq(runs, 11);
    csp::set_scheduler({});
    csp::schedule();
    cr_assert_eq(runs, 11);
}

// Goal: everything works on executors, with exceptions going from one to another.
Test(HppSpawn, works_on_executors) {
    World world;
    for (const int executors : {1, 2, 8}) {
        cr_assert(csp::init_runtime(executors));
        csp::channel<int> ch;
        std::vector<reader<std::exception_ptr>> ended;
        constexpr int senders = 8;
        for (int i = 0; i < senders; ++i)
            ended.push_back(csp::spawn([w = +ch, i] {
                for (int n = 0; n < 100; ++n)
                    w << n;
                if (i % 2 == 0)
                    throw Boom(std::to_string(i));
            }));
        reader<int> r = --ch;
        ++ch;
        long sum = 0;
        for (const int n : r)
            sum += n;
        cr_assert_eq(sum, 4950L * senders);
        int thrown_by = 0;
        for (auto &one : ended)
            thrown_by += thrown<Boom>([&] { csp::join(std::move(one)); }) != "nothing was thrown" ? 1 : 0;
        cr_assert_eq(thrown_by, senders / 2);
        csp::schedule();
        csp::shutdown_runtime();
    }
}

// Goal: a refused start says so.
Test(HppSpawn, init_runtime_says_when_it_is_refused) {
    World world;
    world.expected_lines = 1;
    cr_assert_not(csp::init_runtime(-1));
    csp::shutdown_runtime();
}

// Goal: what a callable could only copy is gone, too, before its exception is told.
Test(HppSpawn, what_it_held_is_gone_before_its_exception_is_told) {
    World world;
    csp::channel<int> ch;
    const auto start = [](const writer<int> held) { // NOLINT: a const capture cannot be moved
        return csp::spawn([held] {
            held << 1;
            throw Boom("after one");
        });
    };
    auto ended = start(++ch);
    cr_assert_eq(all(--ch).size(), 1U);
    expect_text(thrown<Boom>([&] { csp::join(std::move(ended)); }), "after one");
}

// Goal: the global handler is a writer, for whatever takes one; only that its channels are not counted.
Test(HppSpawn, the_handler_goes_wherever_writers_go) {
    World world;
    static_assert(std::is_same_v<decltype(csp::global_exception_handler), writer<std::exception_ptr>>);
    const auto expect_counts = [](int writers, int readers) {
        cr_assert_eq(csp__internal__channel_count(0), writers);
        cr_assert_eq(csp__internal__channel_count(1), readers);
    };
    writer<std::exception_ptr> w;
    reader<std::exception_ptr> r = --w;
    expect_counts(1, 1);
    std::swap(csp::global_exception_handler, w);
    cr_assert_not(bool(w));
    expect_counts(0, 0);
    csp::spawn([] { throw Boom("swapped in"); });
    expect_text(thrown<Boom>([&] { std::rethrow_exception(r.read()); }), "swapped in");
    std::swap(w, csp::global_exception_handler);
    cr_assert_not(bool(csp::global_exception_handler));
    using std::swap;
    swap(csp::global_exception_handler, w);
    swap(csp::global_exception_handler, csp::global_exception_handler);
    cr_assert(bool(csp::global_exception_handler));
    w.swap(csp::global_exception_handler);
    csp::global_exception_handler.swap(w);
    cr_assert(w == writer<std::exception_ptr>());
    csp::spawn([] { throw Boom("and again"); });
    expect_text(thrown<Boom>([&] { std::rethrow_exception(r.read()); }), "and again");

    writer<std::exception_ptr> saved = std::exchange(csp::global_exception_handler, writer<std::exception_ptr>());
    cr_assert(saved.internal_writer() != nullptr);
    csp::make_channel(csp::global_exception_handler, r);
    saved = std::move(csp::global_exception_handler);
    cr_assert_not(bool(csp::global_exception_handler)); // NOLINT(bugprone-use-after-move): it is as any other
    writer<std::exception_ptr> &handler = csp::global_exception_handler;
    handler = saved;
    handler = static_cast<const writer<std::exception_ptr> &>(handler);
    saved = {};
    csp::spawn([] { throw Boom("by reference"); });
    expect_text(thrown<Boom>([&] { std::rethrow_exception(r.read()); }), "by reference");
    handler.close();
    cr_assert_not(bool(r >> nullptr));
    csp::global_exception_handler = ++channel<std::exception_ptr>();
    csp_schedule(); // the microthreads end
    expect_counts(0, 0);
    handler = {};
}

// Goal: it may be swapped by one thread while microthreads of others use it: each exception is told once, to one of both.
Test(HppSpawn, the_handler_is_swapped_while_it_is_used) {
    World world;
    cr_assert(csp::init_runtime(3));
    const int rounds = 8 * static_cast<int>(mc::testing::scale());
    constexpr int throwers = 500;
    mc::sync::atomic<int32_t> told{0};
    const auto listener = [&] {
        return csp::spawn_consumer<std::exception_ptr>([&told](const reader<std::exception_ptr> &r) {
            for (const auto &exception : r) {
                cr_assert(exception != nullptr);
                told.fetch_add(1, mc::sync::acq_rel);
            }
        });
    };
    csp::global_exception_handler = listener();
    writer<std::exception_ptr> other = listener();
    for (int round = 1; round <= rounds; ++round) {
        for (int i = 0; i < throwers; ++i)
            csp::spawn([i] {
                if (i % 2 == 0)
                    csp_yield();
                throw Boom("somewhere");
            });
        while (told.load(mc::sync::acquire) < round * throwers)
            std::swap(csp::global_exception_handler, other);
    }
    csp::global_exception_handler = {};
    other = {};
    csp::schedule();
    cr_assert_eq(told.load(mc::sync::acquire), rounds * throwers);
    csp::shutdown_runtime();
}

// Goal: a callable may insist on variables for its ends, or take them by value.
Test(HppSpawn, gives_callables_their_ends_as_they_want_them) {
    World world;
    int got = 0;
    const auto consumer = csp::spawn_consumer<int>([&got](auto &r) { got = r.read(); });
    consumer << 3;
    cr_assert_eq(got, 3);
    cr_assert_eq(csp::spawn_producer<int>([](auto &w) { w << 4; }).read(), 4);
    cr_assert_eq(csp::spawn_producer<int>([](writer<int> w) { w << 5; }).read(), 5); // NOLINT
    auto twice = csp::spawn_filter<int>([](auto &r, auto &w) { w << 2 * r.read(); });
    +twice << 6;
    cr_assert_eq((-twice).read(), 12);
    for (const int n : csp::spawn_range<int>([](auto &w) { w << 7; }))
        cr_assert_eq(n, 7);
    const csp::range<int> made(csp::spawn_producer<int>([](auto &&w) { w << 8; }), reader<std::exception_ptr>());
    const csp::range<int>::iterator first(&made);
    cr_assert_eq(*first, 8);
    twice.release();
}

// Goal: the global handler gets a channel as any empty writer does; iteration does not take a cancelled wait for the end.
Test(HppSpawn, the_handler_is_like_a_writer) {
    World world;
    const reader<std::exception_ptr> r = --csp::global_exception_handler;
    csp::global_exception_handler.descr("exceptions");
    csp::spawn([] { throw Boom("to the reader"); });
    expect_text(thrown<Boom>([&] { std::rethrow_exception(r.read()); }), "to the reader");
    csp::global_exception_handler = {};
    csp::channel<int> ch;
    mc_scope_t scope = 0;
    cr_assert_eq(mc_scope_create(MC_FOREVER, &scope), MC_OK);
    std::string told;
    csp::spawn([&] {
        cr_assert_eq(mc_scope_enter(scope), MC_OK);
        told = thrown<csp::microthread_error>([&] {
            for (const int n : -ch)
                (void)n;
        });
        cr_assert_eq(mc_scope_leave(), MC_OK);
    });
    cr_assert_eq(mc_scope_cancel(scope, 0), MC_OK);
    csp_schedule();
    expect_text(told, "reader failed: canceled");
    cr_assert_eq(mc_scope_destroy(scope), MC_OK);
}
