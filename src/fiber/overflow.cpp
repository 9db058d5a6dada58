// Everything reachable from on_fault is async-signal-safe: plain loads, atomics, write(2), sigaction(2), raise(3).
#include "fiber/overflow.hpp"

#include <mc/base.h>
#include <mc/inspect.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace mc::fiber {

sync::atomic<uint32_t> detail::overflow_epoch{0};

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS};
constexpr uint32_t kSignalCount = 2;

struct Reporter {
    sync::mutex lock;
    // Guarded by lock.
    bool on = false;
    // Written under lock before the handler is installed; then read by it.
    struct sigaction before[kSignalCount] = {};
    // Any thread.
    sync::atomic<uint32_t> spent[kSignalCount]{}; // a handler with SA_RESETHAND had its one call
    sync::atomic<DescribeOwner> describe{nullptr};
} reporter;

// Builds a line without the C library.
class Line {
public:
    Line(char *out, std::size_t bytes) : begin_(out), at_(out), end_(out + bytes - 1) {}
    Line &text(const char *s) {
        while (*s != '\0' && at_ != end_)
            *at_++ = *s++;
        return *this;
    }
    // A name is the user's: it must not end the line.
    Line &name(const char *s) {
        for (; *s != '\0' && at_ != end_; ++s)
            *at_++ = static_cast<unsigned char>(*s) < 0x20 ? '?' : *s;
        return *this;
    }
    Line &number(uint64_t value) {
        char digits[21];
        char *first = digits + sizeof digits - 1;
        *first = '\0';
        do
            *--first = static_cast<char>('0' + value % 10);
        while ((value /= 10) != 0);
        return text(first);
    }
    void finish() { *at_ = '\0'; }
    void write_to_stderr() {
        // Whoever reads standard error may be gone; there is nobody else to tell.
        [[maybe_unused]] const auto written = write(STDERR_FILENO, begin_, static_cast<std::size_t>(at_ - begin_));
    }

private:
    char *begin_;
    char *at_;
    char *end_;
};

void describe_owner(Line &line, void *owner, uint32_t size) {
    uint64_t id = 0;
    char name[32] = {};
    // acquire: pairs with the release in overflow_set_describe.
    const DescribeOwner describe = reporter.describe.load(sync::acquire);
    if (describe != nullptr && describe(owner, &id, name)) {
        name[sizeof name - 1] = '\0';
        line.text("microthread ").number(id);
        if (name[0] != '\0')
            line.text(" \"").name(name).text("\"");
    } else {
        line.text("a microthread");
    }
    line.text(" (").number(size).text(" bytes)");
}

constexpr const char *kAdvice = "; raise its stack size";

void report(const void *addr) {
    StackInfo info;
    if (!stack_find(addr, &info) || !info.in_guard)
        return;
    char text[192];
    Line line(text, sizeof text);
    describe_owner(line.text("libmcrt: stack overflow in "), info.owner, info.size);
    line.text(kAdvice).text("\n").write_to_stderr();
}

// The handler that was there before gets the signal as if ours did not exist.
void chain(int signal, siginfo_t *info, void *context) {
    const uint32_t which = signal == SIGSEGV ? 0 : 1;
    const struct sigaction &before = reporter.before[which];
    const bool plain = (before.sa_flags & SA_SIGINFO) == 0;
    const bool from_kernel = info->si_code > 0;
    const bool spent = (before.sa_flags & static_cast<int>(SA_RESETHAND)) != 0 &&
                       reporter.spent[which].exchange(1, sync::relaxed) != 0;
    if (spent || (plain && before.sa_handler == SIG_DFL) || (plain && before.sa_handler == SIG_IGN && from_kernel)) {
        // Back to the default, and return: the faulting instruction runs again and the core shows it. (The kernel
        // treats an ignored fault so.) A signal that somebody sent has no such instruction, so it is sent once more.
        struct sigaction fallback = {};
        fallback.sa_handler = SIG_DFL;
        sigaction(signal, &fallback, nullptr);
        if (!from_kernel)
            raise(signal);
    } else if (!plain) {
        before.sa_sigaction(signal, info, context);
    } else if (before.sa_handler != SIG_IGN) {
        before.sa_handler(signal);
    }
}

void on_fault(int signal, siginfo_t *info, void *context) {
    const int saved = errno;
    if (info->si_code > 0) // else somebody sent it, and si_addr is no address
        report(info->si_addr);
    errno = saved;
    chain(signal, info, context);
}

bool is_ours(const struct sigaction &action) {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_fault;
}

