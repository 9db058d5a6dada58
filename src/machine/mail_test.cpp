// Mail sent at once, the ready queue, mailboxes' storage.
#include "machine/mailbox.hpp"
#include "machine/test_machine.hpp"

using namespace mc::machine::test;

// Goal: every result of a send, and its dead letter.
Test(MachineMail, results_and_dead_letters) {
    World world;
    const uint32_t running = world.sink(1), created = world.spawn(0), faulted = world.sink(), stopped = world.sink();
    cr_assert_eq(mc_machine_runtime_mark_faulted(&world.rt, faulted), 1);
    cr_assert(world.stop(stopped));
    struct Row {
        uint32_t dst;
        int result;
        const char *told;
    };
    const Row rows[] = {
        {running, MC_MAILBOX_ENQUEUE_OK, ""},
        {running, MC_MAILBOX_ENQUEUE_FULL, "dead 1 full kind 5"},
        {created, MC_MAILBOX_ENQUEUE_OK, ""},
        {created, MC_MAILBOX_ENQUEUE_FULL, "dead 2 full kind 5"}, // capacity 0 means 1
        {faulted, MC_MAILBOX_ENQUEUE_MACHINE_NOT_RUNNING, "dead 3 faulted kind 5"},
        {stopped, MC_MAILBOX_ENQUEUE_MACHINE_NOT_RUNNING, "dead 4 stopped kind 5"},
        {5, MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN, "dead 5 unknown kind 5"},
        {0, MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN, "dead 0 unknown kind 5"},
    };
    for (const Row &row : rows) {
        cr_assert_eq(world.send(row.dst, 5), row.result);
        expect_told(world, row.told);
    }
    cr_assert_eq(mc_machine_runtime_enqueue(&world.rt, running, nullptr), MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN);
}

// Goal: an envelope arrives as it was sent, in order, each field.
Test(MachineMail, envelopes_arrive_as_they_are) {
    World world;
    std::vector<Envelope> got;
    const uint32_t id = world.machine(
        [&](Call call) {
            got.push_back(call.env);
            return MC_DISPATCH_OK;
        },
        1000);
    std::vector<Envelope> sent;
    for (uint64_t i = 0; i < 1000; ++i) {
        sent.push_back({i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7, i + 8});
        cr_assert_eq(world.send(id, sent.back()), 0);
        if (i % 3 == 0)
            cr_assert_eq(world.step(), MC_STEP_DID_WORK);
    }
    cr_assert_eq(world.run(), 666);
    cr_assert_eq(std::memcmp(got.data(), sent.data(), sent.size() * sizeof(Envelope)), 0);
}

// Goal: first in, first out, one envelope a turn; a machine that sends queues behind those it sent to, and once.
Test(MachineMail, ready_queue_order) {
    World world;
    std::vector<uint32_t> turns;
    uint32_t a = 0, b = 0, c = 0;
    const auto note = [&](Call call) {
        turns.push_back(call.id);
        return MC_DISPATCH_OK;
    };
    a = world.machine([&](Call call) {
        turns.push_back(call.id);
        if (call.env.kind == 1) {
            cr_assert_eq(world.send(a, 3), 0); // at once, to itself
            cr_assert_eq(__mc_machine_emit_send(a, 3, 0, 0), 1);
            cr_assert_eq(__mc_machine_emit_send(c, 3, 0, 0), 1);
            cr_assert_eq(__mc_machine_emit_send(b, 3, 0, 0), 1);
        }
        return MC_DISPATCH_OK;
    });
    b = world.machine(note);
    c = world.machine(note);
    cr_assert_eq(world.send(a, 1), 0);
    cr_assert_eq(world.send(a, 2), 0);
    cr_assert_eq(world.send(b, 2), 0);
    cr_assert_eq(world.ready(), 2);
    cr_assert_eq(world.run(), 7);
    const std::vector<uint32_t> expected = {a, b, c, a, b, a, a};
    cr_assert(turns == expected);
}

// Goal: stale entries count in ready_len, and are skipped without a step.
Test(MachineMail, stale_entries) {
    World world;
    mc_machine_runtime_set_pending_timeout_steps(&world.rt, 1);
    const uint32_t first = world.sink(), second = world.sink(), third = world.sink(), last = world.sink();
    for (const uint32_t id : {first, second, third, last})
        cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(mc_machine_runtime_mark_faulted(&world.rt, first), 1);
    cr_assert(world.stop(second));
    cr_assert(world.stop(first));
    cr_assert(world.stop(third));
    cr_assert_eq(world.ready(), 4);
    const uint32_t late = world.sink();
    cr_assert_eq(world.send(late, 1), 0);
    cr_assert_eq(world.ready(), 5);
    (void)world.ask(last, late, envelope(1));
    cr_assert_eq(world.step(), MC_STEP_DID_WORK); // skips three, and is one step: the request is one step old
    cr_assert_eq(world.ready(), 1);
    cr_assert_eq(world.requests(), 0);
    cr_assert_eq(world.run(), 2);
    cr_assert_eq(world.ready(), 0);
    cr_assert_eq(world.step(), MC_STEP_IDLE);
}

