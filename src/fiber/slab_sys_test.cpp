// Looking at a slab's record while it is withdrawn and used for another slab, under every interleaving.
#include "fiber/slab.hpp"

#include "testing/systematic.hpp"
#include "testing/test.hpp"

using namespace mc;
using namespace mc::fiber;
using mc::testing::check;
using mc::testing::Thread;

namespace {

// Two slabs one after the other at overlapping places, of 8 and of 16 KiB; the address looked for is in stack 0 of
// both.
constexpr uintptr_t kAddress = 0x10000000;
constexpr uint32_t kFirstClass = 1, kSecondClass = 2;
constexpr uintptr_t kFirstBase = kAddress - kPageBytes - 100, kSecondBase = kFirstBase - 4096;

int first_owner, second_owner;

void check_look(const Slab &slab) {
    StackInfo info;
    if (!slab_look(slab, kAddress, &info))
        return;
    const bool first = info.owner == &first_owner;
    check(first || info.owner == &second_owner, "an owner that never was");
    check(info.size == stack_bytes(first ? kFirstClass : kSecondClass),
          "the owner of one slab with the size of another");
    check(info.low == reinterpret_cast<void *>((first ? kFirstBase : kSecondBase) + kPageBytes), "and with its place");
    check(!info.in_guard, "a guard where there is none");
}

void use(Slab &slab, uintptr_t base, uint32_t size_class, int &owner) {
    slab_publish(slab, reinterpret_cast<char *>(base), size_class);
    slab.owner[0].store(&owner, sync::release); // as stack_set_owner does
}

void leave(Slab &slab) {
    slab.owner[0].store(nullptr, sync::release);
    slab_withdraw(slab);
}

} // namespace

// Goal: what a look finds is one slab's whole truth.
Test(SlabSys, reused_under_a_look) {
    mc::testing::expect_pass({.name = "SlabSys/reused_under_a_look", .stale = 4}, [] {
        Slab slab;
        Thread looker([&] { check_look(slab); }, "looker");
        use(slab, kFirstBase, kFirstClass, first_owner);
        leave(slab);
        use(slab, kSecondBase, kSecondClass, second_owner);
    });
}

// Goal: the same for a look that finds the first slab in use.
Test(SlabSys, withdrawn_under_a_look) {
    mc::testing::expect_pass({.name = "SlabSys/withdrawn_under_a_look", .stale = 4}, [] {
        Slab slab;
        use(slab, kFirstBase, kFirstClass, first_owner);
        Thread looker([&] { check_look(slab); }, "looker");
        leave(slab);
        use(slab, kSecondBase, kSecondClass, second_owner);
        leave(slab);
    });
}
