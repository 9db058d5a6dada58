// mc/machine.h: runtimes on executors.
#include <mc/machine.h>

#include "abi/runtimes.hpp"
#include "compose/machine_host.hpp"
#include "compose/token.hpp"
#include "machine/engine.hpp"

namespace {

using mc::abi::word_of;
using mc::compose::MachineHost;
using mc::compose::Token;
using mc::machine::Runtime;
using Engine = MachineHost::Engine;

MachineHost &host_of(const Runtime &runtime) noexcept { return static_cast<MachineHost &>(*runtime.host()); }

// act(engine): of a runtime that is stepped.
template <class Act> int32_t choose(uint64_t word, Act act) noexcept {
    const Runtime runtime = mc::machine::find_runtime(word);
    if (!runtime)
        return MC_E_STALE;
    if (runtime.is_attached())
        return MC_E_BUSY;
    act(*runtime.engine());
    return MC_OK;
}

int32_t step_until_idle(uint64_t word, int64_t deadline_ns) noexcept {
    void **slot = mc::abi::emit_slot();
    if (slot == nullptr)
        return MC_E_NOMEM;
    const bool limited = deadline_ns != MC_FOREVER;
    for (;;) {
        const Runtime runtime = mc::machine::find_runtime(word); // a handler may drop it, or attach it
        if (!runtime)
            return MC_E_STALE;
        if (runtime.is_attached())
            return mc_machine_run_until_idle_u64(word, deadline_ns);
        if (runtime.engine()->is_busy())
            return MC_E_CONTEXT;
        if (limited && deadline_ns != MC_NOW && mc::sync::now_ns() >= deadline_ns && !runtime.engine()->nothing_ready())
            return MC_E_TIMEDOUT;
        if (deadline_ns == MC_NOW)
            return runtime.engine()->nothing_ready() ? MC_OK : MC_E_TIMEDOUT;
        if (runtime.engine()->step(nullptr, nullptr, slot) == MC_STEP_IDLE && runtime.engine()->nothing_ready())
            return MC_OK;
    }
}

// act(host, engine): of a runtime that is attached.
template <class Act> int32_t with_host(uint64_t word, Act act) noexcept {
    const Runtime runtime = mc::machine::find_runtime(word);
    if (!runtime)
        return MC_E_STALE;
    if (!runtime.is_attached())
        return MC_E_NOTSUP;
    MachineHost &host = host_of(runtime);
    Engine *engine = host.pin(word);
    if (engine == nullptr)
        return MC_E_STALE;
    const int32_t status = act(host, *engine);
    host.unpin();
    return status;
}

// The same of a call that may wait: act(thread, host, engine). It counts as a reduction before anything of the host's is held. Without
// memory for the thread: refuse(engine), for what the caller has given away.
template <class Act, class Refuse>
int32_t with_waiting_host(uint64_t word, int64_t deadline_ns, Act act, Refuse refuse) noexcept {
    int32_t status = MC_OK;
    mc::sched::ThreadContext *thread = mc::abi::enter(&status);
    if (thread == nullptr)
        return with_host(word, [&](MachineHost &, Engine &engine) {
            refuse(engine);
            return status;
        });
    thread = mc::sched::begin_call(thread, deadline_ns != MC_NOW);
    return with_host(word, [&](MachineHost &host, Engine &engine) { return act(*thread, host, engine); });
}
template <class Act> int32_t with_waiting_host(uint64_t word, int64_t deadline_ns, Act act) noexcept {
    return with_waiting_host(word, deadline_ns, act, [](Engine &) {});
}

} // namespace

int32_t mc_machine_set_on_full_u64(uint64_t rt, uint32_t what) noexcept {
    if (what > MC_MACHINE_ON_FULL_RETRY)
        return MC_E_INVAL;
    return choose(rt, [=](auto &engine) { engine.on_full = static_cast<mc::machine::OnFull>(what); });
}

int32_t mc_machine_set_on_late_reply_u64(uint64_t rt, uint32_t what) noexcept {
    if (what > MC_MACHINE_ON_LATE_REPLY_DISCARD)
        return MC_E_INVAL;
    return choose(rt, [=](auto &engine) { engine.on_late_reply = static_cast<mc::machine::OnLateReply>(what); });
}

int32_t mc_machine_set_request_timeout_u64(uint64_t rt, int64_t timeout_ns) noexcept {
    if (timeout_ns < 0)
        return MC_E_INVAL;
    const int32_t status = with_host(rt, [=](MachineHost &host, Engine &) {
        host.set_request_timeout(timeout_ns);
        return MC_OK;
    });
    if (status != MC_E_NOTSUP)
        return status;
    return choose(rt, [=](auto &engine) { engine.timeout_ns.store(timeout_ns, mc::sync::relaxed); });
}

