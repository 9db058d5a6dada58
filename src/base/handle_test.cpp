// Handles: a word that the host keeps for as long as it likes finds its object or nothing.
#include "base/handle.hpp"

#include "base/prng.hpp"
#include "testing/test.hpp"

#include <set>
#include <vector>

using namespace mc;
using base::HandleKind;
using base::Slab;

namespace {

struct Thing : base::SlabItem<Thing>, base::HandleItem {};

uint64_t issue(Thing *thing) { return base::issue_handle(thing, HandleKind::task); }

} // namespace

// Goal: a handle finds its object until it is retired, and never after, though the object's slot is used again.
Test(Handle, retired_handles_stay_stale) {
    static Slab<Thing> slab;
    Thing *thing = slab.acquire();
    std::vector<uint64_t> old;
    for (int life = 0; life < 1000; ++life) {
        const uint64_t handle = issue(thing);
        cr_assert_neq(handle, 0u);
        cr_assert_eq(base::resolve_handle(slab, HandleKind::task, handle), thing);
        for (uint64_t stale : old)
            cr_assert_null(base::resolve_handle(slab, HandleKind::task, stale));
        cr_assert(base::retire_handle(thing));
        cr_assert_null(base::resolve_handle(slab, HandleKind::task, handle));
        old.push_back(handle);
        slab.release(thing);
        cr_assert_eq(slab.acquire(), thing);
    }
}

// Goal: a handle of one kind is none of another; 0 is none of any.
Test(Handle, kinds_do_not_mix) {
    static Slab<Thing> slab;
    Thing *thing = slab.acquire();
    const uint64_t handle = base::issue_handle(thing, HandleKind::chan);
    cr_assert_eq(base::resolve_handle(slab, HandleKind::chan, handle), thing);
    cr_assert_null(base::resolve_handle(slab, HandleKind::task, handle));
    cr_assert_null(base::resolve_handle(slab, HandleKind::runtime, handle));
    for (HandleKind kind : {HandleKind::task, HandleKind::chan, HandleKind::runtime})
        cr_assert_null(base::resolve_handle(slab, kind, 0));
}

// Goal: an object without a handle is found by no word, also not by the one with its present generation.
Test(Handle, unissued_objects_are_not_found) {
    static Slab<Thing> slab;
    Thing *thing = slab.acquire();
    cr_assert_null(base::resolve_handle(slab, HandleKind::task, base::make_handle(0, HandleKind::task, 0)));
    const uint64_t handle = issue(thing);
    (void)base::retire_handle(thing);
    const uint32_t even = base::handle_generation(handle) + 1;
    cr_assert_null(base::resolve_handle(slab, HandleKind::task, base::make_handle(even, HandleKind::task, 0)));
}

// Goal: a million random words, and words near valid ones, find exactly the objects that they name.
Test(Handle, random_words_find_nothing) {
    static Slab<Thing> slab;
    base::Prng prng(17);
    std::set<uint64_t> valid;
    for (int i = 0; i < 1000; ++i)
        valid.insert(issue(slab.acquire()));
    for (int i = 0; i < 1'000'000; ++i) {
        const uint64_t word = prng.next();
        cr_assert_null(base::resolve_handle(slab, HandleKind::task, word)); // 2^-54 that one is valid
    }
    for (uint64_t handle : valid)
        for (int bit = 0; bit < 64; ++bit) {
            const uint64_t near = handle ^ uint64_t { 1 } << bit;
            const Thing *found = base::resolve_handle(slab, HandleKind::task, near);
            cr_assert_eq(found != nullptr, valid.count(near) == 1);
        }
}

// Goal: a slot whose generations are used up says so, once, and no handle of any life comes back to it.
Test(Handle, generations_end_for_good) {
    static Slab<Thing> slab;
    Thing *thing = slab.acquire();
    thing->generation.store(base::last_generation - 4, sync::relaxed);
    const uint64_t before_last = issue(thing);
    cr_assert(base::retire_handle(thing));
    const uint64_t last = issue(thing);
    cr_assert_eq(base::handle_generation(last), base::last_generation - 1);
    cr_assert_eq(base::resolve_handle(slab, HandleKind::task, last), thing);
    cr_assert(!base::retire_handle(thing), "the slot must not be used again");
    for (uint64_t handle : {before_last, last})
        cr_assert_null(base::resolve_handle(slab, HandleKind::task, handle));
    for (uint64_t generation : {uint64_t{0}, uint64_t{1}, uint64_t{base::last_generation}, uint64_t{UINT32_MAX}})
        cr_assert_null(base::resolve_handle(slab, HandleKind::task,
                                            base::make_handle(static_cast<uint32_t>(generation), HandleKind::task, 0)));
}
