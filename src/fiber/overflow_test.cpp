// A stack that runs out: dies at the guard, says whose it was, and leaves other people's handlers alone.
#include "fiber/overflow.hpp"
#include "fiber/pages.hpp"
#include "fiber/test_fiber.hpp"

#include <mc/base.h>
#include <mc/inspect.h>

#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <vector>

using namespace mc;
using namespace mc::fiber;
using mc::fiber::testing::Death;
using mc::fiber::testing::death_of;
using mc::fiber::testing::Fiber;
using mc::fiber::testing::Here;

namespace {

constexpr bool kChecker = mc::testing::under_asan || mc::testing::under_tsan;

bool name_parser(void *, uint64_t *id, char *name) {
    *id = 17;
    std::strcpy(name, "parser");
    return true;
}

// Until the stack ends: *above is never 0.
__attribute__((noinline)) int recurse(volatile char *above) {
    volatile char frame[128];
    frame[0] = *above;
    return frame[0] == 0 ? 0 : recurse(frame) + frame[0];
}

void overflow(Fiber &) {
    volatile char start = 1;
    volatile int keep = recurse(&start);
    (void)keep;
}

// In a child: a fiber of 32 KiB runs off its stack.
void run_overflowing_fiber() {
    Here here;
    Fiber fiber(overflow, nullptr, 32768);
    fiber.resume(here);
}

AltStack alt;

void run_reported() {
    overflow_set_describe(name_parser);
    cr_assert_eq(overflow_report(true, &alt), MC_OK);
    run_overflowing_fiber();
}

constexpr const char *kLine =
    "libmcrt: stack overflow in microthread 17 \"parser\" (32768 bytes); raise its stack size\n";

void say(const char *text) {
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0)
        _exit(3);
}

bool says(const char *text, const char *expected) { return std::strcmp(text, expected) == 0; }

bool is_default(int signal) {
    struct sigaction now;
    sigaction(signal, nullptr, &now);
    return (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL;
}

} // namespace

// Goal: with a guard page the overflow is a fault, and without the reporter just that.
Test(Overflow, guard_faults) {
    for (Guard kind : {Guard::marker, Guard::protect}) {
        static Guard forced;
        forced = kind;
        const Death death = death_of([] {
            if (forced == Guard::protect)
                pages_force_guard(forced);
            run_overflowing_fiber();
        });
        cr_assert(death.by_fault(SIGSEGV), "status %x: %s", static_cast<unsigned>(death.status), death.said.c_str());
        cr_assert(!death.mentions("libmcrt: ")); // a checker names files, whose directory may be called so
    }
}

// Goal: the reporter names the microthread, in both kinds of guard, and the process still dies of the fault.
Test(Overflow, report_names_the_owner) {
    const Death marked = death_of(run_reported);
    cr_assert(marked.by_fault(SIGSEGV), "status %x: %s", static_cast<unsigned>(marked.status), marked.said.c_str());
    cr_assert(marked.mentions(kLine), "%s", marked.said.c_str());
    const Death protect = death_of([] {
        pages_force_guard(Guard::protect);
        run_reported();
    });
    cr_assert(protect.by_fault(SIGSEGV));
    cr_assert(protect.mentions(kLine), "%s", protect.said.c_str());
}

// Goal: where only a canary guards, the overflow is found at the release, the owner named, the process aborted.
Test(Overflow, canary_aborts_at_release) {
    const Death death = death_of([] {
        pages_force_guard(Guard::canary);
        overflow_set_describe(name_parser);
        Here here;
        Fiber fiber(
            [](Fiber &self) {
                cr_assert(self.stack.canary);
                cr_assert(stack_canary_ok(self.stack));
                std::memset(self.stack.low() - 16, 0, 32); // as a deep frame would
                cr_assert(!stack_canary_ok(self.stack));
            },
            nullptr, 32768);
        fiber.resume(here);
    });
    cr_assert(death.by(SIGABRT), "status %x: %s", static_cast<unsigned>(death.status), death.said.c_str());
    cr_assert(death.mentions("libmcrt: stack overflow in microthread 17 \"parser\" (32768 bytes)"), "%s",
              death.said.c_str());
}

// Goal: a canary that nothing touched survives reuse and the giving back of the memory above it.
Test(Overflow, canary_survives_reuse) {
    pages_force_guard(Guard::canary);
    for (uint64_t size : {UINT64_C(4096), UINT64_C(32768)}) {
        for (int round = 0; round != 3; ++round) {
            std::vector<Stack> stacks(1000);
            for (Stack &stack : stacks) {
                cr_assert_eq(stack_acquire(size, &stack), MC_OK);
                cr_assert(stack.canary);
                cr_assert(stack_canary_ok(stack));
                std::memset(stack.top() - 1000, 7, 1000);
            }
            for (std::size_t i = 0; i < stacks.size(); i += 2)
                stack_release(stacks[i]);
            stack_trim();
            for (std::size_t i = 1; i < stacks.size(); i += 2)
                stack_release(stacks[i]);
        }
    }
}

