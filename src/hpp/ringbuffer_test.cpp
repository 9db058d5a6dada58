// The ring buffer, against std::deque.
#include "base/prng.hpp"
#include "hpp/test_hpp.hpp"

#include <deque>
#include <numeric>

using namespace mc::hpp::testing;
template <class T> using Ring = csp::detail::RingBuffer<T>;

// Goal: whatever is done, in whatever order, it holds what a deque would.
Test(HppRingBuffer, is_a_queue) {
    for (const size_t capacity : {size_t{0}, size_t{1}, size_t{3}, size_t{8}, Ring<int>::npos}) {
        mc::base::Prng random(capacity);
        Ring<std::string> ring(capacity);
        std::deque<std::string> model;
        for (int i = 0; i < 2000; ++i) {
            const std::string value = std::to_string(random.below(9)) + " and so on and so on";
            switch (random.below(6)) {
            case 0:
            case 1:
            case 2:
                if (model.size() < capacity) {
                    ring.push(value);
                    model.push_back(value);
                } else {
                    expect_text(thrown<std::length_error>([&] { ring.push(value); }), "ring buffer is full");
                }
                break;
            case 3:
                if (!model.empty()) {
                    ring.pop();
                    model.pop_front();
                }
                break;
            case 4: {
                const auto at = std::find(model.begin(), model.end(), value);
                cr_assert_eq(ring.remove(value), at != model.end());
                if (at == model.begin() && !model.empty()) {
                    model.pop_front();
                } else if (at != model.end()) {
                    *at = model.back();
                    model.pop_back();
                }
                break;
            }
            default:
                if (random.below(50) == 0) {
                    ring.clear();
                    model.clear();
                }
                break;
            }
            cr_assert_eq(ring.count(), model.size());
            cr_assert_eq(ring.empty(), model.empty());
            cr_assert_eq(ring.full(), model.size() == capacity);
            cr_assert(std::equal(ring.begin(), ring.end(), model.begin(), model.end()));
            if (!model.empty())
                cr_assert(ring.front() == model.front());
        }
    }
}

// Goal: moving takes the elements along; iterators go anywhere.
Test(HppRingBuffer, moves_and_iterates) {
    {
        Ring<NoDefault> ring;
        for (int i = 0; i < 20; ++i)
            ring.emplace(i);
        ::new (ring.next()) NoDefault(20);
        ring.push();
        Ring<NoDefault> other(std::move(ring));
        cr_assert(ring.empty()); // NOLINT(bugprone-use-after-move)
        ring.emplace(4);
        cr_assert_eq(ring.front().value, 4);
        ring = std::move(other);
        cr_assert_eq(ring.count(), 21U);
        auto at = ring.begin();
        cr_assert_eq((at + 5)->value, 5);
        cr_assert_eq(at[20].value, 20);
        cr_assert_eq(ring.end() - at, 21);
        cr_assert(at < ring.end());
        at += 3;
        cr_assert_eq((at--)->value, 3);
        cr_assert_eq((at++)->value, 2);
        cr_assert_eq((*--at).value, 2);
    }
    cr_assert_eq(alive.load(mc::sync::relaxed), 0);
}

// Goal: an element that throws as the buffer grows leaves it whole.
Test(HppRingBuffer, survives_what_throws) {
    {
        Ring<Throwing> ring;
        for (int i = 0; i < 4; ++i)
            ring.emplace(i);
        Throwing::arm(3);
        expect_text(thrown<Boom>([&] { (void)ring.next(); }), "moving");
        cr_assert_eq(ring.count(), 4U);
        for (int i = 0; i < 4; ++i)
            cr_assert_eq(ring[static_cast<size_t>(i)].value, i);
        ring.emplace(4);
        cr_assert_eq(ring.count(), 5U);
    }
    cr_assert_eq(alive.load(mc::sync::relaxed), 0);
}
