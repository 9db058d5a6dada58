// The operation's word, one transition at a time: every state and every transition that may meet it. Races are in
// op_word_sys_test.cpp.
#include "sched/op_word.hpp"

#include "testing/test.hpp"

#include <csignal>
#include <cstring>
#include <vector>

using namespace mc;
using sched::OpCause;
using sched::OpPhase;
using sched::OpWord;
using Accept = OpWord::Accept;
using Cancel = OpWord::Cancel;
using Release = OpWord::Release;
using Ring = OpWord::Ring;

namespace {

constexpr uint64_t life = 3;

// A word's state, apart from its generation.
struct State {
    OpPhase phase;
    OpCause cause = OpCause::none;
    bool linked = false;
    bool bell = false;
    bool writing = false;
    bool operator==(const State &) const = default;
};

constexpr OpPhase idle = OpPhase::idle, submitted = OpPhase::submitted, active = OpPhase::active,
                  completing = OpPhase::completing, done = OpPhase::done;
constexpr OpCause none = OpCause::none, deadline = OpCause::deadline;
constexpr bool flags[] = {false, true};

// All that there are.
std::vector<State> all_states() {
    std::vector<State> states = {{idle}, {submitted}, {submitted, deadline}, {done}, {done, deadline}};
    for (OpCause cause : {none, deadline})
        for (bool linked : flags)
            for (bool bell : flags) {
                if (linked && cause == none)
                    continue;
                states.push_back({active, cause, linked, bell, false});
                states.push_back({completing, cause, linked, bell, false});
                states.push_back({completing, cause, linked, bell, true});
            }
    return states;
}

State state_of(const OpWord &word) {
    const uint64_t look = word.look();
    return {OpWord::phase_of(look), OpWord::cause_of(look), OpWord::is_cancel_linked(look), OpWord::is_rung(look),
            (look & 1 << 8) != 0};
}

void live_once(OpWord &word) {
    cr_assert(word.submit());
    cr_assert_eq(word.accept(), Accept::runs);
    cr_assert(word.begin_complete(word.generation()));
    cr_assert_eq(word.settle(), Release::deliver);
    word.finish();
    cr_assert(word.reuse());
}

// From active without holds to a state of a later phase.
void leave_active(OpWord &word, State to) {
    if (to.bell)
        cr_assert_eq(word.ring(life), Ring::push);
    if (to.phase != completing && to.phase != done)
        return;
    cr_assert(word.begin_complete(life));
    if (!to.writing)
        cr_assert_eq(word.settle(), to.bell || to.linked ? Release::held : Release::deliver);
    if (to.phase == done)
        word.finish();
}

// Brings a new word into a state of life `life`, by the transitions that lead there.
void reach(OpWord &word, State to) {
    while (word.generation() < life)
        live_once(word);
    if (to.phase == idle)
        return;
    cr_assert(word.submit());
    if (to.phase != submitted)
        cr_assert_eq(word.accept(), Accept::runs);
    if (to.cause != none)
        cr_assert_eq(word.request_cancel(life, to.cause), to.phase == submitted ? Cancel::on_arrival : Cancel::push);
    if (to.cause != none && to.phase != submitted && !to.linked)
        cr_assert_eq(word.unlink_cancel(), Release::held);
    leave_active(word, to);
}

bool is_at(const OpWord &word, State state, uint64_t generation = life) {
    return state_of(word) == state && word.generation() == generation && (word.look() & 0xFE00) == 0;
}

struct In : OpWord {
    explicit In(State state) {
        reach(*this, state);
        cr_assert(is_at(*this, state));
    }
};

} // namespace

// Goal: an operation is submitted from idle alone; a submission of one that is under way changes nothing.
Test(OpWord, submits_from_idle_alone) {
    for (State state : all_states()) {
        In word(state);
        cr_assert_eq(word.submit(), state.phase == idle);
        cr_assert(is_at(word, state.phase == idle ? State{submitted} : state));
    }
}

// Goal: an operation that was cancelled on its way completes when it arrives, for the first cause; any other runs.
Test(OpWord, cancelled_operations_complete_on_arrival) {
    In plain({submitted});
    cr_assert_eq(plain.accept(), Accept::runs);
    cr_assert(is_at(plain, {active}));
    for (OpCause cause : {OpCause::cancel, deadline, OpCause::close, OpCause::shutdown}) {
        In word({submitted, cause});
        cr_assert_eq(word.accept(), Accept::completes);
        cr_assert(is_at(word, {completing, cause, false, false, true}));
        cr_assert(!word.begin_complete(life), "its completion is won");
        cr_assert_eq(word.cause(), cause);
        cr_assert_eq(word.settle(), Release::deliver);
    }
}

// Goal: a cancel sets the first cause, in submitted and active alone, and is linked in active alone; a second one, or
// one of another life, changes nothing.
Test(OpWord, the_first_cause_stays) {
    for (State state : all_states())
        for (uint64_t of : {life - 1, life, life + 1}) {
            In word(state);
            const bool reaches = of == life && (state.phase == submitted || state.phase == active);
            const bool first = reaches && state.cause == none;
            const Cancel expected = !reaches                   ? Cancel::too_late
                                    : !first                   ? Cancel::already
                                    : state.phase == submitted ? Cancel::on_arrival
                                                               : Cancel::push;
            cr_assert_eq(word.request_cancel(of, OpCause::close), expected);
            State after = state;
            if (first)
                after.cause = OpCause::close, after.linked = state.phase == active;
            cr_assert(is_at(word, after));
        }
}

