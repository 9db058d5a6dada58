// Messages of up to a cache line are sent and received through mc/csp.hpp without an allocation, of whatever type; larger ones take
// one, and give it back.
#include <mc/csp.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

namespace {

std::atomic<long> allocations{0};
std::atomic<long> frees{0};

} // namespace

// Out of line, or the compiler takes malloc and delete for a mismatch.
[[gnu::noinline]] void *operator new(std::size_t size) {
    allocations.fetch_add(1);
    if (void *p = std::malloc(size))
        return p;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void *p) noexcept {
    frees.fetch_add(p != nullptr ? 1 : 0);
    std::free(p);
}
[[gnu::noinline]] void operator delete(void *p, std::size_t) noexcept { operator delete(p); }

namespace {

int failures = 0;

void check(const char *what, long expected, long got) {
    std::printf("%-32s %ld allocations\n", what, got);
    if (got != expected) {
        std::printf("    expected %ld\n", expected);
        ++failures;
    }
}

struct Line {
    char bytes[64];
};
struct Large {
    char bytes[65];
};
struct MayThrow {
    MayThrow() = default;
    MayThrow(const MayThrow &) {}                           // NOLINT
    MayThrow &operator=(const MayThrow &) { return *this; } // NOLINT
    char bytes[64] = {};
};

template <class T> long allocated_by(T message) {
    csp::channel<T> ch;
    long during = 0;
    csp::spawn([r = -ch] {
        T got = T();
        r >> got;
        (void)bool(r >> got);
        (void)csp::alt(r >> got, ~csp::skip);
        (void)r.read();
        (void)csp::prialt(csp::action(), r >> got);
    });
    const long before = allocations.load();
    const long freed = frees.load();
    +ch << message;
    (void)bool(+ch << message);
    +ch << std::move(message);
    T other = T();
    (void)bool(+ch << std::ref(other));
    (void)csp::alt(+ch << T(), ~csp::skip);
    during = allocations.load() - before;
    if (frees.load() - freed < during) {
        std::printf("    an allocation is not freed\n");
        ++failures;
    }
    ch.release();
    csp_schedule();
    return during;
}

} // namespace

int main() {
    (void)allocated_by(0); // what the library itself needs at first
    check("int", 0, allocated_by(1));
    check("std::string of 15", 0, allocated_by(std::string("15 characters!!")));
    check("64 plain bytes", 0, allocated_by(Line()));
    check("64 bytes that may throw", 0, allocated_by(MayThrow()));
    check("65 bytes", 4, allocated_by(Large()));
    return failures == 0 ? 0 : 1;
}
