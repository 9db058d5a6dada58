// The operating system behind sync.hpp: futex, threads, the thread slot, TSan's hand-off notes. Any thread; nothing
// here allocates but thread_count.
#include "base/sync.hpp"

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <cxxabi.h>
#include <dirent.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

// The linker's identity of this shared object: keeps it mapped while a thread still owes it an exit call.
extern "C" __attribute__((visibility("hidden"))) void *__dso_handle;

namespace mc::sync {

namespace os {

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t not_virtual = INT64_MIN;

std::atomic<std::int64_t> virtual_now{not_virtual};

// A system call of ours must not change the errno that the caller's code reads next.
class KeepErrno {
public:
    KeepErrno() : saved_(errno) {}
    ~KeepErrno() { errno = saved_; }
    KeepErrno(const KeepErrno &) = delete;
    KeepErrno &operator=(const KeepErrno &) = delete;

private:
    int saved_;
};

void check_pthread(int result, const char *what) {
    if (result == 0)
        return;
    std::fprintf(stderr, "libmcrt: %s failed with error %d\n", what, result);
    std::abort();
}

#if defined(MC_SYNC_TSAN)
// ThreadSanitizer starts threads of its own, none, one or two. They block even SIGSEGV, as only a thread does that is just
// being made; but that one has not slept yet, and they sleep most of the time.
bool is_tool_thread(const char *tid) {
    char path[320];
    std::snprintf(path, sizeof path, "/proc/self/task/%s/status", tid);
    FILE *file = std::fopen(path, "r");
    if (file == nullptr)
        return false;
    char line[128];
    unsigned long long blocked = 0;
    unsigned long long sleeps = 0;
    while (std::fgets(line, sizeof line, file) != nullptr) {
        (void)std::sscanf(line, "SigBlk: %llx", &blocked);
        (void)std::sscanf(line, "voluntary_ctxt_switches: %llu", &sleeps);
    }
    std::fclose(file);
    return (blocked >> (SIGSEGV - 1) & 1) != 0 && sleeps > 0;
}

// Too few at worst.
std::uint32_t count_tool_threads() {
    std::uint32_t count = 0;
    if (DIR *directory = opendir("/proc/self/task")) {
        while (const dirent *entry = readdir(directory))
            count += entry->d_name[0] != '.' && is_tool_thread(entry->d_name);
        closedir(directory);
    }
    return count;
}
#else
std::uint32_t count_tool_threads() { return 0; }
#endif

} // namespace

// Absolute deadlines need the BITSET form: plain FUTEX_WAIT counts from now, so a spurious return would stretch the
// wait.
bool futex_wait(const void *word, std::uint32_t expected, std::int64_t deadline_ns) {
    KeepErrno keep;
    std::int64_t at = deadline_ns < 0 ? 0 : deadline_ns;
    timespec deadline{static_cast<time_t>(at / second_ns), static_cast<long>(at % second_ns)};
    long result = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
                          deadline_ns == no_deadline ? nullptr : &deadline, nullptr, FUTEX_BITSET_MATCH_ANY);
    return result == 0 || errno != ETIMEDOUT;
}

