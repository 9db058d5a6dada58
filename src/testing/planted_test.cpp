// That each checker is awake: faults are planted, and the build that watches for one must end the test with its own
// exit status. In builds that do not watch for it, the test does nothing.
#include "testing/test.hpp"

#include "base/sync.hpp"

#include <climits>
#include <cstdlib>

namespace {

using mc::testing::under_asan;
using mc::testing::under_tsan;
using mc::testing::under_valgrind;

constexpr int asan_status = 1, tsan_status = 66, memcheck_status = 9;

// Volatile, so that the compiler neither sees through the faults nor warns of them.
void *volatile block;
int volatile number;

} // namespace

// Goal: a block that nothing points to any more fails the test that lost it.
Test(Planted, leak_is_found, .exit_code = under_asan ? asan_status : under_valgrind ? memcheck_status : 0) {
    if (!under_asan && !under_valgrind)
        return;
    block = std::malloc(77);
    block = nullptr;
}

// Goal: a store one byte past a block is found.
Test(Planted, overrun_is_found, .exit_code = under_asan ? asan_status : under_valgrind ? memcheck_status : 0) {
    if (!under_asan && !under_valgrind)
        return;
    block = std::malloc(8);
    number = 8;
    static_cast<char volatile *>(block)[number] = 1;
    std::free(block);
}

// Goal: undefined behaviour ends the test, and is not merely printed.
Test(Planted, signed_overflow_is_found, .exit_code = under_asan ? asan_status : 0) {
    if (!under_asan)
        return;
    number = INT_MAX;
    number = number + 1;
}

// Goal: a decision that hangs on a byte nobody wrote is found.
Test(Planted, uninitialised_decision_is_found, .exit_code = under_valgrind ? memcheck_status : 0) {
    if (!under_valgrind)
        return;
    block = std::malloc(sizeof(int));
    if (*static_cast<int volatile *>(block) == 3)
        number = 1;
    std::free(block);
}

// Goal: two threads that write one word without order between them are found.
Test(Planted, race_is_found, .exit_code = under_tsan ? tsan_status : 0) {
    if (!under_tsan)
        return;
    mc::sync::thread writer;
    cr_assert(writer.start([](void *) { number = 1; }, nullptr));
    number = 2;
    writer.join();
}