// Goal: no handler is installed unasked, and what was there comes back.
Test(Overflow, off_leaves_no_trace) {
    for (int signal : {SIGSEGV, SIGBUS})
        std::signal(signal, SIG_DFL);
    Stack stack;
    cr_assert_eq(stack_acquire(32768, &stack), MC_OK);
    stack_release(stack);
    AltStack mine;
    overflow_thread_begin(mine);
    cr_assert_null(mine.memory);
    cr_assert(is_default(SIGSEGV) && is_default(SIGBUS));
    cr_assert_eq(overflow_report(false, &mine), MC_OK);
    for (int round = 0; round != 3; ++round) {
        cr_assert_eq(overflow_report(true, &mine), MC_OK);
        cr_assert_eq(overflow_report(true, &mine), MC_OK);
        cr_assert(!is_default(SIGSEGV) && !is_default(SIGBUS));
        cr_assert_eq(overflow_report(false, &mine), MC_OK);
        cr_assert_eq(overflow_report(false, &mine), MC_OK);
        cr_assert(is_default(SIGSEGV) && is_default(SIGBUS));
        cr_assert_null(mine.memory);
    }
    overflow_thread_end(mine);
}

// Goal: removal refuses when somebody has replaced the handler since.
Test(Overflow, removal_is_refused_when_replaced) {
    cr_assert_eq(overflow_report(true, nullptr), MC_OK);
    struct sigaction ours, theirs = {};
    theirs.sa_handler = [](int) { _exit(4); };
    sigaction(SIGBUS, &theirs, &ours);
    cr_assert_eq(overflow_report(false, nullptr), MC_E_BUSY);
    struct sigaction now;
    sigaction(SIGBUS, nullptr, &now);
    cr_assert_eq(now.sa_handler, theirs.sa_handler);
    sigaction(SIGBUS, &ours, nullptr);
    cr_assert_eq(overflow_report(false, nullptr), MC_OK);
}

// Goal: the handler that was there before is called with the signal's own arguments, on the alternate stack.
Test(Overflow, chains_to_the_previous_handler) {
    const Death informed = death_of([] {
        struct sigaction before = {};
        before.sa_flags = SA_SIGINFO;
        before.sa_sigaction = [](int signal, siginfo_t *info, void *context) {
            if (signal == SIGSEGV && info->si_addr != nullptr && context != nullptr)
                say("the host's handler ran\n");
            _exit(5);
        };
        sigaction(SIGSEGV, &before, nullptr);
        run_reported();
    });
    cr_assert(WIFEXITED(informed.status) && WEXITSTATUS(informed.status) == 5, "status %x",
              static_cast<unsigned>(informed.status));
    cr_assert(informed.mentions(kLine) && informed.mentions("the host's handler ran\n"), "%s", informed.said.c_str());
    const Death plain = death_of([] {
        std::signal(SIGSEGV, [](int signal) { _exit(signal == SIGSEGV ? 6 : 7); });
        run_reported();
    });
    cr_assert(WIFEXITED(plain.status) && WEXITSTATUS(plain.status) == 6);
    cr_assert(plain.mentions(kLine));
}

// Goal: a fault that is no overflow, and a signal that somebody sent, pass through without a word.
Test(Overflow, other_faults_pass_through) {
    if (kChecker)
        cr_skip_test("the checker reports these itself");
    const Death fault = death_of([] {
        cr_assert_eq(overflow_report(true, &alt), MC_OK);
        volatile uintptr_t nowhere = 64;
        *reinterpret_cast<volatile char *>(nowhere) = 1;
    });
    cr_assert(fault.by(SIGSEGV) && fault.said.empty());
    for (int signal : {SIGSEGV, SIGBUS}) {
        static int sent;
        sent = signal;
        const Death killed = death_of([] {
            cr_assert_eq(overflow_report(true, &alt), MC_OK);
            kill(getpid(), sent);
            _exit(0);
        });
        cr_assert(killed.by(signal) && killed.said.empty());
        const Death ignored = death_of([] {
            std::signal(sent, SIG_IGN);
            cr_assert_eq(overflow_report(true, &alt), MC_OK);
            kill(getpid(), sent);
            _exit(8);
        });
        cr_assert(WIFEXITED(ignored.status) && WEXITSTATUS(ignored.status) == 8);
    }
    const Death fault_ignored = death_of([] {
        std::signal(SIGSEGV, SIG_IGN);
        run_reported();
    });
    cr_assert(fault_ignored.by(SIGSEGV) && fault_ignored.mentions(kLine));
}

