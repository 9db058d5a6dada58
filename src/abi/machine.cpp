// mc/machine.h, but for the registries (registry.cpp).
#include <mc/machine.h>

#include "abi/runtimes.hpp"
#include "abi/second_name.hpp"
#include "base/log.hpp"
#include "compose/machine_host.hpp"

#include <algorithm>
#include <cstring>

namespace {

// act(engine), or `otherwise` when there is none.
template <class Handle, class Result, class Act>
__attribute__((always_inline)) inline Result with(Handle rt, Result otherwise, Act act) noexcept {
    return mc::abi::with_machines(rt, otherwise, act);
}
template <class Act> void with(mc_machine_runtime_t *rt, Act act) noexcept {
    (void)mc::abi::with_machines(rt, 0, [&](auto &engine) {
        act(engine);
        return 0;
    });
}
// The same for what cannot be changed while the runtime is attached.
template <class Act> void with_stepped(mc_machine_runtime_t *rt, const char *what, Act act) noexcept {
    const mc::machine::Runtime runtime = mc::machine::find_runtime(mc::abi::word_of(rt));
    if (runtime.is_attached())
        mc::base::log(MC_LOG_WARNING, MC_E_BUSY, "%s cannot be changed while the runtime is attached", what);
    else if (runtime)
        act(*runtime.engine());
}

uint32_t clamped(uint64_t length) noexcept { return static_cast<uint32_t>(std::min<uint64_t>(length, UINT32_MAX)); }

} // namespace

bool mc::abi::begin_machine_runtime(uint64_t word) noexcept {
    using Engine = machine::Engine<machine::Seq>;
    Engine *engine = Engine::create(reinterpret_cast<void *>(static_cast<uintptr_t>(word)));
    if (engine == nullptr)
        return false;
    if (machine::add_runtime(word, machine::Runtime(engine)))
        return true;
    Engine::end(engine);
    return false;
}

void mc::abi::end_machine_runtime(uint64_t word) noexcept {
    const machine::Runtime runtime = machine::remove_runtime(word);
    if (runtime.is_attached())
        compose::drop_attached(*runtime.host());
    else if (runtime)
        machine::Engine<machine::Seq>::end(runtime.engine());
}

// --- runtimes ---

void mc_machine_runtime_init(mc_machine_runtime_t *rt) noexcept {
    if (rt == nullptr)
        return;
    const auto word = reinterpret_cast<uintptr_t>(rt);
    mc::abi::end_machine_runtime(word); // storage that was used before, and left without a drop
    std::memset(rt, 0, sizeof *rt);
    (void)mc::abi::begin_machine_runtime(word);
}
MC_SECOND_NAME(init)

void mc_machine_runtime_drop(mc_machine_runtime_t *rt) noexcept {
    const auto word = reinterpret_cast<uintptr_t>(rt);
    mc::abi::forget_managed(word);
    mc::abi::end_machine_runtime(word);
}
MC_SECOND_NAME(drop)

void mc_machine_runtime_set_hooks(mc_machine_runtime_t *rt, mc_dead_letter_hook_t dead_letter, mc_fault_hook_t fault,
                                  void *ctx) noexcept {
    with_stepped(rt, "hooks", [=](auto &runtime) {
        runtime.hooks.dead_letter = dead_letter;
        runtime.hooks.fault = fault;
        runtime.hooks.context = ctx;
    });
}
MC_SECOND_NAME(set_hooks)

void mc_machine_runtime_set_pending_hook(mc_machine_runtime_t *rt, mc_pending_lifecycle_hook_t hook) noexcept {
    with_stepped(rt, "hooks", [=](auto &runtime) { runtime.hooks.pending = hook; });
}
MC_SECOND_NAME(set_pending_hook)

void mc_machine_runtime_set_fault_policy(mc_machine_runtime_t *rt, mc_machine_fault_policy_t policy) noexcept {
    if (policy == MC_FAULT_POLICY_MARK_FAULTED || policy == MC_FAULT_POLICY_MARK_STOPPED)
        with_stepped(rt, "the fault policy", [=](auto &runtime) { runtime.fault_policy = policy; });
}
MC_SECOND_NAME(set_fault_policy)

mc_machine_fault_policy_t mc_machine_runtime_fault_policy(const mc_machine_runtime_t *rt) noexcept {
    return with(rt, MC_FAULT_POLICY_MARK_FAULTED, [](const auto &runtime) { return runtime.fault_policy; });
}
MC_SECOND_NAME(fault_policy)

void mc_machine_runtime_set_pending_timeout_steps(mc_machine_runtime_t *rt, uint64_t steps) noexcept {
    with(rt, [=](auto &runtime) { runtime.timeout_steps.store(steps, mc::sync::relaxed); });
}
MC_SECOND_NAME(set_pending_timeout_steps)

