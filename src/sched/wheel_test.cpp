// The wheel as its owner sees it: in which order what was pushed comes out, and what thieves leave of that. Its races
// are in wheel_sys_test.cpp.
#include "sched/wheel.hpp"

#include "testing/test.hpp"

#include <string>

using mc::sched::Task;
using mc::sched::Wheel;

namespace {

struct Tasks {
    Task tasks[10];
    Tasks() {
        for (uint64_t i = 0; i < 10; ++i)
            tasks[i].id = i;
    }
    Task *operator[](size_t i) { return &tasks[i]; }
};

// The digit of a task; a dash for none.
char digit(const Task *task) { return task == nullptr ? '-' : static_cast<char>('0' + task->id); }

// Runs so many: each uses up its quantum. In which order.
std::string run(Wheel &wheel, int count) {
    std::string order;
    for (int i = 0; i < count; ++i) {
        Task *task = wheel.take();
        order += digit(task);
        if (task != nullptr)
            wheel.push(task);
    }
    return order;
}

std::string take_all(Wheel &wheel) {
    std::string order;
    while (const Task *task = wheel.take())
        order += digit(task);
    return order;
}

void divided(Wheel &wheel, uint32_t segments) {
    cr_assert(wheel.set_segments(segments));
    cr_assert_eq(wheel.segments(), segments);
}

} // namespace

// Goal: what uses up its quantum again and again has one in each turn, in the order in which it first came, with any number
// of segments.
Test(Wheel, one_quantum_a_turn) {
    for (const uint32_t segments : {1u, 2u, 5u, 64u}) {
        Tasks tasks;
        Wheel wheel;
        divided(wheel, segments);
        cr_assert_null(wheel.take());
        for (size_t i = 0; i < 4; ++i)
            wheel.push(tasks[i]);
        cr_assert_eq(run(wheel, 12), "012301230123");
    }
}

// Goal: what comes a whole turn forward while the wheel is in the middle of its turn runs behind everything that came
// before it, and before that has its next one.
Test(Wheel, newcomers_wait_a_turn) {
    for (const uint32_t segments : {1u, 2u, 5u}) {
        Tasks tasks;
        Wheel wheel;
        divided(wheel, segments);
        for (size_t i = 0; i < 3; ++i)
            wheel.push(tasks[i]);
        cr_assert_eq(run(wheel, 1), "0");
        wheel.push(tasks[3]);
        cr_assert_eq(run(wheel, 7), "1203120");
    }
}

// Goal: segments come in their turn, the empty ones are passed over, and what a segment's tasks push a whole turn forward
// waits until all the others have had theirs.
Test(Wheel, segments_in_turn) {
    Tasks tasks;
    Wheel wheel;
    divided(wheel, 5);
    wheel.push(tasks[4], 5);
    wheel.push(tasks[2], 3);
    wheel.push(tasks[1], 1);
    wheel.push(tasks[3], 3);
    cr_assert_eq(run(wheel, 9), "123412341");
    wheel.push(tasks[5], 1); // nearer than the others: before them
    cr_assert_eq(run(wheel, 6), "523415");
}

// Goal: the position says when the wheel has come round: by segments() at least, in each turn of what goes a whole turn
// forward.
Test(Wheel, position_counts_segments) {
    for (const uint32_t segments : {1u, 2u, 5u}) {
        Tasks tasks;
        Wheel wheel;
        divided(wheel, segments);
        const uint64_t start = wheel.position();
        cr_assert_null(wheel.take());
        cr_assert_eq(wheel.position(), start);
        wheel.push(tasks[0]);
        wheel.push(tasks[1]);
        cr_assert_eq(run(wheel, 2), "01");
        cr_assert_eq(wheel.position(), start + segments);
        cr_assert_eq(run(wheel, 3), "010");
        cr_assert_eq(wheel.position(), start + 3 * uint64_t{segments});
    }
}

