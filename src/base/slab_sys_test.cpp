// Slabs and handles under every interleaving of a few operations; on real threads in other builds.
#include "base/handle.hpp"

#include "testing/arena.hpp"
#include "testing/systematic.hpp"
#include "testing/test.hpp"

#include <new>

using namespace mc;
using base::HandleKind;
using base::Slab;
using testing::Arena;
using testing::check;
using testing::Data;
using testing::Thread;

namespace {

// What it says is written under its lock; `born` when it is carved.
struct Thing : base::SlabItem<Thing>, base::HandleItem {
    base::Spinlock lock;
    Data<uint32_t> says; // guarded by lock
    Data<int> born{1};
    sync::atomic<uint32_t> owners{0};
};

// In a run of its own memory.
struct Fixture {
    Fixture() { Arena::reset(); }
    Slab<Thing> slab;

    Thing *acquire() {
        Thing *thing = slab.acquire();
        check(thing->owners.fetch_add(1, sync::relaxed) == 0, "an object has two owners");
        return thing;
    }
    void release(Thing *thing) {
        thing->owners.store(0, sync::relaxed);
        slab.release(thing);
    }
    // A new life: what the object says is the generation of the handle.
    uint64_t begin(Thing *thing) {
        base::SpinGuard guard(thing->lock);
        thing->says.set(thing->generation.load(sync::relaxed) + 1);
        return base::issue_handle(thing, HandleKind::task);
    }
    void end(Thing *thing) {
        base::SpinGuard guard(thing->lock);
        (void)base::retire_handle(thing);
    }
};

} // namespace

// Goal: two threads take and give back at once: no object has two owners.
Test(SlabSys, objects_have_one_owner) {
    Arena::install();
    testing::expect_pass({.name = "SlabSys/objects_have_one_owner", .preemptions = 3}, [] {
        Fixture fixture;
        const auto use = [&] {
            Thing *first = fixture.acquire();
            fixture.release(first);
            fixture.acquire();
        };
        {
            Thread one(use, "one");
            Thread other(use, "other");
        }
        check(fixture.slab.carved() == 2, "an object was lost, or carved in vain");
    });
}

// Goal: who finds an object by its index, just carved by another thread, finds it complete.
Test(SlabSys, carved_objects_are_complete) {
    Arena::install();
    testing::expect_pass({.name = "SlabSys/carved_objects_are_complete", .preemptions = 3}, [] {
        Fixture fixture;
        Thread carver(
            [&] {
                fixture.acquire();
                fixture.acquire();
            },
            "carver");
        for (uint32_t index = 0; index < 2; ++index)
            if (const Thing *thing = fixture.slab.at(index)) {
                check(thing->born.get() == 1, "an object that is not complete");
                check(thing->slab_index == index, "another object");
            }
    });
}

// Goal: a handle that is passed on while its object ends and its slot begins a new life: its user sees its own life,
// complete, or nothing.
Test(SlabSys, handles_meet_their_own_life) {
    Arena::install();
    testing::expect_pass({.name = "SlabSys/handles_meet_their_own_life", .preemptions = 3}, [] {
        Fixture fixture;
        sync::atomic<uint64_t> passed{0};
        testing::label(&passed, "passed handle");
        Thread owner(
            [&] {
                for (int life = 0; life < 2; ++life) {
                    Thing *thing = fixture.acquire();
                    passed.store(fixture.begin(thing), sync::relaxed); // a host may pass it on by any means
                    fixture.end(thing);
                    fixture.release(thing);
                }
            },
            "owner");
        const uint64_t handle = passed.load(sync::relaxed);
        Thing *thing = base::resolve_handle(fixture.slab, HandleKind::task, handle);
        if (thing == nullptr)
            return;
        check(thing->born.get() == 1, "an object that is not complete");
        base::SpinGuard guard(thing->lock);
        if (thing->generation.load(sync::relaxed) == base::handle_generation(handle))
            check(thing->says.get() == base::handle_generation(handle), "another life under the same handle");
    });
}

// Goal: of several who end the object through its handle, exactly one does.
Test(SlabSys, handles_are_used_up_once) {
    Arena::install();
    testing::expect_pass({.name = "SlabSys/handles_are_used_up_once", .preemptions = 3}, [] {
        Fixture fixture;
        Thing *thing = fixture.acquire();
        const uint64_t handle = fixture.begin(thing);
        sync::atomic<uint32_t> ended{0};
        const auto use_up = [&] {
            Thing *found = base::resolve_handle(fixture.slab, HandleKind::task, handle);
            if (found == nullptr)
                return;
            {
                base::SpinGuard guard(found->lock);
                if (found->generation.load(sync::relaxed) != base::handle_generation(handle))
                    return;
                (void)base::retire_handle(found);
            }
            ended.fetch_add(1, sync::relaxed);
            fixture.release(found);
            fixture.begin(fixture.acquire()); // the slot's next life, while others may still come
        };
        {
            Thread one(use_up, "one");
            Thread other(use_up, "other");
        }
        check(ended.load(sync::relaxed) == 1, "%u ends", ended.load(sync::relaxed));
    });
}