int32_t mc_machine_attach_u64(uint64_t rt, mc_runtime_t runtime) noexcept {
    return mc::abi::with_runtime(runtime, [=](mc::sched::ThreadContext &, mc::sched::Pool &pool) {
        return MachineHost::attach(rt, pool, runtime);
    });
}

int32_t mc_machine_detach_u64(uint64_t rt) noexcept {
    const Runtime runtime = mc::machine::find_runtime(rt);
    if (!runtime)
        return MC_E_STALE;
    if (!runtime.is_attached())
        return MC_E_INVAL;
    MachineHost &host = host_of(runtime);
    if (host.pin(rt) == nullptr)
        return MC_E_STALE;
    const int32_t status = host.detach(rt);
    if (status != MC_OK)
        host.unpin();
    return status;
}

int32_t mc_machine_run_until_idle_u64(uint64_t rt, int64_t deadline_ns) noexcept {
    const int32_t status =
        with_waiting_host(rt, deadline_ns, [=](mc::sched::ThreadContext &thread, MachineHost &host, Engine &) {
            return host.wait_until_idle(thread, deadline_ns);
        });
    return status == MC_E_NOTSUP ? step_until_idle(rt, deadline_ns) : status;
}

int32_t mc_machine_ask_u64(uint64_t rt, uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1,
                           int64_t deadline_ns, mc_machine_envelope_t *reply) noexcept {
    const auto request = mc::machine::plain_envelope(0, kind, payload0, payload1);
    return with_waiting_host(
        rt, deadline_ns,
        [&](mc::sched::ThreadContext &thread, MachineHost &host, Engine &engine) {
            return host.ask(thread, engine, mc::abi::machine_id(dst), request, deadline_ns, reply);
        },
        [&](Engine &engine) { engine.refuse(payload0, payload1); });
}

int32_t mc_machine_send_until_u64(uint64_t rt, uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1,
                                  int64_t deadline_ns) noexcept {
    const auto envelope = mc::machine::plain_envelope(0, kind, payload0, payload1);
    return with_waiting_host(
        rt, deadline_ns,
        [&](mc::sched::ThreadContext &thread, MachineHost &host, Engine &engine) {
            return host.send(thread, engine, mc::abi::machine_id(dst), envelope, deadline_ns);
        },
        [&](Engine &engine) { engine.lose(mc::abi::machine_id(dst), MC_MAILBOX_ENQUEUE_FULL, envelope); });
}

// --- polling ---

int32_t mc_machine_bind_poll_u64(uint64_t rt, uint64_t machine, uint32_t alone) noexcept {
    return mc::abi::with_machines(rt, int32_t{MC_E_STALE}, [=](auto &engine) {
        return engine.bind_poll(mc::abi::machine_id(machine), alone != 0) ? MC_OK : MC_E_NOENT;
    });
}

int32_t mc_machine_poll_one_u64(uint64_t rt, uint64_t machine, int64_t deadline_ns, mc_machine_polled *out) noexcept {
    const uint32_t id = mc::abi::machine_id(machine);
    if (out == nullptr || id == 0)
        return MC_E_INVAL;
    uint32_t count = 0;
    return with_waiting_host(rt, deadline_ns, [&](mc::sched::ThreadContext &thread, MachineHost &host, Engine &) {
        return host.poll(thread, id, deadline_ns, out, 1, &count);
    });
}

int32_t mc_machine_poll_batch_u64(uint64_t rt, int64_t deadline_ns, mc_machine_polled *out, uint32_t most,
                                  uint32_t *count) noexcept {
    if (out == nullptr || count == nullptr || most == 0)
        return MC_E_INVAL;
    return with_waiting_host(rt, deadline_ns, [&](mc::sched::ThreadContext &thread, MachineHost &host, Engine &) {
        return host.poll(thread, 0, deadline_ns, out, most, count);
    });
}

int32_t mc_machine_poll_u64(uint64_t rt, int64_t deadline_ns, mc_machine_polled *out) noexcept {
    uint32_t count = 0;
    return mc_machine_poll_batch_u64(rt, deadline_ns, out, 1, &count);
}

int32_t mc_machine_set_token_timeout_u64(uint64_t rt, int64_t timeout_ns) noexcept {
    if (timeout_ns < 0)
        return MC_E_INVAL;
    return with_host(rt, [=](MachineHost &host, Engine &) {
        host.set_token_timeout(timeout_ns);
        return MC_OK;
    });
}

