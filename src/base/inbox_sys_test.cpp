// The inbox under every interleaving of a few operations; on real threads in other builds.
#include "base/inbox.hpp"

#include "testing/systematic.hpp"
#include "testing/test.hpp"

using namespace mc;
using testing::check;
using testing::Data;
using testing::Thread;

namespace {

struct Letter {
    Letter *next = nullptr;
    Data<int> number;
};
using Inbox = base::Inbox<Letter, &Letter::next>;

// Takes letters until `count` have come, and checks them. Returns in how many portions they came.
uint32_t take(Inbox &inbox, int count, int senders) {
    int next[4] = {};
    uint32_t portions = 0;
    for (int taken = 0; taken < count;) {
        Letter *letter = inbox.take_all();
        if (letter == nullptr)
            sync::thread_yield();
        else
            ++portions;
        while (letter != nullptr) {
            Letter *after = letter->next;
            const int number = letter->number.get();
            check(number % 10 == next[number / 10]++, "letter %d comes out of order, or twice", number);
            check(number / 10 < senders, "a letter that nobody sent");
            letter->number.set(-1); // the letter is ours alone now
            letter = after;
            ++taken;
        }
    }
    check(inbox.take_all() == nullptr, "a letter too many");
    return portions;
}

void send(Inbox &inbox, Letter *letters, int sender, int count, uint32_t &found_empty) {
    for (int i = 0; i < count; ++i) {
        letters[i].number.set(sender * 10 + i);
        found_empty += inbox.push(&letters[i]);
    }
}

void exchange(int senders, int count) {
    Inbox inbox;
    Letter letters[4][4];
    uint32_t found_empty[4] = {};
    uint32_t portions = 0;
    {
        Thread first([&] { send(inbox, letters[0], 0, count, found_empty[0]); }, "first");
        if (senders == 1) {
            portions = take(inbox, count, 1);
        } else {
            Thread second([&] { send(inbox, letters[1], 1, count, found_empty[1]); }, "second");
            portions = take(inbox, 2 * count, 2);
        }
    }
    check(found_empty[0] + found_empty[1] == portions, "not one push a portion found it empty");
}

} // namespace

// Goal: one producer: each letter once, in order, with what its sender wrote into it.
Test(InboxSys, one_producer) {
    testing::expect_pass({.name = "InboxSys/one_producer", .preemptions = 3}, [] { exchange(1, 3); });
}

// Goal: two producers.
Test(InboxSys, two_producers) {
    testing::expect_pass({.name = "InboxSys/two_producers", .preemptions = 3, .stale = 1, .spurious = 0},
                         [] { exchange(2, 2); });
    testing::expect_pass({.name = "InboxSys/two_producers", .search = testing::Search::seeds, .seeds = 5'000},
                         [] { exchange(2, 3); });
}