uint64_t mc_machine_runtime_pending_timeout_steps(const mc_machine_runtime_t *rt) noexcept {
    return with(rt, uint64_t{0}, [](const auto &runtime) { return runtime.timeout_steps.load(mc::sync::relaxed); });
}
MC_SECOND_NAME(pending_timeout_steps)

// --- machines ---

uint8_t mc_machine_runtime_spawn(mc_machine_runtime_t *rt, uint32_t mailbox_cap, mc_machine_id_t *out_id) noexcept {
    if (out_id == nullptr)
        return 0;
    const uint32_t id = with(rt, uint32_t{0}, [=](auto &runtime) { return runtime.spawn(mailbox_cap); });
    if (id == 0)
        return 0;
    *out_id = id;
    return 1;
}
MC_SECOND_NAME(spawn)

uint8_t mc_machine_runtime_start(mc_machine_runtime_t *rt, mc_machine_id_t machine_id) noexcept {
    return with(rt, uint8_t{0}, [=](auto &runtime) { return runtime.start(machine_id); });
}
MC_SECOND_NAME(start)

uint8_t mc_machine_runtime_stop(mc_machine_runtime_t *rt, mc_machine_id_t machine_id) noexcept {
    return with(rt, uint8_t{0}, [=](auto &runtime) { return runtime.stop(machine_id); });
}
MC_SECOND_NAME(stop)

uint8_t mc_machine_runtime_mark_faulted(mc_machine_runtime_t *rt, mc_machine_id_t machine_id) noexcept {
    return with(rt, uint8_t{0}, [=](auto &runtime) { return runtime.mark_faulted(machine_id); });
}
MC_SECOND_NAME(mark_faulted)

mc_machine_lifecycle_t mc_machine_runtime_lifecycle(const mc_machine_runtime_t *rt,
                                                    mc_machine_id_t machine_id) noexcept {
    return with(rt, MC_MACHINE_STOPPED, [=](const auto &runtime) { return runtime.lifecycle(machine_id); });
}
MC_SECOND_NAME(lifecycle)

void mc_machine_runtime_set_state(mc_machine_runtime_t *rt, mc_machine_id_t machine_id, uint64_t state) noexcept {
    with(rt, [=](auto &runtime) { (void)runtime.set_state(machine_id, state); });
}
MC_SECOND_NAME(set_state)

uint64_t mc_machine_runtime_state(const mc_machine_runtime_t *rt, mc_machine_id_t machine_id) noexcept {
    return with(rt, uint64_t{0}, [=](const auto &runtime) { return runtime.state(machine_id); });
}
MC_SECOND_NAME(state)

void mc_machine_runtime_bind_dispatch(mc_machine_runtime_t *rt, mc_machine_id_t machine_id,
                                      mc_machine_dispatch_txn_fn fn, void *ctx) noexcept {
    with(rt, [=](auto &runtime) { (void)runtime.bind_function(machine_id, fn, ctx); });
}
MC_SECOND_NAME(bind_dispatch)

uint8_t mc_machine_runtime_bind_dispatch_thunk(mc_machine_runtime_t *rt, mc_machine_id_t machine_id, uint64_t thunk_id,
                                               void *ctx) noexcept {
    return with(rt, uint8_t{0}, [=](auto &runtime) { return runtime.bind_thunk(machine_id, thunk_id, ctx); });
}
MC_SECOND_NAME(bind_dispatch_thunk)

uint8_t mc_machine_runtime_bind_descriptor(mc_machine_runtime_t *rt, mc_machine_id_t machine_id, uint64_t descriptor_id,
                                           uint64_t initial_tag) noexcept {
    return with(rt, uint8_t{0},
                [=](auto &runtime) { return runtime.bind_descriptor(machine_id, descriptor_id, initial_tag); });
}
MC_SECOND_NAME(bind_descriptor)

// --- mail and steps ---

mc_mailbox_enqueue_result_t mc_machine_runtime_enqueue(mc_machine_runtime_t *rt, mc_machine_id_t dst,
                                                       const mc_machine_envelope_t *env) noexcept {
    if (env == nullptr)
        return MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN;
    return with(rt, MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN, [=](auto &runtime) { return runtime.enqueue(dst, *env); });
}
MC_SECOND_NAME(enqueue)

mc_mailbox_enqueue_result_t mc_machine_runtime_request(mc_machine_runtime_t *rt, mc_machine_id_t src,
                                                       mc_machine_id_t dst, const mc_machine_envelope_t *env,
                                                       uint64_t *out_pending) noexcept {
    if (env == nullptr)
        return MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN;
    return with(rt, MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN,
                [=](auto &runtime) { return runtime.request(src, dst, *env, out_pending); });
}
MC_SECOND_NAME(request)

