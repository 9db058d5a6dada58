// What a switch keeps, what it leaves alone, and how a fiber begins and ends.
#include "fiber/context.hpp"
#include "fiber/test_fiber.hpp"

#include <cfenv>
#include <cstdint>
#include <unwind.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using namespace mc;
using namespace mc::fiber;
using mc::fiber::testing::death_of;
using mc::fiber::testing::Fiber;
using mc::fiber::testing::Here;
using mc::fiber::testing::jump;

// Goal: control goes where it is sent, every time.
Test(Context, ping_pong) {
    struct Count {
        uint64_t rounds = mc::testing::under_valgrind ? 20'000 : 1'000'000;
        uint64_t seen = 0;
    } count;
    Here here;
    Fiber fiber(
        [](Fiber &self) {
            auto &c = *static_cast<Count *>(self.argument);
            while (c.seen != c.rounds) {
                ++c.seen;
                self.suspend();
            }
        },
        &count);
    for (uint64_t i = 0; i != count.rounds; ++i) {
        fiber.resume(here);
        cr_assert_eq(count.seen, i + 1);
    }
    fiber.resume(here);
    cr_assert(fiber.finished);
}

namespace {

// More values than there are registers, all of them live across every switch.
template <class Suspend> uint64_t mix_across_switches(uint64_t seed, int rounds, Suspend suspend) {
    uint64_t a = seed, b = a * 3, c = a * 5, d = a * 7, e = a * 11, f = a * 13, g = a * 17, h = a * 19;
    double x = static_cast<double>(seed), y = x * 0.5, z = x * 0.25;
    for (int i = 0; i != rounds; ++i) {
        suspend();
        a += b, b ^= c, c += d, d ^= e, e += f, f ^= g, g += h, h ^= a;
        x += y, y += z, z += 1;
    }
    return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ static_cast<uint64_t>(x + y + z);
}

struct Mix {
    uint64_t seed = 0;
    uint64_t result = 0;
};

} // namespace

// Goal: locals, in registers and on the stack, are a fiber's own.
Test(Context, locals_survive) {
    constexpr int rounds = 100, fibers = 10;
    Here here;
    Mix mixes[fibers];
    Fiber *all[fibers];
    for (int i = 0; i != fibers; ++i) {
        mixes[i].seed = static_cast<uint64_t>(i + 1);
        all[i] = new Fiber(
            [](Fiber &self) {
                auto &mix = *static_cast<Mix *>(self.argument);
                mix.result = mix_across_switches(mix.seed, rounds, [&] { self.suspend(); });
            },
            &mixes[i]);
    }
    for (int round = 0; round != rounds + 1; ++round)
        for (Fiber *fiber : all)
            fiber->resume(here);
    for (int i = 0; i != fibers; ++i) {
        cr_assert(all[i]->finished);
        cr_assert_eq(mixes[i].result, mix_across_switches(mixes[i].seed, rounds, [] {}));
        delete all[i];
    }
}

// Goal: a rounding mode is a fiber's own, and a new fiber has that of who made it.
Test(Context, floating_point_control_is_per_fiber) {
    if (mc::testing::under_valgrind)
        cr_skip_test("valgrind keeps to the default rounding mode");
    Here here;
    std::fesetround(FE_UPWARD);
    Fiber up([](Fiber &self) {
        for (int i = 0; i != 3; ++i) {
            cr_assert_eq(std::fegetround(), FE_UPWARD);
            self.suspend();
        }
    });
    std::fesetround(FE_TONEAREST);
    Fiber down([](Fiber &self) {
        cr_assert_eq(std::fegetround(), FE_TONEAREST);
        std::fesetround(FE_DOWNWARD);
        for (int i = 0; i != 3; ++i) {
#if defined(__x86_64__)
            cr_assert_eq(_MM_GET_ROUNDING_MODE(), _MM_ROUND_DOWN);
#endif
            cr_assert_eq(std::fegetround(), FE_DOWNWARD);
            self.suspend();
        }
    });
    for (int i = 0; i != 4; ++i) {
        up.resume(here);
        cr_assert_eq(std::fegetround(), FE_TONEAREST);
        down.resume(here);
        cr_assert_eq(std::fegetround(), FE_TONEAREST);
    }
}

// Goal: errno belongs to the thread: what one fiber leaves, the next finds.
Test(Context, errno_is_left_alone) {
    Here here;
    Fiber fiber([](Fiber &self) {
        cr_assert_eq(errno, ENOENT);
        errno = EXDEV;
        self.suspend();
    });
    errno = ENOENT;
    fiber.resume(here);
    cr_assert_eq(errno, EXDEV);
    fiber.resume(here);
}

