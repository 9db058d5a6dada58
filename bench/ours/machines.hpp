// Machines by the u64 bridge, as compiled code uses them; ../machines.hpp has the rows.
#ifndef BENCH_OURS_MACHINES_HPP
#define BENCH_OURS_MACHINES_HPP

#include "../machines.hpp"
#include "common.hpp"

namespace ours {

struct MachineApi {
    using Envelope = mc_machine_envelope_t;
    using Txn = mc_machine_dispatch_txn_t;
    using Result = mc_dispatch_result_t;
    using Handler = mc_machine_dispatch_txn_fn;
    static constexpr Result kOk = MC_DISPATCH_OK;

    static bool emit_send(uint64_t dst, uint64_t kind, uint64_t payload) {
        return __mc_machine_emit_send(dst, kind, payload, 0) != 0;
    }
    static uint64_t emit_request(uint64_t dst, uint64_t kind, uint64_t payload, uint64_t site) {
        return __mc_machine_emit_request(dst, kind, payload, 0, site);
    }
    static bool emit_reply(uint64_t cap, uint64_t kind, uint64_t payload) {
        return __mc_machine_emit_reply(cap, kind, payload, 0) != 0;
    }

    class Runtime {
    public:
        Runtime() { bench::require(rt_ != 0, "__mc_machine_runtime_new"); }
        ~Runtime() { __mc_machine_runtime_free(rt_); }
        Runtime(const Runtime &) = delete;
        Runtime &operator=(const Runtime &) = delete;

        uint64_t spawn(uint64_t mailbox_cap) {
            const uint64_t id = __mc_machine_runtime_spawn_u64(rt_, mailbox_cap);
            bench::require(id != 0 && __mc_machine_runtime_start_u64(rt_, id) == 1, "starting a machine");
            return id;
        }
        void bind(uint64_t id, Handler handler, void *ctx) {
            const auto word = reinterpret_cast<uint64_t>(handler), context = reinterpret_cast<uint64_t>(ctx);
            bench::require(__mc_machine_runtime_bind_dispatch_u64(rt_, id, word, context) == 1, "bind_dispatch");
        }
        void register_thunk(uint64_t thunk, Handler handler, uint64_t next_tag) {
            __mc_machine_runtime_register_thunk_meta_u64(thunk, reinterpret_cast<uint64_t>(handler), next_tag);
        }
        void bind_rows(uint64_t id, const std::vector<bench::MachineRow> &rows, uint64_t states, uint64_t kinds,
                       uint64_t initial_tag) {
            const std::vector<uint8_t> blob = descriptor(rows, states, kinds);
            const uint64_t descriptor_id =
                __mc_machine_runtime_register_descriptor_u64(reinterpret_cast<uint64_t>(blob.data()), blob.size());
            bench::require(descriptor_id != 0, "register_descriptor");
            bench::require(__mc_machine_runtime_bind_descriptor_u64(rt_, id, descriptor_id, initial_tag) == 1,
                           "bind_descriptor");
        }
        uint64_t state(uint64_t id) const {
            return __mc_machine_runtime_state(reinterpret_cast<const mc_machine_runtime_t *>(rt_),
                                              static_cast<mc_machine_id_t>(id));
        }
        void send(uint64_t dst, uint64_t kind, uint64_t payload) {
            bench::require(__mc_machine_runtime_send_u64(rt_, dst, kind, payload, 0) == MC_MAILBOX_ENQUEUE_OK, "send");
        }
        uint64_t request(uint64_t src, uint64_t dst, uint64_t kind, uint64_t payload) {
            return __mc_machine_runtime_request_u64(rt_, src, dst, kind, payload, 0);
        }
        // To the executors that there are: else to the main thread's own, in single-processor mode.
        void attach() { bench::require(mc_machine_attach_u64(rt_, 0) == MC_OK, "mc_machine_attach"); }
        void run() {
            bench::require(mc_machine_run_until_idle_u64(rt_, MC_FOREVER) == MC_OK, "mc_machine_run_until_idle");
        }
        bool step() { return __mc_machine_runtime_step_u64(rt_) == MC_STEP_DID_WORK; }

