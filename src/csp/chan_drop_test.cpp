// What becomes of elements that were accepted and will not be received: drop is called once for each, with its bytes,
// on the stack of the call that discards it, with no lock held.
#include "csp/test_csp.hpp"

#include <cstring>
#include <map>

using namespace mc::csp::testing;

namespace {

int some_user;

// How often each element was dropped. Elements are ids; the rest of their bytes repeats the id.
std::map<uint64_t, int> dropped;
void drop(void *user, void *elem, uint64_t size) {
    cr_assert_eq(user, static_cast<void *>(&some_user));
    uint64_t id = 0;
    std::memcpy(&id, elem, sizeof id);
    for (uint64_t at = 0; at < size; at += sizeof id)
        cr_assert_eq(std::memcmp(static_cast<char *>(elem) + at, &id, sizeof id), 0);
    ++dropped[id];
}
int times_dropped(uint64_t id) { return dropped.count(id) == 0 ? 0 : dropped[id]; }

constexpr uint32_t words = 3;
struct Element {
    uint64_t word[words];
    explicit Element(uint64_t id) : word{id, id, id} {}
};

struct Elements {
    mc_chan_t chan = 0;
    csp_writer w = nullptr;
    csp_reader r = nullptr;
    explicit Elements(uint32_t capacity) {
        cr_assert_eq(mc_chan_create(0, sizeof(Element), capacity, drop, &some_user, &chan), MC_OK);
        cr_assert_eq(mc_chan_writer(chan, &w), MC_OK);
        cr_assert_eq(mc_chan_reader(chan, &r), MC_OK);
    }
    ~Elements() {
        csp_writer_release(w);
        csp_reader_release(r);
        (void)mc_chan_destroy(chan);
    }
    int32_t send(uint64_t id) const {
        const Element element(id);
        return mc_send_try(chan, &element);
    }
};

} // namespace

// Goal: a destruction drops what is buffered, in order, each once; what was received or never accepted it does not.
Test(Drop, destroy_drops_what_is_buffered) {
    World world;
    Elements elements(4);
    Element in(0);
    for (uint64_t id = 1; id <= 4; ++id)
        cr_assert_eq(elements.send(id), MC_OK);
    cr_assert_eq(elements.send(5), MC_E_AGAIN);
    cr_assert_eq(mc_recv(elements.chan, &in), MC_OK);
    spawn([&] {
        cr_assert_eq(elements.send(6), MC_OK); // fills the buffer
        const Element waiting(7);
        cr_assert_eq(mc_send(elements.chan, &waiting), MC_E_STALE);
    });
    cr_assert_eq(mc_chan_destroy(elements.chan), MC_OK);
    csp_schedule();
    for (uint64_t id = 1; id <= 7; ++id)
        cr_assert_eq(times_dropped(id), id == 1 || id == 5 || id == 7 ? 0 : 1, "element %u", unsigned(id));
}

// Goal: a close drops nothing; what is not received after it goes with the destruction.
Test(Drop, close_drops_nothing) {
    World world;
    Elements elements(4);
    Element in(0);
    for (uint64_t id = 1; id <= 3; ++id)
        cr_assert_eq(elements.send(id), MC_OK);
    cr_assert_eq(mc_chan_close(elements.chan), MC_OK);
    cr_assert(dropped.empty());
    cr_assert_eq(mc_recv(elements.chan, &in), MC_OK);
    cr_assert_eq(mc_chan_destroy(elements.chan), MC_OK);
    cr_assert_eq(times_dropped(1), 0);
    cr_assert_eq(times_dropped(2), 1);
    cr_assert_eq(times_dropped(3), 1);
}

// Goal: destruction drops at once, though endpoints are still held; their release drops nothing again.
Test(Drop, destroy_drops_though_endpoints_are_held) {
    World world;
    {
        Elements elements(2);
        cr_assert_eq(elements.send(1), MC_OK);
        cr_assert_eq(mc_chan_destroy(elements.chan), MC_OK);
        cr_assert_eq(times_dropped(1), 1);
        Element out(2);
        cr_assert_eq(csp_send(elements.w, &out), -1);
        cr_assert_eq(csp_recv(elements.r, &out), -1);
    }
    cr_assert_eq(times_dropped(1), 1);
    cr_assert_eq(times_dropped(2), 0);
}

// Goal: a receive with NULL discards one element, dropping it, from the buffer, from a waiting sender, and waiting
// itself.
Test(Drop, receive_with_null_discards) {
    World world;
    for (uint32_t capacity : {0u, 2u}) {
        dropped.clear();
        Elements elements(capacity);
        if (capacity != 0) {
            cr_assert_eq(elements.send(1), MC_OK);
            cr_assert_eq(mc_recv(elements.chan, nullptr), MC_OK);
            cr_assert_eq(times_dropped(1), 1);
        }
        spawn([&] {
            const Element element(2);
            cr_assert_eq(mc_send(elements.chan, &element), MC_OK);
        });
        cr_assert_eq(mc_recv_try(elements.chan, nullptr), MC_OK);
        cr_assert_eq(times_dropped(2), 1);
        spawn([&] {
            cr_assert_eq(mc_recv(elements.chan, nullptr), MC_OK); // waits
            cr_assert_eq(times_dropped(3), 1);
        });
        cr_assert_eq(elements.send(3), MC_OK);
        csp_schedule();
        cr_assert_eq(mc_recv_try(elements.chan, nullptr), MC_E_AGAIN);
        cr_assert_eq(mc_recv_until(elements.chan, nullptr, mc_after(MC_MS)), MC_E_TIMEDOUT);
        cr_assert_eq(dropped.size(), capacity == 0 ? 2u : 3u);
    }
}

