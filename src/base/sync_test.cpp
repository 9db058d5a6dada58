// Atomics in a process that has one thread, where they are plain instructions, and at the moment when it gets another.
#include "base/sync.hpp"

#include "testing/test.hpp"

#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

using namespace mc;

namespace {

// In the child of a fork, too, where Criterion's assertions do not reach.
void require(bool holds, const char *what = "an operation is wrong", int line = __builtin_LINE()) {
    if (holds)
        return;
    std::fprintf(stderr, "sync_test.cpp:%d: %s\n", line, what);
    std::abort();
}

// In a process of its own, which has one thread; the runner has more, so the C library's word for that is false in its children.
template <class Body> void alone(Body body) {
    const pid_t child = fork();
    if (child == 0) {
#ifdef MC_SYNC_UNSHARED
        __libc_single_threaded = 1;
        require(sync::unshared());
#endif
        body();
        _exit(0);
    }
    int status = -1;
    require(waitpid(child, &status, 0) == child && status == 0, "the child has failed");
}

constexpr sync::order orders[] = {sync::relaxed, sync::acquire, sync::release, sync::acq_rel, sync::seq_cst};

// Each operation on a word of T that has `begin`, beside what it is to return and leave.
template <class T> void check_operations(T begin, T operand) {
    for (const sync::order o : orders) {
        sync::atomic<T> word(begin);
        require(word.exchange(operand, o) == begin && word.load(sync::relaxed) == operand);
        require(word.read_back() == operand);

        T expected = operand;
        require(word.compare_exchange_strong(expected, begin, o, sync::relaxed));
        require(expected == operand && word.load(sync::relaxed) == begin);
        expected = operand;
        require(!word.compare_exchange_strong(expected, operand, o, sync::relaxed));
        require(expected == begin && word.load(sync::relaxed) == begin,
                "a refusal wrote, or did not say what is there");
        expected = begin;
        while (!word.compare_exchange_weak(expected, operand, o, sync::relaxed))
            require(expected == begin);
        require(word.load(sync::relaxed) == operand);
        expected = begin;
        require(!word.compare_exchange_weak(expected, begin, o, sync::relaxed) && expected == operand);
    }
}

template <sync::Integer T> void check_arithmetic(T begin, T operand) {
    check_operations(begin, operand);
    for (const sync::order o : orders) {
        sync::atomic<T> word(begin);
        require(word.fetch_add(operand, o) == begin);
        require(word.load(sync::relaxed) == static_cast<T>(begin + operand));
        require(word.fetch_sub(operand, o) == static_cast<T>(begin + operand));
        require(word.load(sync::relaxed) == begin);
        require(word.fetch_or(operand, o) == begin);
        require(word.load(sync::relaxed) == static_cast<T>(begin | operand));
        word.store(begin, sync::relaxed);
        require(word.fetch_and(operand, o) == begin);
        require(word.load(sync::relaxed) == static_cast<T>(begin & operand));
    }
}

// Each kind of word that there is.
void check_all() {
    check_arithmetic<uint8_t>(0xfe, 0x83);
    check_arithmetic<uint16_t>(0xfffe, 0x8003);
    check_arithmetic<uint32_t>(0xfffffffe, 0x80000003);
    check_arithmetic<uint64_t>(0xfffffffffffffffe, 0x8000000000000003);
    check_arithmetic<int32_t>(-2, 5);
    check_arithmetic<int32_t>(0, INT32_MIN);
    check_arithmetic<int8_t>(-2, INT8_MIN);
    check_arithmetic<int64_t>(-2, 1);
    check_operations(false, true);
    struct Byte {
        uint8_t value;
        bool operator==(const Byte &) const = default;
    };
    check_operations(Byte{1}, Byte{255});
    void (*const none)() = nullptr;
    check_operations<void (*)()>(none, check_all);
    enum class Colour : uint8_t { red, green };
    check_operations(Colour::red, Colour::green);
    struct Pair {
        uint32_t first, second;
        bool operator==(const Pair &) const = default;
    };
    check_operations(Pair{1, 2}, Pair{3, 4});
    int numbers[8] = {};
    check_operations(&numbers[1], &numbers[2]);
    sync::atomic<int *> at(&numbers[1]);
    require(at.fetch_add(3, sync::relaxed) == &numbers[1] && at.fetch_sub(2, sync::relaxed) == &numbers[4]);
    require(at.load(sync::relaxed) == &numbers[2]);
}

// What neighbours have is not touched.
template <class T> void check_width() {
    struct {
        sync::atomic<T> before{static_cast<T>(-1)}, word{0}, after{static_cast<T>(-1)};
    } three;
    (void)three.word.fetch_add(static_cast<T>(-1), sync::relaxed);
    (void)three.word.fetch_add(2, sync::relaxed);
    (void)three.word.exchange(5, sync::relaxed);
    T expected = 5;
    require(three.word.compare_exchange_strong(expected, 6, sync::relaxed, sync::relaxed));
    require(three.before.load(sync::relaxed) == static_cast<T>(-1) &&
            three.after.load(sync::relaxed) == static_cast<T>(-1) && three.word.load(sync::relaxed) == 6);
}

struct Shared {
    static constexpr uint64_t rounds = 1'000'000;

    sync::atomic<uint64_t> sum{0};
    sync::atomic<uint32_t> lock{0};
    uint64_t counted = 0; // guarded by lock
    sync::atomic<uint32_t> bits{0};

    void add(uint32_t bit) {
        for (uint64_t i = 0; i < rounds; ++i) {
            (void)sum.fetch_add(1, sync::relaxed);
            while (lock.exchange(1, sync::acquire) != 0)
                sync::thread_yield();
            ++counted;
            lock.store(0, sync::release);
            uint64_t seen = sum.load(sync::relaxed);
            while (!sum.compare_exchange_weak(seen, seen + 1, sync::relaxed, sync::relaxed)) {
            }
            (void)bits.fetch_or(bit, sync::relaxed);
            (void)bits.fetch_and(~bit, sync::relaxed);
        }
    }
};

} // namespace

// Goal: with one thread each operation does what it does with several.
Test(Sync, operations) {
    const auto body = [] {
        check_all();
        check_width<uint8_t>();
        check_width<uint16_t>();
        check_width<uint32_t>();
        check_width<uint64_t>();
    };
    body();
    alone(body);
}

// Goal: from the moment when there is a second thread nothing is lost; nor when it has ended.
Test(Sync, a_second_thread) {
    alone([] {
        Shared shared;
        shared.add(1);
#ifdef MC_SYNC_UNSHARED
        __libc_single_threaded = 0; // as the C library does in a process that has not been forked
#endif
        sync::thread other;
        require(other.start([](void *self) { static_cast<Shared *>(self)->add(2); }, &shared), "no thread");
        require(!sync::unshared());
        shared.add(1);
        other.join();
        shared.add(1);
        require(shared.sum.load(sync::relaxed) == 4 * 2 * Shared::rounds, "an increment was lost");
        require(shared.counted == 4 * Shared::rounds, "two were inside");
        require(shared.bits.load(sync::relaxed) == 0, "a bit was lost");
        check_all();
    });
}