// The mask and the restart flag are those of the handler that is called in the end.
void install(uint32_t which) {
    struct sigaction &before = reporter.before[which];
    sigaction(kSignals[which], nullptr, &before);
    struct sigaction ours = {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (before.sa_flags & (SA_RESTART | static_cast<int>(SA_NODEFER)));
    ours.sa_mask = before.sa_mask;
    reporter.spent[which].store(0, sync::relaxed);
    sigaction(kSignals[which], &ours, nullptr);
}

bool all_ours() {
    for (int signal : kSignals) {
        struct sigaction now = {};
        sigaction(signal, nullptr, &now);
        if (!is_ours(now))
            return false;
    }
    return true;
}

// The kernel saves all registers on it (with AMX 11 KiB), then our handler and the host's run.
std::size_t alt_stack_bytes() {
    const long least = sysconf(_SC_MINSIGSTKSZ);
    const std::size_t needed = least > 0 ? static_cast<std::size_t>(least) : std::size_t{4096};
    return std::max<std::size_t>(std::size_t{64} << 10,
                                 (needed + (std::size_t{32} << 10) + kPageBytes - 1) / kPageBytes * kPageBytes);
}

// True: the thread has an alternate stack now, ours or not.
bool alt_install(AltStack &self) {
    stack_t now = {};
    if (self.memory != nullptr || (sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) == 0))
        return true;
    const std::size_t bytes = alt_stack_bytes();
    void *memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    mprotect(memory, kPageBytes, PROT_NONE); // its guard; without one the handler still works
    stack_t ours = {};
    ours.ss_sp = static_cast<char *>(memory) + kPageBytes;
    ours.ss_size = bytes - kPageBytes;
    if (sigaltstack(&ours, nullptr) != 0) {
        munmap(memory, bytes);
        return false;
    }
    self.memory = memory;
    self.bytes = bytes;
    return true;
}

void alt_remove(AltStack &self) {
    if (self.memory == nullptr)
        return;
    stack_t now = {};
    const bool installed =
        sigaltstack(nullptr, &now) == 0 && now.ss_sp == static_cast<char *>(self.memory) + kPageBytes;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    // Somebody who put another one in its place may put ours back: then it must still be there.
    if (installed && sigaltstack(&none, nullptr) == 0)
        munmap(self.memory, self.bytes);
    self.memory = nullptr;
}

int32_t turn_on(AltStack *self) {
    if (self != nullptr && !alt_install(*self))
        return MC_E_NOMEM;
    if (reporter.on)
        return MC_OK;
    for (uint32_t which = 0; which != kSignalCount; ++which)
        install(which);
    reporter.on = true;
    // release: pairs with the acquire in overflow_thread_poll.
    detail::overflow_epoch.fetch_add(1, sync::release);
    return MC_OK;
}

int32_t turn_off() {
    if (!reporter.on)
        return MC_OK;
    if (!all_ours())
        return MC_E_BUSY;
    for (uint32_t which = 0; which != kSignalCount; ++which)
        sigaction(kSignals[which], &reporter.before[which], nullptr);
    reporter.on = false;
    detail::overflow_epoch.fetch_add(1, sync::release); // release: as above
    return MC_OK;
}

} // namespace

int32_t overflow_report(bool on, AltStack *self) {
    const int saved = errno;
    int32_t result;
    {
        sync::lock_guard guard(reporter.lock);
        result = on ? turn_on(self) : turn_off();
    }
    if (result == MC_OK && self != nullptr)
        overflow_thread_poll(*self);
    errno = saved;
    return result;
}

void detail::overflow_catch_up(AltStack &self) {
    const int saved = errno;
    self.seen = overflow_epoch.load(sync::acquire); // acquire: as in overflow_thread_poll
    if ((self.seen & 1) != 0)
        alt_install(self); // no memory: this thread's overflows end the process without a line
    else
        alt_remove(self);
    errno = saved;
}

void overflow_thread_end(AltStack &self) {
    const int saved = errno;
    alt_remove(self);
    self.seen = 0;
    errno = saved;
}

void overflow_lock() { reporter.lock.lock(); }
void overflow_unlock() { reporter.lock.unlock(); }

void overflow_set_describe(DescribeOwner describe) {
    reporter.describe.store(describe, sync::release); // release: pairs with describe_owner's acquire
}

int32_t fault_describe(const void *addr, char *buf) {
    if (buf == nullptr)
        return MC_E_INVAL;
    StackInfo info;
    if (!stack_find(addr, &info))
        return MC_E_NOENT;
    Line line(buf, MC_FAULT_TEXT);
    describe_owner(line.text(info.in_guard ? "stack overflow in " : "address on the stack of "), info.owner, info.size);
    line.finish();
    return MC_OK;
}

void overflow_abort(const Stack &stack) {
    char text[192];
    Line line(text, sizeof text);
    // relaxed: the caller holds the stack, so it has seen its owner.
    describe_owner(line.text("libmcrt: stack overflow in "), stack.slab->owner[stack.index].load(sync::relaxed),
                   stack.size());
    line.text(", found when it ended").text(kAdvice).text("\n").write_to_stderr();
    abort();
}

} // namespace mc::fiber
