// The rows about machines that are stepped, by machines in plain C (plain_machines/): the job without libmcrt.
//
// Nobody else has machines like these, so the peer is what one would write for the purpose, for one thread, with arrays
// that are searched from their beginning. ../machines.hpp has the rows, the same for both.
//
// Checked: effects are staged in an array that is kept (allocated and freed with each step, a step takes half as long
// again); runtimes are pointers that are trusted. pending_lookup is left out: with a million requests pending, one more takes
// milliseconds; `thousand` beside machine_ask is with a thousand.
#include "plain_machines/machines.h"

#include "../machines.hpp"

namespace {

struct PlainApi {
    using Envelope = pm_envelope;
    using Txn = pm_txn;
    using Result = pm_result;
    using Handler = pm_dispatch_fn;
    static constexpr Result kOk = PM_OK;

    static bool emit_send(uint64_t dst, uint64_t kind, uint64_t payload) { return pm_emit_send(dst, kind, payload, 0); }
    static uint64_t emit_request(uint64_t dst, uint64_t kind, uint64_t payload, uint64_t site) {
        return pm_emit_request(dst, kind, payload, 0, site);
    }
    static bool emit_reply(uint64_t cap, uint64_t kind, uint64_t payload) {
        return pm_emit_reply(cap, kind, payload, 0);
    }

    class Runtime {
    public:
        Runtime() { bench::require(rt_ != nullptr, "pm_new"); }
        ~Runtime() { pm_free(rt_); }
        Runtime(const Runtime &) = delete;
        Runtime &operator=(const Runtime &) = delete;

        uint64_t spawn(uint32_t mailbox_cap) {
            const uint32_t id = pm_spawn(rt_, mailbox_cap);
            bench::require(id != 0, "pm_spawn");
            return id;
        }
        void bind(uint64_t id, Handler handler, void *ctx) { pm_bind(rt_, static_cast<uint32_t>(id), handler, ctx); }
        void register_thunk(uint64_t thunk, Handler handler, uint64_t next_tag) {
            bench::require(pm_register_thunk(rt_, thunk, handler, next_tag), "pm_register_thunk");
        }
        void bind_rows(uint64_t id, const std::vector<bench::MachineRow> &rows, uint64_t, uint64_t,
                       uint64_t initial_tag) {
            for (const bench::MachineRow &row : rows)
                rows_.push_back({row.state, row.kind, 0, row.thunk, 0});
            pm_bind_rows(rt_, static_cast<uint32_t>(id), rows_.data(), rows_.size(), initial_tag);
        }
        uint64_t state(uint64_t id) const { return pm_state(rt_, static_cast<uint32_t>(id)); }
        void send(uint64_t dst, uint64_t kind, uint64_t payload) {
            bench::require(pm_send(rt_, static_cast<uint32_t>(dst), kind, payload, 0), "pm_send");
        }
        uint64_t request(uint64_t src, uint64_t dst, uint64_t kind, uint64_t payload) {
            return pm_request(rt_, static_cast<uint32_t>(src), static_cast<uint32_t>(dst), kind, payload, 0);
        }
        bool step() { return pm_step(rt_); }
        void attach() {}
        void run() {
            while (step()) {
            }
        }

    private:
        pm_runtime *rt_ = pm_new();
        std::vector<pm_row> rows_;
    };
};

using Rows = bench::Machines<PlainApi>;

double machine_step(uint64_t iterations) { return Rows::machine_step(iterations); }

double machine_ask(uint64_t iterations) {
    bench::further("thousand", Rows::ask(iterations, 1000));
    return Rows::ask(iterations, 0);
}

double descriptor_lookup(uint64_t iterations) {
    bench::further("ten", Rows::lookup(iterations, 10, 1));
    return Rows::lookup(iterations, 100, 100);
}

double machine_parallel(uint64_t iterations) {
    PlainApi::Runtime runtime;
    return Rows::parallel(runtime, iterations);
}

double machine_memory(uint64_t count) { Rows::memory(count); }

constexpr bench::Row kRows[] = {{"machine_step", machine_step},
                                {"machine_ask", machine_ask},
                                {"machine_parallel", machine_parallel},
                                {"descriptor_lookup", descriptor_lookup},
                                {"machine_memory", machine_memory}};

} // namespace

int main(int argc, char **argv) {
    return bench::run_program({"plain C", "tables", kRows, sizeof kRows / sizeof kRows[0]}, argc, argv);
}