int32_t mc_txn_send(mc_txn_t txn, uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1) noexcept {
    return dst > UINT32_MAX ? MC_E_INVAL : Token::send(txn, static_cast<uint32_t>(dst), kind, payload0, payload1);
}
int32_t mc_txn_request(mc_txn_t txn, uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1,
                       uint64_t request_site_key, uint64_t *pending) noexcept {
    return dst > UINT32_MAX
               ? MC_E_INVAL
               : Token::request(txn, static_cast<uint32_t>(dst), kind, payload0, payload1, request_site_key, pending);
}
int32_t mc_txn_reply(mc_txn_t txn, uint64_t reply_cap_id, uint64_t kind, uint64_t payload0,
                     uint64_t payload1) noexcept {
    return Token::reply(txn, reply_cap_id, kind, payload0, payload1);
}
int32_t mc_txn_publish(mc_txn_t txn, uint64_t kind, uint64_t routing, uint64_t payload0, uint64_t payload1) noexcept {
    return Token::publish(txn, kind, routing, payload0, payload1);
}
int32_t mc_txn_subscribe(mc_txn_t txn, uint64_t kind, uint64_t routing) noexcept {
    return Token::subscribe(txn, kind, routing, MC_SUBSCRIPTION_ADD);
}
int32_t mc_txn_unsubscribe(mc_txn_t txn, uint64_t kind, uint64_t routing) noexcept {
    return Token::subscribe(txn, kind, routing, MC_SUBSCRIPTION_REMOVE);
}
int32_t mc_txn_set_state(mc_txn_t txn, uint64_t state) noexcept { return Token::set_state(txn, state); }
int32_t mc_txn_commit(mc_txn_t txn) noexcept { return Token::commit(txn); }
int32_t mc_txn_abort(mc_txn_t txn, uint64_t fault_code) noexcept { return Token::abort(txn, fault_code); }

// --- by pointer ---

int32_t mc_machine_set_on_full(mc_machine_runtime_t *rt, uint32_t what) noexcept {
    return mc_machine_set_on_full_u64(word_of(rt), what);
}
int32_t mc_machine_set_on_late_reply(mc_machine_runtime_t *rt, uint32_t what) noexcept {
    return mc_machine_set_on_late_reply_u64(word_of(rt), what);
}
int32_t mc_machine_set_request_timeout(mc_machine_runtime_t *rt, int64_t timeout_ns) noexcept {
    return mc_machine_set_request_timeout_u64(word_of(rt), timeout_ns);
}
int32_t mc_machine_attach(mc_machine_runtime_t *rt, mc_runtime_t runtime) noexcept {
    return mc_machine_attach_u64(word_of(rt), runtime);
}
int32_t mc_machine_detach(mc_machine_runtime_t *rt) noexcept { return mc_machine_detach_u64(word_of(rt)); }
int32_t mc_machine_run_until_idle(mc_machine_runtime_t *rt, int64_t deadline_ns) noexcept {
    return mc_machine_run_until_idle_u64(word_of(rt), deadline_ns);
}
int32_t mc_machine_ask(mc_machine_runtime_t *rt, mc_machine_id_t dst, uint64_t kind, uint64_t payload0,
                       uint64_t payload1, int64_t deadline_ns, mc_machine_envelope_t *reply) noexcept {
    return mc_machine_ask_u64(word_of(rt), dst, kind, payload0, payload1, deadline_ns, reply);
}
int32_t mc_machine_send_until(mc_machine_runtime_t *rt, mc_machine_id_t dst, uint64_t kind, uint64_t payload0,
                              uint64_t payload1, int64_t deadline_ns) noexcept {
    return mc_machine_send_until_u64(word_of(rt), dst, kind, payload0, payload1, deadline_ns);
}
int32_t mc_machine_bind_poll(mc_machine_runtime_t *rt, mc_machine_id_t machine_id, uint32_t alone) noexcept {
    return mc_machine_bind_poll_u64(word_of(rt), machine_id, alone);
}
int32_t mc_machine_poll_one(mc_machine_runtime_t *rt, mc_machine_id_t machine_id, int64_t deadline_ns,
                            mc_machine_polled *out) noexcept {
    return mc_machine_poll_one_u64(word_of(rt), machine_id, deadline_ns, out);
}
int32_t mc_machine_poll(mc_machine_runtime_t *rt, int64_t deadline_ns, mc_machine_polled *out) noexcept {
    return mc_machine_poll_u64(word_of(rt), deadline_ns, out);
}
int32_t mc_machine_poll_batch(mc_machine_runtime_t *rt, int64_t deadline_ns, mc_machine_polled *out, uint32_t most,
                              uint32_t *count) noexcept {
    return mc_machine_poll_batch_u64(word_of(rt), deadline_ns, out, most, count);
}
int32_t mc_machine_set_token_timeout(mc_machine_runtime_t *rt, int64_t timeout_ns) noexcept {
    return mc_machine_set_token_timeout_u64(word_of(rt), timeout_ns);
}