// Goal: between turns of other work the wheel goes on by one segment, whether something is there or not: what is far forward
// waits for as many turns.
Test(Wheel, one_segment_between_other_work) {
    Tasks tasks;
    Wheel wheel;
    divided(wheel, 5);
    const uint64_t start = wheel.position();
    cr_assert_null(wheel.take_from_next());
    cr_assert_eq(wheel.position(), start); // an empty one stands
    wheel.push(tasks[1], 1);
    wheel.push(tasks[2], 1);
    wheel.push(tasks[3], 3);
    cr_assert_eq(digit(wheel.take_from_next()), '1');
    cr_assert_eq(digit(wheel.take_from_next()), '2');
    cr_assert_null(wheel.take_from_next());
    cr_assert_eq(digit(wheel.take_from_next()), '3');
    cr_assert_eq(wheel.position(), start + 3);
}

// Goal: what a thief takes of this turn is not replaced by what waits for the next one.
Test(Wheel, a_thief_shortens_the_turn) {
    Tasks tasks;
    Wheel wheel;
    divided(wheel, 2);
    for (size_t i = 0; i < 3; ++i)
        wheel.push(tasks[i]);
    wheel.push(tasks[3], 1);
    cr_assert_eq(run(wheel, 2), "30"); // now one ahead: 3; this turn: 1, 2; the next: 0
    cr_assert_eq(digit(wheel.steal()), '3');
    cr_assert_eq(digit(wheel.steal()), '1');
    wheel.push(tasks[4], 1);
    cr_assert_eq(digit(wheel.take()), '2');
    cr_assert_eq(digit(wheel.take()), '4');
    cr_assert_eq(digit(wheel.take()), '0');
    cr_assert_null(wheel.take());
}

// Goal: a thief takes from the segment furthest away, its oldest first, and last from the one at which the wheel stands,
// this turn's before the next one's; of one segment, the oldest of all.
Test(Wheel, thieves_begin_far_away) {
    Tasks tasks;
    Wheel wheel;
    divided(wheel, 4);
    for (size_t i = 0; i < 3; ++i)
        wheel.push(tasks[i], 4);
    cr_assert_eq(run(wheel, 1), "0");
    wheel.push(tasks[3], 1);
    wheel.push(tasks[4], 3);
    wheel.push(tasks[5], 3);
    wheel.push(tasks[6], 2);
    std::string order;
    while (const Task *task = wheel.steal())
        order += digit(task);
    cr_assert_eq(order, "4563120");

    Wheel one;
    for (size_t i = 0; i < 3; ++i)
        one.push(tasks[i]);
    cr_assert_eq(run(one, 1), "0");
    cr_assert_eq(digit(one.steal()), '1');
    cr_assert_eq(digit(one.steal()), '2');
    cr_assert_eq(digit(one.steal()), '0');
}

// Goal: pinned tasks have their quantum a turn too, and no thief or sleeper sees them.
Test(Wheel, pinned_tasks_are_not_stolen) {
    Tasks tasks;
    Wheel wheel;
    tasks[0]->pinned = tasks[2]->pinned = true;
    wheel.push(tasks[0]);
    cr_assert_null(wheel.steal());
    cr_assert_not(wheel.seen_nonempty());
    cr_assert_eq(wheel.size(), 1u);
    wheel.push(tasks[1]);
    wheel.push(tasks[2]);
    cr_assert(wheel.seen_nonempty());
    cr_assert_eq(run(wheel, 7), "1021021");
    cr_assert_eq(digit(wheel.steal()), '1');
    cr_assert_null(wheel.steal());
    cr_assert_eq(take_all(wheel), "02");
}

// Goal: the counts are those of what is in it, whoever took.
Test(Wheel, counts) {
    for (const uint32_t segments : {1u, 2u, 5u}) {
        Tasks tasks;
        Wheel wheel;
        divided(wheel, segments);
        cr_assert_eq(wheel.size(), 0u);
        cr_assert_not(wheel.seen_nonempty());
        for (uint32_t i = 0; i < 6; ++i)
            wheel.push(tasks[i], i % segments + 1);
        cr_assert_eq(wheel.size(), 6u);
        cr_assert_not_null(wheel.take());
        cr_assert_not_null(wheel.steal());
        cr_assert_eq(wheel.size(), 4u);
        cr_assert(wheel.seen_nonempty());
        cr_assert_eq(take_all(wheel).size(), 4u);
        cr_assert_eq(wheel.size(), 0u);
        cr_assert_not(wheel.seen_nonempty());
        cr_assert_null(wheel.steal());
    }
}
