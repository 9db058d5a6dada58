#include "fiber/pages.hpp"

#include "base/assert.hpp"
#include "base/sync.hpp"
#include "fiber/stack.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace mc::fiber {

namespace {

constexpr int kGuardInstall = 102; // MADV_GUARD_INSTALL, which libc's headers may not know
constexpr int kSelf = -10001;      // PIDFD_SELF_THREAD_GROUP (Linux 6.15): this process, without a descriptor
constexpr uint32_t kCalls = 4;

struct PageState {
    // Any thread. Each is a value on its own that publishes nothing else: relaxed throughout.
    sync::atomic<uint32_t> kind{0};   // of guards: 0 is not yet known
    sync::atomic<uint64_t> budget{0}; // mappings that protect guards may use; 0 is not yet known
    sync::atomic<uint64_t> used{0};   // mappings that they do use
    sync::atomic<uint32_t> no_batch_mask{
        0}; // bit 0: process_madvise does not install guards here; bit 1: nor give back
    sync::atomic<uint32_t> fail_in[kCalls]{};
} state;

bool must_fail(PageCall call) {
    auto &left = state.fail_in[static_cast<uint32_t>(call)];
    if (left.load(sync::relaxed) == 0) [[likely]]
        return false;
    return left.fetch_sub(1, sync::relaxed) == 1;
}

void *map_plain(std::size_t bytes) {
    void *first =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    return first == MAP_FAILED ? nullptr : first;
}

// Does the kernel install guards? Asking is not enough: some emulators accept any advice and do nothing. A system call
// that is to write into a guarded page tells, since it fails where an access of ours would kill the process.
Guard probe_kind() {
    if (sysconf(_SC_PAGESIZE) != static_cast<long>(kPageBytes))
        return Guard::canary; // a guard of this size would cover what lies beside it, or be refused
    void *page = map_plain(kPageBytes);
    if (page == nullptr)
        return Guard::protect;
    const bool works = madvise(page, kPageBytes, kGuardInstall) == 0 &&
                       syscall(SYS_clock_gettime, CLOCK_MONOTONIC, page) == -1 && errno == EFAULT;
    munmap(page, kPageBytes);
    return works ? Guard::marker : Guard::protect;
}

Guard guard_kind() {
    uint32_t kind = state.kind.load(sync::relaxed);
    if (kind == 0) {
        kind = static_cast<uint32_t>(probe_kind());
        state.kind.store(kind, sync::relaxed); // two threads may both probe: the answer is the same
    }
    return static_cast<Guard>(kind);
}

uint64_t read_map_limit() {
    char text[32] = {};
    const int file = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read(file, text, sizeof text - 1) < 0)
            text[0] = '\0';
        close(file);
    }
    const uint64_t limit = strtoull(text, nullptr, 10);
    return limit != 0 ? limit : 65530; // the kernel's default
}

uint64_t protect_budget() {
    uint64_t budget = state.budget.load(sync::relaxed);
    if (budget == 0) {
        budget = read_map_limit() / 4;
        state.budget.store(budget, sync::relaxed);
    }
    return budget;
}

// One system call for all ranges. False: it did not do all of them, and the caller does them one by one.
bool advise_at_once([[maybe_unused]] const PageRange *ranges, [[maybe_unused]] uint32_t count,
                    [[maybe_unused]] int advice, [[maybe_unused]] std::size_t bytes) {
#if defined(SYS_process_madvise) && !defined(MC_VALGRIND) // which does not know the call, and says so each time
    const uint32_t bit = advice == kGuardInstall ? 1 : 2;
    if (count < 2 || (state.no_batch_mask.load(sync::relaxed) & bit) != 0)
        return false;
    const long done = syscall(SYS_process_madvise, kSelf, ranges, count, advice, 0);
    if (done < 0 && errno != ENOMEM && errno != EAGAIN && errno != EINTR)
        state.no_batch_mask.fetch_or(bit, sync::relaxed); // an older kernel, or a sandbox
    return done >= 0 && static_cast<std::size_t>(done) == bytes;
#else
    return false;
#endif
}

int advise(void *first, std::size_t bytes, int advice) {
    int result;
    do
        result = madvise(first, bytes, advice);
    while (result != 0 && (errno == EAGAIN || errno == EINTR));
    return result;
}

enum class Marked { yes, no_memory, refused };

Marked mark_all(char *first, std::size_t stride, uint32_t count) {
    PageRange pages[kPageBatch];
    for (uint32_t i = 0; i != count; ++i)
        pages[i] = {first + i * stride, kPageBytes};
    if (must_fail(PageCall::guard))
        return Marked::no_memory;
    if (advise_at_once(pages, count, kGuardInstall, count * static_cast<std::size_t>(kPageBytes)))
        return Marked::yes;
    for (uint32_t i = 0; i != count; ++i)
        if (advise(pages[i].iov_base, kPageBytes, kGuardInstall) != 0)
            return errno == ENOMEM ? Marked::no_memory : Marked::refused;
    return Marked::yes;
}

// Within the budget, and if the system has a mapping left.
bool try_protect(void *page) {
    if (state.used.fetch_add(2, sync::relaxed) + 2 <= protect_budget() && !must_fail(PageCall::protect) &&
        mprotect(page, kPageBytes, PROT_NONE) == 0)
        return true;
    state.used.fetch_sub(2, sync::relaxed);
    return false;
}

} // namespace

void *pages_map(std::size_t bytes) {
    if (must_fail(PageCall::map))
        return nullptr;
    void *first = map_plain(bytes);
    if (first != nullptr)
        madvise(first, bytes,
                MADV_NOHUGEPAGE); // a huge page would make a parked fiber cost 2 MiB; kernels without them refuse
    return first;
}

bool pages_unmap(void *first, std::size_t bytes) { return !must_fail(PageCall::unmap) && munmap(first, bytes) == 0; }

void pages_give_back(const PageRange *ranges, uint32_t count) {
    std::size_t bytes = 0;
    for (uint32_t i = 0; i != count; ++i)
        bytes += ranges[i].iov_len;
    if (advise_at_once(ranges, count, MADV_DONTNEED, bytes))
        return;
    for (uint32_t i = 0; i != count; ++i)
        advise(ranges[i].iov_base, ranges[i].iov_len, MADV_DONTNEED); // locked memory is refused and stays
}

bool pages_guard(void *first, std::size_t stride, uint32_t count, Guard *kinds) {
    MC_INVARIANT(count <= kPageBatch, count);
    Guard kind = guard_kind();
    if (kind == Guard::marker) {
        switch (mark_all(static_cast<char *>(first), stride, count)) {
        case Marked::yes:
            break;
        case Marked::no_memory:
            return false;
        case Marked::refused: // such as memory locked by mlockall
            kind = Guard::protect;
            break;
        }
    }
    for (uint32_t i = 0; i != count; ++i) {
        kinds[i] = kind;
        if (kind == Guard::protect && !try_protect(static_cast<char *>(first) + i * stride))
            kinds[i] = Guard::canary;
    }
    return true;
}

void pages_guard_gone(uint32_t protects) { state.used.fetch_sub(uint64_t{2} * protects, sync::relaxed); }

void pages_force_guard(Guard kind, uint64_t budget) {
    state.kind.store(static_cast<uint32_t>(kind), sync::relaxed);
    state.budget.store(budget, sync::relaxed);
}

void pages_fail(PageCall call, uint32_t nth) { state.fail_in[static_cast<uint32_t>(call)].store(nth, sync::relaxed); }

} // namespace mc::fiber
