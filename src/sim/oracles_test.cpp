// Oracles by themselves.
#include "sim/oracles.hpp"
#include "testing/test.hpp"

using namespace mc::sim;

namespace {

bool says(const std::optional<std::string> &wrong, const char *part) {
    return wrong && wrong->find(part) != std::string::npos;
}

} // namespace

// Goal: messages that come out as they went in are no complaint, and are numbered.
Test(Ledger, in_order_is_right) {
    Ledger ledger(3);
    std::optional<std::string> wrong;
    cr_assert_eq(ledger.put(10, false), 1u);
    cr_assert_eq(ledger.put(20, false), 2u);
    cr_assert_eq(ledger.take(10, &wrong), 1u);
    cr_assert_eq(ledger.put(10, false), 3u);
    cr_assert_eq(ledger.take(20, &wrong), 2u);
    cr_assert_eq(ledger.take(10, &wrong), 3u);
    cr_assert_not(wrong.has_value());
    cr_assert_not(ledger.left().has_value());
    cr_assert_not(ledger.gone(0, false).has_value());
}

// Goal: another message, or one too many, is named with its channel.
Test(Ledger, another_message_is_wrong) {
    Ledger ledger(3);
    std::optional<std::string> wrong;
    ledger.set_name("jobs");
    (void)ledger.put(1, false);
    (void)ledger.put(2, false);
    (void)ledger.take(2, &wrong);
    cr_assert(says(wrong, "channel 3 \"jobs\" gave another message"));
    wrong.reset();
    (void)ledger.take(2, &wrong);
    cr_assert_not(wrong.has_value());
    (void)ledger.take(2, &wrong);
    cr_assert(says(wrong, "never put"));
}

// Goal: what nobody has taken is counted, unless it was dropped as it should be, or is a timer's.
Test(Ledger, what_is_left_is_counted) {
    Ledger ledger(1);
    (void)ledger.put(1, false);
    (void)ledger.put(2, false);
    cr_assert(says(ledger.left(), "2 messages"));
    cr_assert(says(ledger.gone(2, false), "2 messages that nobody received"));
    cr_assert_not(ledger.left().has_value());
    cr_assert_not(Ledger(1).gone(2, true).has_value());
    Ledger timer(2);
    (void)timer.put(1, true);
    cr_assert_not(timer.left().has_value());
    cr_assert_not(timer.gone(1, false).has_value());
}

// Goal: who has waited longest beyond the bound is found, and nobody before.
Test(Patience, finds_who_waits_longest) {
    Patience patience;
    const int tasks[3] = {};
    cr_assert_eq(patience.begins(&tasks[0], 10), 10u);
    cr_assert_eq(patience.begins(&tasks[1], 5), 5u);
    cr_assert_eq(patience.begins(&tasks[1], 9), 5u); // it waits already
    cr_assert(patience.overdue(15, 10) == nullptr);
    cr_assert(patience.overdue(16, 10) == &tasks[1]);
    cr_assert(patience.overdue(30, 10) == &tasks[1]);
    patience.ends(&tasks[1]);
    cr_assert(patience.overdue(20, 10) == nullptr);
    cr_assert(patience.overdue(21, 10) == &tasks[0]);
    patience.ends(&tasks[2]);
}

// Goal: digests tell contents and lengths apart; null is zeros.
Test(Digest, tells_apart) {
    const char zeros[4] = {};
    cr_assert_eq(digest_of(nullptr, 4), digest_of(zeros, 4));
    cr_assert_neq(digest_of(zeros, 4), digest_of(zeros, 3));
    cr_assert_neq(digest_of("abcd", 4), digest_of("abce", 4));
    cr_assert_neq(digest_of("abcd", 4), digest_of("bacd", 4));
}
