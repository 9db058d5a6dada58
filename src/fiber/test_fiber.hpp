// For this room's tests: fibers that hand control back and forth by hand, and children that are expected to die.
#pragma once

#include "base/sync.hpp"
#include "fiber/context.hpp"
#include "fiber/stack.hpp"
#include "testing/test.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace mc::fiber::testing {

// Fibers that share one OS thread see each other's data: TSan is told, since a switch by itself orders nothing there.
inline char one_thread;

inline Context *jump(Context &from, Context &to) {
    sync::handoff_release(&one_thread);
    Context *previous = context_switch(from, to);
    sync::handoff_acquire(&one_thread);
    return previous;
}

// A fiber with a body. resume() runs it until it suspends or its body returns.
class Fiber : public Context {
public:
    using Body = void (*)(Fiber &self);

    explicit Fiber(Body body, void *arg = nullptr, uint64_t stack_size = 64 << 10) : argument(arg), body_(body) {
        cr_assert_eq(stack_acquire(stack_size, &stack), 0);
        stack_set_owner(stack, this);
        context_make<entry>(*this, stack);
    }
    Fiber(const Fiber &) = delete;
    Fiber &operator=(const Fiber &) = delete;

    void resume(Context &here) {
        resumer_ = &here;
        cr_assert_eq(jump(here, *this), this);
        if (finished) {
            context_destroy(*this);
            stack_release(stack);
        }
    }
    void suspend() { cr_assert_eq(jump(*this, *resumer_), resumer_); }

    void *argument;
    Stack stack;
    bool finished = false;

private:
    static void entry(Context &context, Context *previous) {
        sync::handoff_acquire(&one_thread);
        auto *self = static_cast<Fiber *>(&context);
        cr_assert_eq(previous, self->resumer_);
        self->body_(*self);
        self->finished = true;
        sync::handoff_release(&one_thread);
        context_exit(*self, *self->resumer_);
    }

    Body body_;
    Context *resumer_ = nullptr;
};

// The thread's own stack, for the length of a test.
struct Here : Context {
    Here() { context_adopt(*this); }
};

// What became of a forked child, and what it wrote to standard error.
struct Death {
    int status = 0;
    std::string said;
    bool by(int signal) const { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }
    // The checkers handle a fault themselves, and end the process with a status of their own.
    bool by_fault(int signal) const {
        return by(signal) ||
               ((mc::testing::under_asan || mc::testing::under_tsan) && WIFEXITED(status) && WEXITSTATUS(status) != 0);
    }
    bool mentions(const char *text) const { return said.find(text) != std::string::npos; }
};

inline Death death_of(void (*body)()) {
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    const pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        for (int signal : {SIGSEGV, SIGBUS, SIGABRT})
            if (!mc::testing::under_asan && !mc::testing::under_tsan)
                std::signal(signal, SIG_DFL); // the test runner's handlers are not the point
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        body();
        _exit(0);
    }
    close(ends[1]);
    Death death;
    char text[4096];
    for (ssize_t got; (got = read(ends[0], text, sizeof text)) > 0 || (got < 0 && errno == EINTR);)
        death.said.append(text, got > 0 ? static_cast<std::size_t>(got) : 0);
    close(ends[0]);
    cr_assert_eq(waitpid(child, &death.status, 0), child);
    return death;
}

} // namespace mc::fiber::testing