// Goal: the same through csp endpoints: csp_recv and the arms of an alt, one of many, ready and waiting.
Test(Drop, csp_receive_with_null_discards) {
    World world;
    for (uint32_t capacity : {0u, 1u}) {
        dropped.clear();
        Elements elements(capacity), other(capacity);
        Chan idle;
        const csp_chanop ops[] = {receives(idle.r), receives(other.r), disabled(), receives(elements.r)};
        const auto sender = [&](uint64_t id) {
            return [&elements, id] {
                const Element element(id);
                cr_assert_eq(mc_send(elements.chan, &element), MC_OK);
            };
        };
        spawn(sender(1));
        cr_assert_eq(csp_recv(elements.r, nullptr), 1);
        spawn(sender(2));
        cr_assert_eq(prialt(ops), 4);
        spawn(sender(3));
        cr_assert_eq(alt(ops, 1), 4);
        spawn_at_tail(sender(4));
        cr_assert_eq(alt(ops), 4); // waits
        cr_assert_eq(csp_prialt_until(ops, 4, mc_after(MC_MS)), MC_E_TIMEDOUT);
        for (uint64_t id = 1; id <= 4; ++id)
            cr_assert_eq(times_dropped(id), 1, "element %u", unsigned(id));
        cr_assert_eq(dropped.size(), 4u);
    }
}

// Goal: NULL sent through a csp endpoint is an element of zeros.
Test(Drop, null_sends_zeros) {
    World world;
    for (uint32_t capacity : {0u, 1u}) {
        Elements elements(capacity);
        spawn([&] { cr_assert_eq(csp_send(elements.w, nullptr), 1); });
        Element in(7);
        cr_assert_eq(mc_recv(elements.chan, &in), MC_OK);
        cr_assert(in.word[0] == 0 && in.word[1] == 0 && in.word[2] == 0);
        spawn([&] {
            Element late(7);
            cr_assert_eq(mc_recv(elements.chan, &late), MC_OK);
            cr_assert(late.word[0] == 0 && late.word[2] == 0);
        });
        const csp_chanop ops[] = {sends(elements.w)};
        cr_assert_eq(alt(ops), 1);
        csp_schedule();
    }
    cr_assert(dropped.empty());
}

// Goal: drop may use the library, blocking calls and the channel's own handle included: it runs with no lock held.
Test(Drop, drop_may_use_the_library) {
    World world;
    static Chan *other;
    static mc_chan_t chan;
    Chan wakes;
    other = &wakes;
    const auto uses = [](void *, void *elem, uint64_t) {
        int value = *static_cast<int *>(elem);
        cr_assert_eq(mc_send_try(chan, &value), MC_E_STALE);
        cr_assert_eq(csp_send(other->w, &value), 1);
        mark("dropped");
    };
    cr_assert_eq(mc_chan_create(0, sizeof(int), 2, uses, nullptr, &chan), MC_OK);
    for (int i : {1, 2})
        cr_assert_eq(mc_send(chan, &i), MC_OK);
    spawn_at_tail([&] {
        cr_assert_eq(wakes.receive(), 1);
        csp_yield();
        cr_assert_eq(wakes.receive(), 2);
    });
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
    expect_trace("dropped dropped ");
    csp_schedule();
}

// Goal: those whom a destruction wakes are woken though drop waits for one of them.
Test(Drop, drop_may_wait_for_who_is_woken) {
    World world;
    static Chan *answers;
    Chan chan;
    answers = &chan;
    mc_chan_t elements = 0;
    const auto waits = [](void *, void *, uint64_t) {
        int value = 0;
        cr_assert_eq(csp_recv_until(answers->r, &value, mc_after(2 * MC_SEC)), 1);
    };
    cr_assert_eq(mc_chan_create(0, sizeof(int), 1, waits, nullptr, &elements), MC_OK);
    int one = 1;
    cr_assert_eq(mc_send(elements, &one), MC_OK);
    spawn([&] {
        cr_assert_eq(mc_send(elements, &one), MC_E_STALE); // waits for space
        cr_assert_eq(chan.send(1), 1);
    });
    cr_assert_eq(mc_chan_destroy(elements), MC_OK);
    csp_schedule();
}

// Goal: an exception that leaves drop is logged; the other elements are dropped all the same.
Test(Drop, an_exception_is_logged) {
    World world;
    mc_chan_t chan = 0;
    static int calls = 0;
    const auto throws = [](void *, void *, uint64_t) {
        ++calls;
        throw 1;
    };
    cr_assert_eq(mc_chan_create(0, 0, 4, throws, nullptr, &chan), MC_OK);
    for (int i = 0; i < 4; ++i)
        cr_assert_eq(mc_send(chan, nullptr), MC_OK);
    cr_assert_eq(mc_recv(chan, nullptr), MC_OK); // size 0: NULL is how one receives it
    cr_assert_eq(mc_chan_destroy(chan), MC_OK);
    cr_assert_eq(calls, 3);
    cr_assert_eq(world.log.count(MC_E_CRASHED), 3);
    world.expected_lines = 3;
}
