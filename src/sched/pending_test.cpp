// Owners of pending requests: each kind keeps what it was made of, and is given away once.
#include "sched/pending.hpp"

#include "sched/task.hpp"
#include "testing/test.hpp"

#include <csignal>
#include <cstring>

using namespace mc;
using sched::Pending;
using Kind = Pending::Kind;

// Goal: each kind gives back what it was made of, to the last bit.
Test(Pending, keeps_what_it_was_made_of) {
    static sched::Task task;
    const Pending machine = Pending::of_machine(UINT64_MAX, UINT32_MAX, UINT64_MAX - 1);
    cr_assert_eq(machine.kind(), Kind::machine);
    cr_assert_eq(machine.machine().runtime, UINT64_MAX);
    cr_assert_eq(machine.machine().id, UINT32_MAX);
    cr_assert_eq(machine.machine().pending_id, UINT64_MAX - 1);

    const Pending waker = Pending::of_waker(&task, UINT64_MAX >> 4);
    cr_assert_eq(waker.kind(), Kind::waker);
    cr_assert_eq(waker.waker().task, &task);
    cr_assert_eq(waker.waker().epoch, UINT64_MAX >> 4);

    const Pending token = Pending::of_token(UINT64_MAX, UINT64_MAX - 1);
    cr_assert_eq(token.kind(), Kind::token);
    cr_assert_eq(token.token().queue, UINT64_MAX);
    cr_assert_eq(token.token().token, UINT64_MAX - 1);
}

// Goal: a new one, and zeroed memory, has no owner: a row of a fresh table needs no constructor.
Test(Pending, zeros_are_nobody) {
    Pending zeroed;
    std::memset(static_cast<void *>(&zeroed), 0, sizeof zeroed);
    cr_assert_eq(zeroed.kind(), Kind::none);
    cr_assert(zeroed == Pending{});
}

// Goal: the owner is given away once: who comes second gets nobody.
Test(Pending, is_taken_once) {
    Pending row = Pending::of_token(7, 8);
    const Pending first = row.take();
    cr_assert(first == Pending::of_token(7, 8));
    cr_assert(row == Pending{});
    cr_assert_eq(row.take().kind(), Kind::none);
}

// Goal: owners of different kinds are different, also with the same words.
Test(Pending, kinds_are_told_apart) {
    cr_assert(Pending::of_token(1, 2) != Pending::of_machine(1, 0, 2));
    cr_assert(Pending::of_machine(1, 0, 2) != Pending::of_machine(1, 1, 2));
    cr_assert(Pending::of_token(0, 0) != Pending{});
}

// Goal: a task that was asked through a waker can be claimed through it, for that wait and no later one.
Test(Pending, a_waker_claims_its_own_wait) {
    static sched::Task task;
    using Claim = sched::TaskWord::Claim;
    task.word.make_runnable();
    task.word.start();
    Pending row = Pending::of_waker(&task, task.word.begin_park());
    (void)task.word.publish_parked();
    const Pending::Waker waker = row.take().waker();
    cr_assert_eq(waker.task->word.try_claim(waker.epoch), Claim::parked);
    (void)waker.task->word.wake(Claim::parked);
    task.word.start();
    (void)task.word.begin_park();
    cr_assert_eq(waker.task->word.try_claim(waker.epoch), Claim::lost);
}

// Goal: a completion says what the operation, or the answer to a token, was.
Test(Pending, completions_say_what_it_was) {
    mc_op op = MC_OP_INIT;
    op.user = UINT64_MAX;
    op.value = -5;
    op.result = MC_E_TIMEDOUT;
    op.kind = MC_OP_KIND_USER;
    op.id = 9;
    const mc_completion of_op = sched::completion_of(op);
    cr_assert_eq(of_op.token, UINT64_MAX);
    cr_assert_eq(of_op.value, -5);
    cr_assert_eq(of_op.status, MC_E_TIMEDOUT);
    cr_assert_eq(of_op.kind, MC_OP_KIND_USER);
    cr_assert_eq(of_op.data, 9u);

    const mc_completion of_token = sched::completion_of(Pending::of_token(1, 2), 3, MC_E_CLOSED, INT64_MIN, 4);
    cr_assert_eq(of_token.token, 2u);
    cr_assert_eq(of_token.kind, 3u);
    cr_assert_eq(of_token.status, MC_E_CLOSED);
    cr_assert_eq(of_token.value, INT64_MIN);
    cr_assert_eq(of_token.data, 4u);
}

// Goal: an owner read as another kind would send an answer through a wild pointer: it ends the process, in every build.
Test(Pending, a_token_is_no_waker, .signal = SIGABRT) { (void)Pending::of_token(1, 2).waker(); }
Test(Pending, nobody_is_no_machine, .signal = SIGABRT) { (void)Pending{}.machine(); }
Test(Pending, a_machine_gets_no_completion, .signal = SIGABRT) {
    (void)sched::completion_of(Pending::of_machine(1, 2, 3), 0, MC_OK, 0, 0);
}