// Goal: a previous handler that asked for one call gets one.
Test(Overflow, reset_handler_is_called_once) {
    if (kChecker)
        cr_skip_test("the checker keeps handlers of its own");
    const Death death = death_of([] {
        struct sigaction before = {};
        before.sa_flags = static_cast<int>(SA_RESETHAND);
        before.sa_handler = [](int) { say("once\n"); };
        sigaction(SIGSEGV, &before, nullptr);
        run_reported();
    });
    cr_assert(death.by(SIGSEGV));
    cr_assert_eq(death.said.find("once\n"), death.said.rfind("once\n"));
    cr_assert(death.mentions("once\n"));
}

// Goal: a thread that ran fibers before the reporter was switched on is covered after its next poll.
Test(Overflow, switched_on_later_from_another_thread) {
    const Death death = death_of([] {
        AltStack mine;
        overflow_thread_begin(mine);
        overflow_set_describe(name_parser);
        sync::thread other;
        cr_assert(other.start([](void *) { cr_assert_eq(overflow_report(true, nullptr), MC_OK); }, nullptr));
        other.join();
        overflow_thread_poll(mine);
        run_overflowing_fiber();
    });
    cr_assert(death.by_fault(SIGSEGV));
    cr_assert(death.mentions(kLine), "%s", death.said.c_str());
}

// Goal: a host's alternate stack stays the thread's.
Test(Overflow, keeps_a_host_alternate_stack) {
    stack_t hosts = {}, now = {};
    const std::size_t bytes = 1 << 16;
    hosts.ss_sp = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hosts.ss_size = bytes;
    stack_t runners = {};
    cr_assert_eq(sigaltstack(&hosts, &runners), 0);
    AltStack mine;
    cr_assert_eq(overflow_report(true, &mine), MC_OK);
    cr_assert_null(mine.memory);
    cr_assert_eq(overflow_report(false, &mine), MC_OK);
    overflow_thread_end(mine);
    cr_assert_eq(sigaltstack(nullptr, &now), 0);
    cr_assert_eq(now.ss_sp, hosts.ss_sp);
    cr_assert_eq(sigaltstack(&runners, nullptr), 0);
}

// Goal: a host's own handler can ask whose address that was.
Test(Overflow, fault_describe) {
    char text[MC_FAULT_TEXT];
    Stack stack;
    cr_assert_eq(stack_acquire(8192, &stack), MC_OK);
    cr_assert_eq(fault_describe(stack.low(), nullptr), MC_E_INVAL);
    text[0] = 'x';
    cr_assert_eq(fault_describe(stack.low(), text), MC_E_NOENT);
    cr_assert_eq(fault_describe(text, text), MC_E_NOENT);
    cr_assert_eq(text[0], 'x');
    int owner;
    stack_set_owner(stack, &owner);
    cr_assert_eq(fault_describe(stack.low() - 1, text), MC_OK);
    cr_assert(says(text, "stack overflow in a microthread (8192 bytes)"), "%s", text);
    overflow_set_describe(name_parser);
    cr_assert_eq(fault_describe(stack.low() - 1, text), MC_OK);
    cr_assert(says(text, "stack overflow in microthread 17 \"parser\" (8192 bytes)"), "%s", text);
    cr_assert_eq(fault_describe(stack.low() + 100, text), MC_OK);
    cr_assert(says(text, "address on the stack of microthread 17 \"parser\" (8192 bytes)"), "%s", text);
    overflow_set_describe([](void *, uint64_t *id, char *name) {
        *id = UINT64_MAX;
        std::memset(name, '\n', 31);
        return true;
    });
    cr_assert_eq(fault_describe(stack.low() + 100, text), MC_OK);
    cr_assert(says(text, "address on the stack of microthread 18446744073709551615 \"???????????????????????????????\" "
                         "(8192 bytes)"),
              "%s", text);
    overflow_set_describe([](void *, uint64_t *id, char *name) {
        *id = 3;
        name[0] = '\0';
        return true;
    });
    cr_assert_eq(fault_describe(stack.low() + 100, text), MC_OK);
    cr_assert(says(text, "address on the stack of microthread 3 (8192 bytes)"), "%s", text);
    stack_release(stack);
    cr_assert_eq(fault_describe(stack.low() + 100, text), MC_E_NOENT);
}