// Goal: a fiber may resume another one, not only go back; each learns who resumed it.
Test(Context, fibers_resume_each_other) {
    static Context *first, *second, *home;
    static int step;
    Here here;
    home = &here;
    Stack stacks[2];
    Context contexts[2];
    for (Stack &stack : stacks)
        cr_assert_eq(stack_acquire(kStackMin * 8, &stack), 0);
    first = &contexts[0];
    second = &contexts[1];
    constexpr auto run_first = [](Context &self, Context *previous) {
        cr_assert_eq(&self, first);
        sync::handoff_acquire(&mc::fiber::testing::one_thread);
        cr_assert_eq(previous, home);
        cr_assert_eq(step++, 0);
        cr_assert_eq(jump(*first, *second), second);
        cr_assert_eq(step++, 2);
        context_exit(*first, *second);
    };
    constexpr auto run_second = [](Context &self, Context *previous) {
        cr_assert_eq(&self, second);
        sync::handoff_acquire(&mc::fiber::testing::one_thread);
        cr_assert_eq(previous, first);
        cr_assert_eq(step++, 1);
        cr_assert_eq(jump(*second, *first), first);
        context_destroy(*first);
        cr_assert_eq(step++, 3);
        sync::handoff_release(&mc::fiber::testing::one_thread);
        context_exit(*second, *home);
    };
    context_make<run_first>(*first, stacks[0]);
    context_make<run_second>(*second, stacks[1]);
    cr_assert_eq(jump(here, *first), second);
    cr_assert_eq(step, 4);
    context_destroy(*second);
    for (const Stack &stack : stacks)
        stack_release(stack);
}

namespace {

struct Relay {
    Fiber *fiber = nullptr;
    sync::atomic<uint32_t> turn{0};
};

void wait_for_turn(Relay &relay, uint32_t mine) {
    for (uint32_t seen; (seen = relay.turn.load(sync::acquire)) != mine;)
        sync::futex_wait(relay.turn, seen, sync::no_deadline);
}

void give_turn(Relay &relay, uint32_t to) {
    relay.turn.store(to, sync::release);
    sync::futex_wake(relay.turn, 1);
}

constexpr uint32_t kRelayRounds = 100;

void relay_other_thread(void *argument) {
    auto &relay = *static_cast<Relay *>(argument);
    Here here;
    for (uint32_t i = 0; i != kRelayRounds; ++i) {
        wait_for_turn(relay, 2 * i + 1);
        relay.fiber->resume(here);
        give_turn(relay, 2 * i + 2);
    }
}

} // namespace

// Goal: a fiber runs on now this thread, now that one.
Test(Context, moves_between_threads) {
    Here here;
    Relay relay;
    int steps = 0;
    Fiber fiber(
        [](Fiber &self) {
            for (uint32_t i = 0; i != 2 * kRelayRounds; ++i) {
                ++*static_cast<int *>(self.argument);
                try { // with the exception state of whatever thread this is
                    throw i;
                } catch (uint32_t caught) {
                    self.suspend();
                    cr_assert_eq(caught, i);
                }
            }
        },
        &steps);
    relay.fiber = &fiber;
    sync::thread other;
    cr_assert(other.start(relay_other_thread, &relay));
    for (uint32_t i = 0; i != kRelayRounds; ++i) {
        fiber.resume(here);
        give_turn(relay, 2 * i + 1);
        wait_for_turn(relay, 2 * i + 2);
    }
    other.join();
    cr_assert_eq(steps, static_cast<int>(2 * kRelayRounds));
    fiber.resume(here);
    cr_assert(fiber.finished);
}

// Goal: a debugger's or a profiler's backtrace ends at the fiber's first frame.
Test(Context, backtraces_end) {
    Here here;
    int frames = 0;
    Fiber fiber(
        [](Fiber &self) {
            const auto count = [](_Unwind_Context *context, void *argument) -> _Unwind_Reason_Code {
                if (_Unwind_GetIP(context) != 0)
                    ++*static_cast<int *>(argument);
                return *static_cast<int *>(argument) < 100 ? _URC_NO_REASON : _URC_NORMAL_STOP;
            };
            cr_assert_eq(_Unwind_Backtrace(count, self.argument), _URC_END_OF_STACK);
        },
        &frames);
    fiber.resume(here);
    cr_assert_gt(frames, 1);
    cr_assert_lt(frames, 10); // body, entry, the first frame, and what the compiler added
}

// Goal: an exception that leaves the entry ends the process by std::terminate, not by running off the stack.
Test(Context, exception_out_of_entry_terminates) {
    const auto death = death_of([] {
        std::set_terminate([] {
            static const char text[] = "terminate was called\n";
            cr_assert_gt(write(STDERR_FILENO, text, sizeof text - 1), 0);
            abort();
        });
        Here here;
        Fiber fiber([](Fiber &) { throw 1; });
        fiber.resume(here);
    });
    cr_assert(death.by(SIGABRT));
    cr_assert(death.mentions("terminate was called"), "%s", death.said.c_str());
}

// Goal: an entry that returns is a bug of ours and says so.
Test(Context, returning_entry_aborts) {
    const auto death = death_of([] {
        Here here;
        Stack stack;
        Context context;
        cr_assert_eq(stack_acquire(32768, &stack), 0);
        context_make<[](Context &, Context *) {}>(context, stack);
        context_switch(here, context);
    });
    cr_assert(death.by(SIGABRT));
    cr_assert(death.mentions("entry returned"), "%s", death.said.c_str());
}

// Goal: so is one that is resumed after its end.
Test(Context, resuming_the_dead_aborts) {
    if (mc::testing::under_tsan || mc::testing::under_asan || mc::testing::under_valgrind)
        cr_skip_test("the checker stops it first");
    const auto death = death_of([] {
        Here here;
        Fiber fiber([](Fiber &) {});
        fiber.resume(here);
        context_switch(here, fiber);
    });
    cr_assert(death.by(SIGABRT) || death.by(SIGSEGV));
}
