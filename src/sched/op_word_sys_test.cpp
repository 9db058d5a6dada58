// The operation's word under every interleaving: initiator, destination, cancels, producers that ring, and several that
// want to complete. Queues are flags, one operation long; what stands for the operation's memory, its route, the result
// and the reasons is plain data, so that a missing order is seen as a race. On real threads in other builds.
#include "sched/op_word.hpp"

#include "testing/systematic.hpp"
#include "testing/test.hpp"

using namespace mc;
using sched::OpCause;
using sched::OpPhase;
using sched::OpWord;
using testing::check;
using testing::Data;
using testing::Thread;
using Accept = OpWord::Accept;
using Cancel = OpWord::Cancel;
using Release = OpWord::Release;
using Ring = OpWord::Ring;

namespace {

struct Operation {
    Operation() {
        testing::label(&word, "word");
        testing::label(&inbox, "inbox");
        testing::label(&cancels, "cancels");
        testing::label(&bells, "bells");
        testing::label(&over, "over");
    }

    mc_op op = MC_OP_INIT;
    OpWord &word = sched::word_of(op);
    // Queues: 1 while the operation is in it.
    sync::atomic<uint32_t> inbox{0};
    sync::atomic<uint32_t> cancels{0};
    sync::atomic<uint32_t> bells{0};
    sync::atomic<uint32_t> over{0}; // delivered; relaxed, so that it orders nothing
    sync::atomic<uint32_t> won{0};
    sync::atomic<uint32_t> firsts{0}; // cancels that were the first
    Data<int> memory{0};              // the initiator's: written before the submission and after the completion
    Data<int> route{0};               // filled in on the way
    Data<int> why[5];                 // by whoever cancels, by cause, before he does
    Data<int> result{0};
    Data<int> bell_link{0};
    sync::atomic<uint32_t> items[2] = {0, 0}; // what producers ring for; the bell alone orders it
    bool rang[2] = {};                        // by each producer: its ring was not too late
    bool seen[2] = {};                        // by the source

    // Anybody, while the operation may not go back.
    void touch() const { check(memory.get() == 1, "touched when it is the initiator's"); }

    // --- The initiator

    void submit() {
        memory.set(1);
        check(word.submit(), "not idle");
        inbox.store(1, sync::release);
    }
    void wait_until_done() {
        while (!word.is_done())
            sync::thread_yield();
        memory.set(2);
        check(result.get() != 0, "done without a result");
    }

    // --- The destination

    void arrive() {
        while (inbox.exchange(0, sync::acquire) == 0)
            sync::thread_yield();
        touch();
        route.set(1);
        if (word.accept() == Accept::completes)
            complete();
    }
    // Ends it for a cancel, unless somebody has ended it.
    void handle_cancel() {
        if (cancels.exchange(0, sync::acquire) == 0)
            return;
        touch();
        if (word.begin_complete(0))
            complete();
        touch(); // a cancel link keeps it here, whoever has completed it
        if (word.unlink_cancel() == Release::deliver)
            deliver();
    }
    void serve() {
        arrive();
        handle_cancels();
    }
    void handle_cancels() {
        while (over.load(sync::relaxed) == 0) {
            handle_cancel();
            sync::thread_yield();
        }
    }

    // --- Anybody

    void cancel(OpCause cause) {
        why[static_cast<int>(cause)].set(1);
        const Cancel answer = word.request_cancel(0, cause);
        if (answer == Cancel::on_arrival || answer == Cancel::push)
            firsts.fetch_add(1, sync::relaxed);
        if (answer != Cancel::push)
            return;
        check(route.get() == 1, "a cancel without a route");
        touch();
        cancels.store(1, sync::release);
    }
    void work() {
        if (word.begin_complete(0))
            complete();
    }
    // The winner of the completion.
    void complete() {
        check(won.fetch_add(1, sync::relaxed) == 0, "completed twice");
        const OpCause cause = word.cause();
        check(cause == OpCause::none || why[static_cast<int>(cause)].get() == 1, "cancelled for no reason");
        result.set(1 + static_cast<int>(cause));
        if (word.settle() == Release::deliver)
            deliver();
    }
    void deliver() {
        check(cancels.load(sync::relaxed) == 0, "delivered with a cancel in a queue");
        check(bells.load(sync::relaxed) == 0, "delivered with a bell in a queue");
        check(result.get() == 1 + static_cast<int>(word.cause()), "delivered with another result");
        touch();
        check(over.exchange(1, sync::relaxed) == 0, "delivered twice");
        word.finish();
    }

    // --- A producer, and the source

    void produce(int who) {
        items[who].store(1, sync::relaxed);
        const Ring answer = word.ring(0);
        rang[who] = answer != Ring::ended;
        if (answer != Ring::push)
            return;
        touch();
        bell_link.set(1);
        bells.store(1, sync::release);
    }
    void answer_bell() {
        if (bells.exchange(0, sync::acquire) == 0)
            return;
        touch();
        check(bell_link.get() == 1, "a bell without its link");
        bell_link.set(0);
        const Release answer = word.clear_bell();
        for (int who : {0, 1})
            seen[who] = seen[who] || items[who].load(sync::relaxed) == 1;
        if (answer == Release::deliver)
            deliver();
    }
    void answer_bells() {
        while (over.load(sync::relaxed) == 0) {
            answer_bell();
            sync::thread_yield();
        }
        wait_until_done();
    }

    // Accepted, with all threads still to come.
    void stand() {
        submit();
        arrive();
    }