void futex_wake(const void *word, int count) {
    KeepErrno keep;
    syscall(SYS_futex, word, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, count, nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    asm volatile("yield" ::: "memory");
#else
    asm volatile("" ::: "memory");
#endif
}

void thread_yield() { sched_yield(); }

// relaxed: one thread sets it; what others read is a time that was.
void set_virtual_now(std::int64_t ns) { virtual_now.store(ns, std::memory_order_relaxed); }

std::int64_t now_ns() {
    if (const std::int64_t ns = virtual_now.load(std::memory_order_relaxed); ns != not_virtual) [[unlikely]]
        return ns;
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * second_ns + now.tv_nsec;
}

// The kernel's own count: a listing of /proc/self/task stops short when a thread ends under it.
std::uint32_t thread_count() {
    KeepErrno keep;
    std::uint32_t count = 0;
    if (FILE *file = std::fopen("/proc/self/status", "r")) {
        char line[128];
        while (std::fgets(line, sizeof line, file) != nullptr && std::sscanf(line, "Threads: %u", &count) != 1) {
        }
        std::fclose(file);
    }
    return count - count_tool_threads();
}

std::uint32_t thread_number() { return static_cast<std::uint32_t>(syscall(SYS_gettid)); }

std::uint32_t cpu_count() {
    static std::atomic<std::uint32_t> known{0};
    if (const std::uint32_t count = known.load(std::memory_order_relaxed))
        return count;
    KeepErrno keep;
    cpu_set_t set;
    CPU_ZERO(&set);
    const int usable = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    const long online = usable > 0 ? usable : sysconf(_SC_NPROCESSORS_ONLN); // above 1,024 the set is too small
    const auto count = static_cast<std::uint32_t>(online > 0 ? online : 1);
    known.store(count, std::memory_order_relaxed);
    return count;
}

// The new thread inherits the creator's mask, so the signals are blocked before the thread exists: blocked from inside,
// one could still arrive in its first instructions. What a thread does to itself (a fault, an abort, a seccomp refusal)
// stays deliverable.
bool thread_start(pthread_t *id, void *(*fn)(void *), void *arg) {
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (int synchronous : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
        sigdelset(&blocked, synchronous);
    check_pthread(pthread_sigmask(SIG_SETMASK, &blocked, &before), "pthread_sigmask");
    int result = pthread_create(id, nullptr, fn, arg);
    check_pthread(pthread_sigmask(SIG_SETMASK, &before, nullptr), "pthread_sigmask");
    return result == 0;
}

void thread_join(pthread_t id) { check_pthread(pthread_join(id, nullptr), "pthread_join"); }

void thread_leaked() {
    std::fputs("libmcrt: a running sync::thread was destroyed or started again without join\n", stderr);
    std::abort();
}

// The thread slot.
//
// initial-exec: one load from the thread pointer, no call into the loader that could allocate. Plain data without
// destructors, so reading or writing it is right in the latest of late destructors. Only the exit call is registered
// with the C++ runtime, when a slot is first set; registered by hand rather than as a thread_local object, because an
// object's destructor runs once, and a slot that a later destructor sets again would then never reach the hook.
// Rejected: a pthread key (exit() on the main thread runs no key destructors).
// thread_slot reads it by its name, in assembly, which a program that is optimised as a whole can not see: so it is "used".
extern "C" {
__attribute__((used, tls_model("initial-exec"))) thread_local void *mc_thread_slot = nullptr;
}
namespace {

constexpr unsigned char max_exit_calls =
    4; // per thread, as PTHREAD_DESTRUCTOR_ITERATIONS: a hook that always re-sets must end

__attribute__((tls_model("initial-exec"))) thread_local bool exit_call_pending = false;
__attribute__((tls_model("initial-exec"))) thread_local unsigned char exit_calls_registered = 0;

std::atomic<void (*)(void *)> exit_hook{nullptr};

void run_exit_hook(void *) {
    exit_call_pending = false;
    void *slot = mc_thread_slot;
    auto hook = thread_exit_hook();
    if (!slot || !hook)
        return;
    hook(slot);
    // A slot that the hook itself replaced is the business of the call which that registered.
    if (mc_thread_slot == slot)
        mc_thread_slot = nullptr;
}

void register_exit_call() {
    if (exit_call_pending || exit_calls_registered == max_exit_calls)
        return;
    exit_call_pending = true;
    ++exit_calls_registered;
    abi::__cxa_thread_atexit(run_exit_hook, nullptr, &__dso_handle);
}

} // namespace

// noinline, and the empty asm: see thread_slot.
__attribute__((noinline)) void set_thread_slot(void *slot) {
    asm volatile("" ::: "memory");
    mc_thread_slot = slot;
    if (slot)
        register_exit_call();
}

// release: pairs with the acquire in thread_exit_hook; publishes whatever the hook's caller prepared for it.
void set_thread_exit_hook(void (*hook)(void *slot)) { exit_hook.store(hook, std::memory_order_release); }
void (*thread_exit_hook())(void *slot) { return exit_hook.load(std::memory_order_acquire); }

} // namespace os
} // namespace mc::sync
