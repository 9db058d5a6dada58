// The intrusive list, against a sequential model.
#include "base/list.hpp"

#include "base/prng.hpp"
#include "testing/test.hpp"

#include <algorithm>
#include <deque>
#include <vector>

using namespace mc;
using base::List;
using base::ListNode;
using base::SlimList;

namespace {

struct ByAge;
struct ByName;
struct Item : ListNode<Item>, ListNode<Item, ByName> {
    int number = 0;
};

template <class Tag> std::vector<int> numbers(const List<Item, Tag> &list) {
    std::vector<int> out;
    for (Item *item = list.front(); item != nullptr; item = list.after(item))
        out.push_back(item->number);
    return out;
}

struct Plain : ListNode<Plain> {
    int number = 0;
};

// A long random history leaves the list as a deque would be.
template <class Tested> void compare_with_a_model(uint64_t seed) {
    base::Prng prng(seed);
    Tested list;
    std::vector<Plain> items(64);
    std::deque<Plain *> model;
    for (int step = 0; step < 200'000; ++step) {
        Plain *item = &items[prng.below(64)];
        if (item->linked() && prng.below(2) == 0)
            item = model.front();
        if (!item->linked()) {
            list.push_back(item);
            model.push_back(item);
        } else {
            list.remove(item);
            model.erase(std::find(model.begin(), model.end(), item));
        }
        cr_assert_eq(list.empty(), model.empty());
        if (step % 64 == 0 || model.size() < 3) {
            Plain *at = list.front();
            for (Plain *expected : model) {
                cr_assert_eq(at, expected);
                at = list.after(at);
            }
            cr_assert_null(at);
        }
    }
}

} // namespace

// Goal: first in, first out; an element knows whether it is linked.
Test(List, is_first_in_first_out) {
    List<Plain> list;
    Plain items[5];
    cr_assert(list.empty());
    cr_assert_null(list.front());
    cr_assert_null(list.pop_front());
    for (Plain &item : items) {
        cr_assert(!item.linked());
        list.push_back(&item);
        cr_assert(item.linked());
    }
    for (Plain &item : items) {
        cr_assert(!list.empty());
        cr_assert_eq(list.pop_front(), &item);
        cr_assert(!item.linked());
    }
    cr_assert(list.empty());
}

// Goal: first, middle and last leave without disturbing the others; the last of all leaves an empty list.
Test(List, any_element_can_leave) {
    for (int gone = 0; gone < 3; ++gone) {
        List<Plain> list;
        Plain items[3];
        for (int i = 0; i < 3; ++i) {
            items[i].number = i;
            list.push_back(&items[i]);
        }
        List<Plain>::remove(&items[gone]);
        cr_assert(!items[gone].linked());
        int expected = 0;
        for (Plain *item = list.front(); item != nullptr; item = list.after(item), ++expected) {
            expected += expected == gone;
            cr_assert_eq(item->number, expected);
        }
        list.push_back(&items[gone]);
        for (Plain &item : items)
            List<Plain>::remove(&item);
        cr_assert(list.empty());
    }
}

// Goal: one element on two lists by two tags; leaving one leaves the other alone.
Test(List, tags_are_independent) {
    List<Item> by_age;
    List<Item, ByName> by_name;
    Item items[3];
    for (int i = 0; i < 3; ++i) {
        items[i].number = i;
        by_age.push_back(&items[i]);
    }
    for (int i = 2; i >= 0; --i)
        by_name.push_back(&items[i]);
    by_age.remove(&items[1]);
    cr_assert(numbers(by_age) == (std::vector<int>{0, 2}));
    cr_assert(numbers(by_name) == (std::vector<int>{2, 1, 0}));
}

// Goal: a long random history leaves the list as a deque would be.
Test(List, random_history_matches_a_model) { compare_with_a_model<List<Plain>>(11); }

// Goal: so it leaves one of one word, also where it is emptied again and again.
Test(SlimList, random_history_matches_a_model) {
    compare_with_a_model<SlimList<Plain>>(12);
    SlimList<Plain> list;
    Plain items[3];
    for (int round = 0; round < 100; ++round)
        for (int used = 1; used <= 3; ++used) {
            for (int i = 0; i < used; ++i)
                list.push_back(&items[i]);
            for (int i = 0; i < used; ++i) {
                cr_assert_eq(list.front(), &items[i]);
                list.remove(&items[i]);
            }
            cr_assert(list.empty());
        }
    static_assert(sizeof(SlimList<Plain>) == sizeof(void *));
}