// Goal: likewise when another machine is spawned meanwhile.
Test(MachineMail, spawned_behind_a_stale_entry) {
    World world;
    std::vector<uint32_t> turns;
    const auto note = [&](Call call) {
        turns.push_back(call.id);
        return MC_DISPATCH_OK;
    };
    const uint32_t a = world.machine(note), b = world.machine(note), c = world.machine(note);
    for (const uint32_t id : {a, b, c})
        cr_assert_eq(world.send(id, 1), 0);
    cr_assert(world.stop(b));
    const uint32_t d = world.machine(note);
    cr_assert_eq(world.send(d, 1), 0);
    cr_assert_eq(world.ready(), 4);
    cr_assert_eq(world.run(), 3);
    const std::vector<uint32_t> expected = {a, c, d};
    cr_assert(turns == expected);
}

// Goal: an envelope has its own origin, or none, whatever waits beside it, and whatever was in the mailbox before.
Test(MachineMail, origins_are_their_envelopes) {
    World world;
    mc::base::Prng random(7);
    std::vector<Envelope> expected;
    uint64_t got = 0;
    const uint32_t id = world.machine(
        [&](Call call) {
            cr_assert_eq(std::memcmp(&call.env, &expected[got], sizeof call.env), 0, "envelope %d",
                         static_cast<int>(got));
            if (call.env.kind % 3 == 0) // one more, which the commit writes
                cr_assert_eq(__mc_machine_emit_send(call.id, 1, got, 0), 1);
            ++got;
            return MC_DISPATCH_OK;
        },
        1000);
    auto step = [&] {
        const bool sends = expected[got].kind % 3 == 0;
        const uint64_t payload = got;
        cr_assert_eq(world.step(), MC_STEP_DID_WORK);
        if (sends)
            expected.push_back({1, id, 0, 0, payload, 0, 0, 0, 0});
    };
    for (uint64_t round = 0; round < 2000; ++round) {
        for (uint64_t i = random.below(round % 50 == 0 ? 40 : 5); i != 0; --i) {
            Envelope env = {random.below(9), i, 0, 0, round, 0, 0, 0, 0};
            if (random.below(4) == 0)
                env.origin_payload0 = round + 1;
            if (random.below(8) == 0)
                env.origin_request_site_key = round + 2;
            expected.push_back(env);
            cr_assert_eq(world.send(id, env), 0);
        }
        for (uint64_t i = random.below(8); i != 0 && got != expected.size(); --i)
            step();
    }
    while (got != expected.size())
        step();
    cr_assert_eq(world.step(), MC_STEP_IDLE);
}

// Goal: a mailbox is one block from its first envelope until the stop, however many come.
Test(MachineMail, storage_is_one_block) {
    World world;
    const uint64_t before = live();
    const uint32_t small = world.sink(3), large = world.sink(100000);
    cr_assert_eq(live(), before);
    cr_assert_eq(world.send(small, 1), 0);
    cr_assert_eq(live(), before + 1);
    for (int i = 0; i < 5000; ++i)
        cr_assert_eq(world.send(large, 1), 0);
    cr_assert_eq(live(), before + 2);
    cr_assert_eq(world.run(), 5001);
    cr_assert_eq(live(), before + 2);
    const uint64_t allocs = __mc_alloc_total_allocs();
    for (int i = 0; i < 100; ++i) {
        cr_assert_eq(world.send(small, 1), 0);
        cr_assert_eq(world.run(), 1);
    }
    cr_assert_eq(__mc_alloc_total_allocs(), allocs);
    cr_assert(world.stop(small));
    cr_assert_eq(live(), before + 1);
    mc_machine_runtime_drop(&world.rt);
    cr_assert_eq(live(), before);
}

// Goal: a mailbox that may be as large as can be costs what is in it.
Test(MachineMail, a_bound_is_not_a_size) {
    World world;
    const uint32_t id = world.sink(UINT32_MAX);
    for (int i = 0; i < 100; ++i)
        cr_assert_eq(world.send(id, 1), 0);
    cr_assert_eq(world.mail(id), 100);
    cr_assert_eq(world.run(), 100);
}

// Goal: what is put back at the head lies where it lay, so that its request finds it there: also when the mailbox was empty, or
// has grown meanwhile, and whether it has an origin or not.
Test(MachineMail, put_back_where_it_lay) {
    for (int shape = 0; shape < 8; ++shape) {
        const bool more = (shape & 1) != 0, grows = (shape & 2) != 0, origin = (shape & 4) != 0;
        mc::machine::Mailbox mail(100);
        cr_assert(mail.reserve(3));
        const Envelope plain{1, 2, 3, 4, 5, 6, 0, 0, 0}, reply{1, 2, 3, 4, 5, 6, 7, 8, 9};
        const Envelope &sent = origin ? reply : plain, &other = origin ? plain : reply;
        Envelope got;
        (void)mail.push(other);
        (void)mail.pop(&got);
        const uint64_t position = mail.push(sent);
        if (more)
            (void)mail.push(other);
        cr_assert_eq(mail.pop(&got), position);
        cr_assert_null(mail.waiting(position));
        cr_assert(!grows || mail.reserve(20));
        mail.unpop(got, position);
        cr_assert_not_null(mail.waiting(position), "shape %d", shape);
        cr_assert_eq(mail.waiting(position)->payload0, 5);
        const Envelope *const expected[] = {&sent, &other};
        for (int i = 0; i < 1 + more; ++i) {
            (void)mail.pop(&got);
            cr_assert_eq(std::memcmp(&got, expected[i], sizeof got), 0, "shape %d, the envelope %d", shape, i);
        }
        cr_assert(mail.empty());
    }
}
