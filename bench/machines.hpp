// The rows about machines that libmcrt and its peer do alike: each has an Api with the same names.
//
//   Api::Runtime            made and ended with its object
//   Api::Handler, Envelope, Txn, kOk
//   runtime.spawn(mailbox_cap) -> id, running; bind(id, handler, ctx), bind_rows(id, rows), register_thunk(id, handler, tag)
//   runtime.send(dst, kind, payload), request(src, dst, kind, payload) -> pending id, step() -> whether a dispatch committed
//   runtime.attach(), to executors, where there are any; run(), until nothing is ready
//   Api::emit_send(dst, kind, payload), emit_request(dst, kind, payload, site), emit_reply(cap, kind, payload)
#ifndef BENCH_MACHINES_HPP
#define BENCH_MACHINES_HPP

#include "harness.hpp"

#include <array>

namespace bench {

// A row of a descriptor: state, kind, and the thunk.
struct MachineRow {
    uint64_t state, kind, thunk;
};

template <class Api> struct Machines {
    using Runtime = typename Api::Runtime;
    using Envelope = typename Api::Envelope;
    using Txn = typename Api::Txn;
    using Result = typename Api::Result;

    static constexpr uint32_t kMailbox = 16;
    enum Kind : uint64_t { kPing = 1, kAsk = 2, kAnswer = 3 };
    static constexpr uint64_t kSite = 77;

    static void step(Runtime &runtime, uint64_t steps) {
        for (uint64_t i = 0; i < steps; ++i)
            require(runtime.step(), "a step");
    }

    // --- machine_step: two machines pass an envelope to and fro; each counts in its state ---

    static Result pass_on(void *ctx, uint32_t, uint64_t state, const Envelope *env, Txn *txn, uint64_t *) {
        txn->has_next_state = 1;
        txn->next_state = state + 1;
        require(Api::emit_send(*static_cast<const uint64_t *>(ctx), kPing, env->payload0 + 1) != 0, "emit_send");
        return Api::kOk;
    }

    static double machine_step(uint64_t iterations) {
        Runtime runtime;
        uint64_t one = runtime.spawn(kMailbox), other = runtime.spawn(kMailbox);
        runtime.bind(one, pass_on, &other);
        runtime.bind(other, pass_on, &one);
        runtime.send(one, kPing, 0);
        const double ns = time_per_operation(iterations, [&](uint64_t n) { step(runtime, n); });
        require(runtime.state(one) + runtime.state(other) == iterations + kWarmUp, "counting the steps");
        return ns;
    }

    // --- machine_ask: one asks, the other answers, and the first asks again ---

    struct Asker {
        uint64_t server;
        uint64_t answers;
    };

    static Result ask_again(void *ctx, uint32_t, uint64_t, const Envelope *, Txn *, uint64_t *) {
        Asker &asker = *static_cast<Asker *>(ctx);
        ++asker.answers;
        require(Api::emit_request(asker.server, kAsk, asker.answers, kSite) != 0, "emit_request");
        return Api::kOk;
    }

    static Result answer(void *, uint32_t, uint64_t, const Envelope *env, Txn *, uint64_t *) {
        require(Api::emit_reply(env->reply_cap_id, kAnswer, env->payload0 + 1) != 0, "emit_reply");
        return Api::kOk;
    }

    // Nanoseconds a request and its reply, two steps, while others are pending.
    static double ask(uint64_t iterations, uint64_t others) {
        Runtime runtime;
        const uint64_t asker_id = runtime.spawn(kMailbox), server = runtime.spawn(kMailbox);
        Asker asker{server, 0};
        runtime.bind(asker_id, ask_again, &asker);
        runtime.bind(server, answer, nullptr);
        // Who takes them answers none.
        const uint64_t silent = runtime.spawn(1);
        runtime.bind(
            silent, [](auto...) { return Api::kOk; }, nullptr);
        for (uint64_t i = 0; i < others; ++i) {
            require(runtime.request(asker_id, silent, kAsk, i) != 0, "a request");
            step(runtime, 1);
        }
        runtime.send(asker_id, kPing, 0);
        step(runtime, 1);
        const double ns = time_per_operation(iterations, [&](uint64_t n) { step(runtime, 2 * n); });
        require(asker.answers == iterations + kWarmUp + 1, "counting the answers");
        return ns;
    }

    // --- machine_parallel: ten thousand pairs that do what the two of machine_step do, each until its share is done ---

    static constexpr uint64_t kPairs = 10000;

    static Result pass_down(void *ctx, uint32_t, uint64_t state, const Envelope *env, Txn *txn, uint64_t *) {
        txn->has_next_state = 1;
        txn->next_state = state + 1;
        if (env->payload0 != 0)
            require(Api::emit_send(*static_cast<const uint64_t *>(ctx), kPing, env->payload0 - 1) != 0, "emit_send");
        return Api::kOk;
    }

    // Nanoseconds a dispatch. The pairs begin together: a send from outside and a dispatch each, beside the n that count.
    static double parallel(Runtime &runtime, uint64_t iterations) {
        std::vector<uint64_t> ids(2 * kPairs);
        for (uint64_t &id : ids)
            id = runtime.spawn(kMailbox);
        for (uint64_t i = 0; i < ids.size(); ++i)
            runtime.bind(ids[i], pass_down, &ids[i ^ 1]);
        auto pass = [&](uint64_t n) {
            for (uint64_t pair = 0; pair < kPairs; ++pair)
                runtime.send(ids[2 * pair], kPing, n / kPairs + (pair < n % kPairs));
            runtime.run();
        };
        runtime.attach();
        pass(kPairs); // each has its mailbox
        const double ns = time_per_operation(iterations, pass);
        uint64_t dispatches = 0;
        for (uint64_t id : ids)
            dispatches += runtime.state(id);
        require(dispatches == iterations + kWarmUp + 4 * kPairs, "counting the dispatches");
        return ns;
    }

    // --- descriptor_lookup: a machine goes round ten states, in a descriptor of states x kinds rows ---

    static constexpr uint64_t kStops = 10;

    static Result go_on(void *, uint32_t id, uint64_t state, const Envelope *env, Txn *txn, uint64_t *) {
        txn->has_next_state = 1; // its tag is the thunk's
        txn->next_state = state + 1;
        require(Api::emit_send(id, env->kind, 0) != 0, "emit_send");
        return Api::kOk;
    }

    // The states of the round are evenly spread, and so are the rows that it meets.
    static double lookup(uint64_t iterations, uint64_t states, uint64_t kinds) {
        Runtime runtime;
        const uint64_t kind = kinds / 2 + 1, stride = states / kStops;
        std::vector<MachineRow> rows;
        for (uint64_t state = 1; state <= states; ++state)
            for (uint64_t each = 1; each <= kinds; ++each)
                rows.push_back({state, each, state % stride == 0 ? state / stride : kStops + 1});
        for (uint64_t stop = 1; stop <= kStops; ++stop)
            runtime.register_thunk(stop, go_on, stop % kStops * stride + stride);
        const uint64_t machine = runtime.spawn(kMailbox);
        runtime.bind_rows(machine, rows, states, kinds, stride);
        runtime.send(machine, kind, 0);
        const double ns = time_per_operation(iterations, [&](uint64_t n) { step(runtime, n); });
        require(runtime.state(machine) == iterations + kWarmUp, "counting the steps");
        return ns;
    }

    // --- machine_memory ---

    [[noreturn]] static void memory(uint64_t count) {
        Runtime runtime;
        uint64_t last = 0;
        const Memory before = memory_now();
        const double ns = time_once([&] {
            for (uint64_t i = 0; i < count; ++i)
                runtime.bind(last = runtime.spawn(kMailbox), answer, nullptr);
        });
        require(last == count, "making all machines");
        report_memory(before, memory_now(), ns, count);
    }
};

} // namespace bench

#endif // BENCH_MACHINES_HPP