mc_machine_reply_result_t mc_machine_runtime_reply(mc_machine_runtime_t *rt, mc_machine_id_t src, uint64_t reply_cap_id,
                                                   const mc_machine_envelope_t *env) noexcept {
    if (env == nullptr)
        return MC_REPLY_CAP_UNKNOWN;
    return with(rt, MC_REPLY_CAP_UNKNOWN, [=](auto &runtime) { return runtime.reply(src, reply_cap_id, *env); });
}
MC_SECOND_NAME(reply)

uint8_t mc_machine_runtime_dispatch_one_txn(mc_machine_runtime_t *rt, mc_machine_dispatch_txn_fn fn,
                                            void *ctx) noexcept {
    return mc::abi::step_machines(rt, fn, ctx) != MC_STEP_IDLE;
}
MC_SECOND_NAME(dispatch_one_txn)

// --- numbers ---

uint32_t mc_machine_runtime_ready_len(const mc_machine_runtime_t *rt) noexcept {
    return with(rt, uint32_t{0}, [](const auto &runtime) { return clamped(runtime.ready_length()); });
}
MC_SECOND_NAME(ready_len)

uint32_t mc_machine_runtime_mailbox_len(const mc_machine_runtime_t *rt, mc_machine_id_t machine_id) noexcept {
    return with(rt, uint32_t{0}, [=](const auto &runtime) { return runtime.mailbox_length(machine_id); });
}
MC_SECOND_NAME(mailbox_len)

uint32_t mc_machine_runtime_subscription_len(const mc_machine_runtime_t *rt) noexcept {
    return with(rt, uint32_t{0}, [](const auto &runtime) { return clamped(runtime.subscriptions().size()); });
}
MC_SECOND_NAME(subscription_len)

uint32_t mc_machine_runtime_pending_len(const mc_machine_runtime_t *rt) noexcept {
    return with(rt, uint32_t{0}, [](const auto &runtime) { return clamped(runtime.pending().active()); });
}
MC_SECOND_NAME(pending_len)

uint64_t mc_machine_runtime_pending_created_count(const mc_machine_runtime_t *rt) noexcept {
    return with(rt, uint64_t{0}, [](const auto &runtime) { return runtime.pending().created(); });
}
MC_SECOND_NAME(pending_created_count)

uint64_t mc_machine_runtime_pending_cleanup_count(const mc_machine_runtime_t *rt,
                                                  mc_pending_cleanup_reason_t reason) noexcept {
    return with(rt, uint64_t{0}, [=](const auto &runtime) { return runtime.cleanups(static_cast<uint32_t>(reason)); });
}
MC_SECOND_NAME(pending_cleanup_count)

uint64_t mc_machine_runtime_stopped_cleanup_count(const mc_machine_runtime_t *rt) noexcept {
    return with(rt, uint64_t{0}, [](const auto &runtime) { return runtime.stops(); });
}
MC_SECOND_NAME(stopped_cleanup_count)

uint8_t mc_machine_runtime_subscription_contains(const mc_machine_runtime_t *rt, mc_machine_id_t machine_id,
                                                 mc_machine_event_kind_t kind, uint64_t routing) noexcept {
    return with(rt, uint8_t{0},
                [=](const auto &runtime) { return runtime.subscriptions().contains(machine_id, kind, routing); });
}
MC_SECOND_NAME(subscription_contains)

uint8_t mc_machine_runtime_pending_contains(const mc_machine_runtime_t *rt, uint64_t pending_id) noexcept {
    mc::machine::Pending::Owner owner;
    return with(rt, uint8_t{0},
                [&](const auto &runtime) { return runtime.pending().owner_of(pending_id, &owner, nullptr); });
}
MC_SECOND_NAME(pending_contains)

uint8_t mc_machine_runtime_pending_contains_identity(const mc_machine_runtime_t *rt, uint64_t pending_id,
                                                     uint64_t request_site_key) noexcept {
    mc::machine::Pending::Owner owner;
    uint64_t site = 0;
    return with(rt, uint8_t{0}, [&](const auto &runtime) {
        return runtime.pending().owner_of(pending_id, &owner, &site) && site == request_site_key;
    });
}
MC_SECOND_NAME(pending_contains_identity)

uint64_t mc_machine_runtime_pending_request_site(const mc_machine_runtime_t *rt, uint64_t pending_id) noexcept {
    mc::machine::Pending::Owner owner;
    uint64_t site = 0;
    return with(rt, uint64_t{0},
                [&](const auto &runtime) { return runtime.pending().owner_of(pending_id, &owner, &site) ? site : 0; });
}
MC_SECOND_NAME(pending_request_site)