// Goal: a completion is won from active alone, once, in its own life; the loser changes nothing.
Test(OpWord, the_first_completion_wins) {
    for (State state : all_states())
        for (uint64_t of : {life - 1, life, life + 1}) {
            In word(state);
            const bool wins = of == life && state.phase == active;
            cr_assert_eq(word.begin_complete(of), wins);
            State after = state;
            if (wins)
                after.phase = completing, after.writing = true;
            cr_assert(is_at(word, after));
            cr_assert(!word.begin_complete(of));
        }
}

// Goal: the bell is pushed once until its taker clears it, in active alone.
Test(OpWord, rings_are_pushed_once) {
    for (State state : all_states())
        for (uint64_t of : {life - 1, life, life + 1}) {
            In word(state);
            const bool rings = of == life && state.phase == active;
            cr_assert_eq(word.ring(of), !rings ? Ring::ended : state.bell ? Ring::rung : Ring::push);
            State after = state;
            after.bell = state.bell || rings;
            cr_assert(is_at(word, after));
            if (!rings)
                continue;
            cr_assert_eq(word.ring(of), Ring::rung);
            cr_assert_eq(word.clear_bell(), Release::held);
            cr_assert_eq(word.ring(of), Ring::push);
        }
}

namespace {

// Lets go of `hold`; says whether the word then stands as it should, and what was answered.
Release let_go(OpWord &word, State state, bool State::*hold, Release (OpWord::*transition)() noexcept) {
    const Release answer = (word.*transition)();
    state.*hold = false;
    cr_assert(is_at(word, state));
    return answer;
}

} // namespace

// Goal: of result, cancel link and bell, the last to go in completing delivers, in whatever order they go; none
// delivers while another is there, or while the operation is active.
Test(OpWord, the_last_to_let_go_delivers) {
    const struct {
        bool State::*hold;
        Release (OpWord::*transition)() noexcept;
    } ways[] = {{&State::writing, &OpWord::settle},
                {&State::linked, &OpWord::unlink_cancel},
                {&State::bell, &OpWord::clear_bell}};
    for (State state : all_states())
        for (const auto &way : ways) {
            if (!(state.*way.hold))
                continue;
            In word(state);
            const bool last = state.phase == completing && state.linked + state.bell + state.writing == 1;
            cr_assert_eq(let_go(word, state, way.hold, way.transition), last ? Release::deliver : Release::held);
            cr_assert_eq(OpWord::is_deliverable(word.look()), last);
        }
}

// Goal: only a done operation is reused, as idle, without cause, in its next life; what is under way stays so.
Test(OpWord, reuse_begins_a_new_life) {
    for (State state : all_states()) {
        In word(state);
        cr_assert_eq(word.is_done(), state.phase == done);
        cr_assert_eq(word.reuse(), state.phase == done || state.phase == idle);
        const bool anew = state.phase == done;
        cr_assert(is_at(word, anew ? State{idle} : state, anew ? life + 1 : life));
    }
}

// Goal: each cause has its result, and none of them is success.
Test(OpWord, causes_have_results) {
    cr_assert_eq(status_of(OpCause::none), MC_OK);
    cr_assert_eq(status_of(OpCause::cancel), MC_E_CANCELED);
    cr_assert_eq(status_of(OpCause::deadline), MC_E_TIMEDOUT);
    cr_assert_eq(status_of(OpCause::close), MC_E_CLOSED);
    cr_assert_eq(status_of(OpCause::shutdown), MC_E_SHUTDOWN);
}

// Goal: MC_OP_INIT, and zeroed memory, is an idle operation of the first life; its word is the operation's own bytes and
// nothing beside them.
Test(OpWord, lives_in_a_plain_operation) {
    mc_op op = MC_OP_INIT;
    mc_op zeroed;
    std::memset(&zeroed, 0, sizeof zeroed);
    cr_assert_eq(std::memcmp(&op, &zeroed, sizeof op), 0);
    OpWord &word = sched::word_of(op);
    cr_assert_eq(word.look(), 0u);
    cr_assert_eq(OpWord::phase_of(word.look()), idle);
    cr_assert(word.submit());
    cr_assert_neq(op.word, 0u);
    cr_assert_eq(op.word, word.look());
    op.word = 0;
    cr_assert_eq(std::memcmp(&op, &zeroed, sizeof op), 0);
}

// Goal: generations have room: 2^47 lives, a million a second for four years, and their bits do not run into the flags.
Test(OpWord, generations_are_wide) {
    constexpr uint64_t far = uint64_t{1} << 47;
    mc_op op = MC_OP_INIT;
    op.word = far << 16;
    OpWord &word = sched::word_of(op);
    cr_assert_eq(word.generation(), far);
    live_once(word);
    cr_assert(is_at(word, {idle}, far + 1));
    cr_assert(word.submit());
    cr_assert_eq(word.request_cancel(1, deadline), Cancel::too_late);
    cr_assert_eq(word.request_cancel(far + 1, deadline), Cancel::on_arrival);
}

// Goal: what would run or deliver an operation twice ends the process, in every build.
Test(OpWord, accepting_twice_aborts, .signal = SIGABRT) {
    In word({active});
    (void)word.accept();
}
Test(OpWord, settling_twice_aborts, .signal = SIGABRT) {
    In word({completing});
    (void)word.settle();
}
Test(OpWord, unlinking_what_is_not_linked_aborts, .signal = SIGABRT) {
    In word({active, deadline});
    (void)word.unlink_cancel();
}
Test(OpWord, clearing_a_clear_bell_aborts, .signal = SIGABRT) {
    In word({active});
    (void)word.clear_bell();
}
Test(OpWord, finishing_while_linked_aborts, .signal = SIGABRT) {
    In word({completing, deadline, true});
    word.finish();
}
Test(OpWord, finishing_twice_aborts, .signal = SIGABRT) {
    In word({done});
    word.finish();
}