    private:
        static void put(std::vector<uint8_t> &blob, uint64_t value, int bytes) {
            for (int i = 0; i < bytes; ++i)
                blob.push_back(static_cast<uint8_t>(value >> (8 * i)));
        }
        static std::vector<uint8_t> descriptor(const std::vector<bench::MachineRow> &rows, uint64_t states,
                                               uint64_t kinds) {
            std::vector<uint8_t> blob{'M', 'C', 'H', 'D'};
            for (uint64_t word : {uint64_t{1}, uint64_t{0}, states, kinds, uint64_t{rows.size()}, uint64_t{0}})
                put(blob, word, 4); // schema, an empty name, the counts
            for (uint64_t tag = 1; tag <= states; ++tag) {
                for (uint64_t word : {tag, uint64_t{0}, uint64_t{0}})
                    put(blob, word, 8);
                put(blob, 0, 4);
            }
            for (uint64_t kind = 1; kind <= kinds; ++kind) {
                for (uint64_t word : {kind, uint64_t{0}})
                    put(blob, word, 8);
                put(blob, 0, 1);
                put(blob, 0, 4);
            }
            for (const bench::MachineRow &row : rows)
                for (uint64_t word : {row.state, row.kind, uint64_t{0}, row.thunk, uint64_t{0}})
                    put(blob, word, 8);
            return blob;
        }

        uint64_t rt_ = __mc_machine_runtime_new();
    };
};

using MachineRows = bench::Machines<MachineApi>;

inline double machine_step(uint64_t iterations) { return MachineRows::machine_step(iterations); }
inline double machine_ask(uint64_t iterations) { return MachineRows::ask(iterations, 0); }

// How much more than with ten others is beside the figure.
inline double pending_lookup(uint64_t iterations) {
    bench::further("ten", MachineRows::ask(iterations, 10));
    return MachineRows::ask(iterations, 1000000);
}
inline double descriptor_lookup(uint64_t iterations) {
    bench::further("ten", MachineRows::lookup(iterations, 10, 1));
    return MachineRows::lookup(iterations, 100, 100);
}

// --- attached ------------------------------------------------------------------------------------------------------

inline double parallel_on_all(uint64_t iterations) {
    MachineApi::Runtime runtime;
    return MachineRows::parallel(runtime, iterations);
}

// On several, what it takes on one stands beside it; measured first, since the main thread has its own executor until
// there are others.
inline double machine_parallel(uint64_t iterations, uint64_t executors) {
    const double one = parallel_on_all(iterations);
    if (executors == 1)
        return one;
    bench::further("one", one);
    Executors runtime(executors);
    return parallel_on_all(iterations);
}

// As machine_ask, by an executor. Nanoseconds a request and its reply.
struct AttachedAsker {
    uint64_t server;
    uint64_t left;
    uint64_t sum;
};

inline mc_dispatch_result_t ask_while_left(void *ctx, uint32_t, uint64_t, const mc_machine_envelope_t *env,
                                           mc_machine_dispatch_txn_t *, uint64_t *) {
    AttachedAsker &asker = *static_cast<AttachedAsker *>(ctx);
    asker.sum += env->payload0;
    if (asker.left != 0)
        bench::require(MachineApi::emit_request(asker.server, MachineRows::kAsk, asker.left--, MachineRows::kSite) != 0,
                       "emit_request");
    return MC_DISPATCH_OK;
}

inline double machine_ask_attached(uint64_t iterations) {
    MachineApi::Runtime runtime;
    const uint64_t asker_id = runtime.spawn(MachineRows::kMailbox), server = runtime.spawn(MachineRows::kMailbox);
    AttachedAsker asker{server, 0, 0};
    runtime.bind(asker_id, ask_while_left, &asker);
    runtime.bind(server, MachineRows::answer, nullptr);
    runtime.attach();
    return bench::time_per_operation(iterations, [&](uint64_t n) {
        asker.left = n;
        asker.sum = 0;
        runtime.send(asker_id, MachineRows::kPing, 0);
        runtime.run();
        bench::require(asker.sum == n * (n + 1) / 2 + n, "the sum of the answers");
    });
}

inline double machine_memory(uint64_t count) { MachineRows::memory(count); }

} // namespace ours

#endif // BENCH_OURS_MACHINES_HPP
