// The twin's own tests: the lives of words, and what virtual threads have in common with real ones.
#include "testing/systematic.hpp"

#include "testing/test.hpp"

#include <boost/context/detail/fcontext.hpp>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <vector>

using namespace mc;
using testing::check;
using testing::Data;
using testing::expect_fail;
using testing::expect_pass;
using testing::Thread;

// --- Words ----------------------------------------------------------------------------------------------------------

// Goal: a word that is used after its end is found, although its memory still stands.
Test(Words, use_after_destruction_is_found) {
    expect_fail({}, "after its destruction", [] {
        alignas(sync::atomic<int>) unsigned char memory[sizeof(sync::atomic<int>)];
        auto *word = new (memory) sync::atomic<int>(1);
        word->store(2, sync::relaxed);
        word->~atomic();
        word->load(sync::relaxed);
    });
    expect_pass({}, [] {
        alignas(sync::atomic<int>) unsigned char memory[sizeof(sync::atomic<int>)];
        for (int value = 0; value < 3; ++value) {
            auto *word = new (memory) sync::atomic<int>(value);
            check(word->load(sync::relaxed) == value, "an old life's value");
            word->store(9, sync::relaxed);
            word->~atomic();
        }
    });
}

// Goal: memory that is zeroed holds zero, whatever words lived there before.
Test(Words, zeroed_memory_begins_anew) {
    expect_pass({}, [] {
        static sync::atomic<uint64_t> word; // not constructed again in later runs
        word.store(5, sync::relaxed);
        std::memset(static_cast<void *>(&word), 0, sizeof word);
        Thread other([&] { check(word.load(sync::relaxed) == 0, "an old value"); });
    });
}

namespace {

struct Counted {
    sync::atomic<int> references{2};
    sync::atomic<int> other{0};
};

void publish_object(sync::order publishes, sync::order looks) {
    sync::atomic<Counted *> shared{nullptr};
    {
        Thread reader([&] {
            if (Counted *counted = shared.load(looks))
                counted->other.load(sync::relaxed);
        });
        shared.store(new Counted, publishes);
    }
    delete shared.load(sync::relaxed);
}

void drop_references(sync::order drops) {
    auto *counted = new Counted;
    auto drop = [counted, drops] {
        counted->other.store(1, sync::relaxed);
        if (counted->references.fetch_sub(1, drops) == 1)
            delete counted;
    };
    Thread other(drop);
    drop();
}

} // namespace

// Goal: a new object's words are used only by threads that can know of its construction.
Test(Words, a_new_object_must_be_published) {
    expect_fail({}, "has constructed, and nothing orders the two",
                [] { publish_object(sync::relaxed, sync::acquire); });
    expect_fail({}, "has constructed, and nothing orders the two",
                [] { publish_object(sync::release, sync::relaxed); });
    expect_pass({}, [] { publish_object(sync::release, sync::acquire); });
}

// Goal: the last reference's holder destroys the object after, and not merely later than, the others' uses of it.
Test(Words, an_object_is_destroyed_after_its_uses) {
    expect_fail({}, "destroys what", [] { drop_references(sync::relaxed); });
    expect_fail({}, "destroys what", [] { drop_references(sync::release); });
    expect_pass({}, [] { drop_references(sync::acq_rel); });
}

// --- What virtual threads have of real ones -------------------------------------------------------------------------

// Goal: each thread has a slot of its own, and the exit hook gets it.
Test(VirtualThreads, threads_have_slots_and_exit_hooks) {
    static sync::atomic<uint64_t> hooked{0};
    sync::set_thread_exit_hook([](void *slot) { hooked.fetch_add(reinterpret_cast<uintptr_t>(slot), sync::relaxed); });
    expect_pass({.stale = 0}, [] {
        hooked.store(0, sync::relaxed);
        check(sync::thread_slot() == nullptr, "a new thread's slot");
        sync::set_thread_slot(reinterpret_cast<void *>(uintptr_t{1}));
        {
            Thread other([] {
                check(sync::thread_slot() == nullptr, "a new thread's slot");
                sync::set_thread_slot(reinterpret_cast<void *>(uintptr_t{20}));
            });
        }
        check(sync::thread_slot() == reinterpret_cast<void *>(uintptr_t{1}), "another's slot");
        check(hooked.load(sync::relaxed) == 20, "the hook");
        sync::set_thread_slot(nullptr);
    });
    sync::set_thread_exit_hook(nullptr);
}

// Goal: an exception that a thread is handling stays that thread's across switches, and so does errno.
Test(VirtualThreads, exceptions_and_errno_belong_to_threads) {
    expect_pass({.preemptions = 3, .stale = 0}, [] {
        sync::atomic<int> word{0};
        auto handle = [&](int mine) {
            try {
                throw mine;
            } catch (int) {
                errno = mine;
                word.fetch_add(1, sync::relaxed);
                check(errno == mine, "another's errno");
                try {
                    throw;
                } catch (int seen) {
                    word.fetch_add(1, sync::relaxed);
                    check(seen == mine, "another's exception");
                }
            }
        };
        Thread other([&] { handle(1); });
        handle(2);
    });
    expect_fail({}, "an exception left a thread: why", [] { throw std::runtime_error("why"); });
}

// Goal: code under test may run on stacks of its own, and blocks there as anywhere.
Test(VirtualThreads, stacks_of_the_code_under_test) {
    namespace fcontext = boost::context::detail;
    struct Shared {
        sync::atomic<uint32_t> word{0};
    };
    expect_pass({.stale = 0}, [] {
        Shared shared;
        std::vector<char> stack(64 * 1024);
        Thread waker([&] {
            shared.word.store(1, sync::release);
            sync::futex_wake(shared.word, 1);
        });
        auto fiber = fcontext::make_fcontext(stack.data() + stack.size(), stack.size(), [](fcontext::transfer_t from) {
            auto &mine = *static_cast<Shared *>(from.data);
            while (mine.word.load(sync::acquire) == 0)
                sync::futex_wait(mine.word, 0, sync::no_deadline);
            fcontext::jump_fcontext(from.fctx, nullptr);
        });
        fcontext::jump_fcontext(fiber, &shared);
        check(shared.word.load(sync::relaxed) == 1, "the fiber did not wait");
    });
}

// Goal: choices of the test's own are explored as well.
Test(VirtualThreads, own_choices_are_explored) {
    static bool seen[3];
    expect_pass({}, [] { seen[testing::choose(3)] = true; });
    cr_assert(!testing::systematic || (seen[0] && seen[1] && seen[2]));
}

// Goal: threads that the body forgets are found.
Test(VirtualThreads, a_forgotten_thread_is_found) {
    expect_fail({}, "without join", [] {
        sync::atomic<uint32_t> word{0};
        sync::thread forgotten;
        forgotten.start([](void *at) { static_cast<sync::atomic<uint32_t> *>(at)->load(sync::relaxed); }, &word);
    });
}
