// The inbox with real threads; its small cases, with every interleaving, are in inbox_sys_test.cpp.
#include "base/inbox.hpp"

#include "testing/test.hpp"

#include <vector>

using namespace mc;

namespace {

struct Letter {
    Letter *next = nullptr;
    int sender = 0;
    int number = 0;
};
using Inbox = base::Inbox<Letter, &Letter::next>;

} // namespace

// Goal: everything comes out once, oldest first, however it was taken in portions.
Test(Inbox, comes_out_in_the_order_of_going_in) {
    Inbox inbox;
    std::vector<Letter> letters(100);
    cr_assert(!inbox.maybe_nonempty());
    cr_assert_null(inbox.take_all());
    int pushed = 0;
    int taken = 0;
    for (int portion = 1; pushed + portion <= 100; ++portion) {
        for (int i = 0; i < portion; ++i) {
            letters[static_cast<size_t>(pushed)].number = pushed;
            cr_assert_eq(inbox.push(&letters[static_cast<size_t>(pushed++)]), i == 0, "push says whether it was empty");
        }
        cr_assert(inbox.maybe_nonempty());
        for (Letter *letter = inbox.take_all(); letter != nullptr; letter = letter->next)
            cr_assert_eq(letter->number, taken++);
        cr_assert_eq(taken, pushed);
        cr_assert(!inbox.maybe_nonempty());
    }
}

namespace {

constexpr int producers = 4;

struct Post {
    Inbox inbox;
    int per_producer = 0;
    sync::atomic<uint32_t> started{0};
    sync::atomic<uint32_t> found_empty{0};
};

struct Producer {
    Post *post = nullptr;
    int sender = 0;
    std::vector<Letter> letters;
    sync::thread thread;

    static void run(void *self) {
        auto &me = *static_cast<Producer *>(self);
        me.post->started.fetch_add(1, sync::relaxed);
        while (me.post->started.load(sync::relaxed) != producers)
            sync::thread_yield();
        uint32_t empty = 0;
        for (int i = 0; i < me.post->per_producer; ++i) {
            me.letters[static_cast<size_t>(i)].sender = me.sender;
            me.letters[static_cast<size_t>(i)].number = i;
            empty += me.post->inbox.push(&me.letters[static_cast<size_t>(i)]);
        }
        me.post->found_empty.fetch_add(empty, sync::relaxed);
    }
};

} // namespace

// Goal: four producers, one consumer: nothing is lost or doubled, each producer's letters keep their order, and exactly
// one push a portion found the inbox empty (who wakes a sleeping consumer relies on that).
Test(Inbox, producers_lose_nothing) {
    Post post;
    post.per_producer = 50'000 * static_cast<int>(mc::testing::scale());
    Producer all[producers];
    for (int i = 0; i < producers; ++i) {
        all[i].post = &post;
        all[i].sender = i;
        all[i].letters.resize(static_cast<size_t>(post.per_producer));
        cr_assert(all[i].thread.start(Producer::run, &all[i]));
    }
    int next[producers] = {};
    uint32_t portions = 0;
    for (int taken = 0; taken < producers * post.per_producer;) {
        Letter *letter = post.inbox.take_all();
        portions += letter != nullptr;
        if (letter == nullptr)
            sync::thread_yield();
        for (; letter != nullptr; letter = letter->next, ++taken)
            cr_assert_eq(letter->number, next[letter->sender]++);
    }
    for (Producer &producer : all)
        producer.thread.join();
    cr_assert_null(post.inbox.take_all());
    cr_assert_eq(post.found_empty.load(sync::relaxed), portions);
}