    // After all threads.
    void check_ended() {
        check(won.load(sync::relaxed) == 1, "not completed once");
        check(over.load(sync::relaxed) == 1, "not delivered");
        check(cancels.load(sync::relaxed) == 0 && bells.load(sync::relaxed) == 0, "left in a queue");
        check(OpWord::phase_of(word.look()) == OpPhase::done, "not done");
        for (int who : {0, 1})
            check(!rang[who] || seen[who], "what producer %d rang for was not seen", who);
    }
};

// Only cancels end it: a lost one shows as a deadlock. Of two, one is the first.
void cancel_only() {
    Operation op;
    {
        Thread destination([&] { op.serve(); }, "destination");
        Thread timer([&] { op.cancel(OpCause::deadline); }, "timer");
        Thread initiator(
            [&] {
                op.submit();
                op.cancel(OpCause::cancel);
                op.wait_until_done();
            },
            "initiator");
    }
    op.check_ended();
    check(op.firsts.load(sync::relaxed) == 1, "not one first cause");
}

// It is active; its work, done elsewhere, ends it, or a cancel does.
void cancel_against_work() {
    Operation op;
    op.stand();
    {
        Thread destination([&] { op.handle_cancels(); }, "destination");
        Thread worker([&] { op.work(); }, "worker");
        Thread timer([&] { op.cancel(OpCause::deadline); }, "timer");
        op.wait_until_done();
    }
    op.check_ended();
}

// The same from the submission on, with the work on the destination's thread.
void cancel_against_arrival() {
    Operation op;
    {
        Thread initiator(
            [&] {
                op.submit();
                op.wait_until_done();
            },
            "initiator");
        Thread destination(
            [&] {
                op.arrive();
                op.work();
                op.handle_cancels();
            },
            "destination");
        Thread closer([&] { op.cancel(OpCause::close); }, "closer");
    }
    op.check_ended();
}

// It rings once a producer, and ends at any time.
void ring_against_completion(int producers) {
    Operation op;
    op.stand();
    {
        Thread source([&] { op.answer_bells(); }, "source");
        Thread producer([&] { op.produce(0); }, "producer");
        Thread other(
            [&] {
                if (producers > 1)
                    op.produce(1);
                op.work();
            },
            "other");
    }
    op.check_ended();
}

// All at once.
void everything() {
    Operation op;
    op.stand();
    {
        Thread source([&] { op.answer_bells(); }, "source");
        Thread destination([&] { op.handle_cancels(); }, "destination");
        Thread producer(
            [&] {
                op.produce(0);
                op.work();
            },
            "producer");
        Thread other([&] { op.produce(1); }, "other");
        Thread timer([&] { op.cancel(OpCause::deadline); }, "timer");
    }
    op.check_ended();
}

} // namespace

// Goal: a cancel at any moment from the submission on ends the operation, once, for the first cause, whether it comes
// while it is on its way or later.
Test(OpWordSys, a_cancel_ends_it_once) {
    testing::expect_pass({.name = "OpWordSys/a_cancel_ends_it_once", .stale = 1}, cancel_only);
    testing::expect_pass({.name = "OpWordSys/a_cancel_ends_it_once", .search = testing::Search::seeds, .seeds = 5'000},
                         cancel_only);
}

// Goal: of the operation's work and a cancel one completes it; it goes back once, with the result, and never while the
// cancel is in a queue.
Test(OpWordSys, work_or_cancel_completes) {
    testing::expect_pass({.name = "OpWordSys/work_or_cancel_completes", .stale = 1}, cancel_against_work);
    testing::expect_pass({.name = "OpWordSys/work_or_cancel_completes", .stale = 1}, cancel_against_arrival);
    testing::expect_pass(
        {.name = "OpWordSys/work_or_cancel_completes", .search = testing::Search::seeds, .seeds = 5'000},
        cancel_against_work);
}

// Goal: what a producer has rung for is seen before the operation goes back, and it does not go back while its bell is
// in a queue; a ring that comes too late is told so.
Test(OpWordSys, rings_come_before_the_completion) {
    testing::expect_pass({.name = "OpWordSys/rings_come_before_the_completion", .stale = 1},
                         [] { ring_against_completion(1); });
    testing::expect_pass({.name = "OpWordSys/rings_come_before_the_completion", .stale = 1, .spurious = 0},
                         [] { ring_against_completion(2); });
    testing::expect_pass(
        {.name = "OpWordSys/rings_come_before_the_completion", .search = testing::Search::seeds, .seeds = 5'000},
        [] { ring_against_completion(2); });
}

// Goal: all of these together.
Test(OpWordSys, all_at_once) {
    testing::expect_pass({.name = "OpWordSys/all_at_once", .search = testing::Search::seeds, .seeds = 20'000},
                         everything);
}

// Goal: whoever comes late for one life of an operation does nothing to the next, whatever it was about to do.
Test(OpWordSys, lives_do_not_mix) {
    testing::expect_pass({.name = "OpWordSys/lives_do_not_mix", .preemptions = 3, .stale = 1}, [] {
        Operation op;
        op.stand();
        {
            Thread late(
                [&] {
                    op.work();
                    check(op.word.request_cancel(0, OpCause::close) == Cancel::too_late, "a cancel of an ended life");
                    check(op.word.ring(0) == Ring::ended, "a ring of an ended life");
                },
                "late");
            op.work();
            while (!op.word.reuse())
                sync::thread_yield();
            op.memory.set(2);
            check(op.word.submit(), "not idle");
            check(op.word.accept() == Accept::runs, "cancelled by nobody");
            check(op.word.begin_complete(1), "ended by a completion of the life before");
            check(op.word.settle() == Release::deliver, "held by nobody");
        }
    });
}
