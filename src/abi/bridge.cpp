// mc/bridge.h: runtimes by words, the managed runtime, and what handlers emit. The registries are in registry.cpp, boxes in
// boxes.cpp.
#include <mc/bridge.h>
#include <mc/sync.h>

#include "abi/runtimes.hpp"
#include "abi/second_name.hpp"
#include "base/guarded.hpp"

#include <algorithm>

// The program's, if it has one.
extern "C" __attribute__((weak, visibility("default"))) void __mc_machine_bootstrap(void);

namespace {

using mc::abi::machine_id;
using mc::abi::with_machines;
using mc::machine::EmitContext;

mc::sync::atomic<uint64_t> managed{0}; // 0: there is none
mc::sync::atomic<bool> bootstrapped{false};
mc::sync::atomic<mc_once_t> bootstrap_once{0}; // 0: nobody has needed it; it stays

int32_t bootstrap(void *) noexcept {
    (void)mc::base::call_guarded("__mc_machine_bootstrap", [] { __mc_machine_bootstrap(); });
    // release: pairs with the acquire in bootstrapped_once; who sees it sees what has been registered.
    bootstrapped.store(true, mc::sync::release);
    return MC_OK;
}

mc_once_t once_of_bootstrap() noexcept {
    mc_once_t once = bootstrap_once.load(mc::sync::acquire), made = 0; // acquire: pairs with the exchange below
    if (once != 0 || mc_once_create(&made) != MC_OK)
        return once;
    // acq_rel: who reads the handle finds the object; the loser reads the winner's.
    if (bootstrap_once.compare_exchange_strong(once, made, mc::sync::acq_rel, mc::sync::acquire))
        return made;
    (void)mc_once_destroy(made);
    return once;
}

// Waits while another thread or microthread is at it, so that nobody gets a runtime before its thunks are registered. The
// bootstrap function itself may make runtimes: for it MC_E_DEADLOCK says that it is inside (for others, that the function
// waits for what will never come). False: no memory, or the wait was ended.
bool bootstrapped_once() noexcept {
    if (__mc_machine_bootstrap == nullptr || bootstrapped.load(mc::sync::acquire))
        return true;
    const mc_once_t once = once_of_bootstrap();
    const int32_t status = once == 0 ? MC_E_NOMEM : mc_once_call(once, bootstrap, nullptr, MC_FOREVER);
    return status == MC_OK || status == MC_E_DEADLOCK;
}

mc_machine_envelope_t envelope_of(uint64_t kind, uint64_t payload0, uint64_t payload1) noexcept {
    return mc::machine::plain_envelope(0, kind, payload0, payload1);
}

// What the calling task's handler emits to; null: it runs none.
EmitContext *emits_to() noexcept {
    const mc::sched::ThreadContext *thread = mc::sched::current();
    return thread == nullptr ? nullptr : static_cast<EmitContext *>(thread->running->emits_to);
}

template <class Function> Function function_at(uint64_t address) noexcept {
    return reinterpret_cast<Function>(static_cast<uintptr_t>(address));
}

} // namespace

void mc::abi::forget_managed(uint64_t word) noexcept {
    // release: what was done to it is done before another thread learns that there is none.
    if (word != 0)
        (void)managed.compare_exchange_strong(word, 0, mc::sync::release, mc::sync::relaxed);
}

// --- runtimes ---

uint64_t mc_machine_runtime_new(void) noexcept {
    const uint64_t word = bootstrapped_once() ? mc::machine::new_runtime_word() : 0;
    return word != 0 && mc::abi::begin_machine_runtime(word) ? word : 0;
}
MC_SECOND_NAME(new)

void mc_machine_runtime_free(uint64_t rt) noexcept {
    mc::abi::forget_managed(rt);
    mc::abi::end_machine_runtime(rt);
}
MC_SECOND_NAME(free)

uint64_t mc_machine_runtime_managed_bootstrap_u64(void) noexcept {
    // acquire, here and below: pairs with the release of who made it; it is complete.
    uint64_t seen = managed.load(mc::sync::acquire);
    if (seen != 0)
        return seen;
    const uint64_t made = mc_machine_runtime_new();
    if (made == 0)
        return managed.load(mc::sync::acquire); // there may be one now, likewise
    if (managed.compare_exchange_strong(seen, made, mc::sync::acq_rel, mc::sync::acquire))
        return made;
    mc::abi::end_machine_runtime(made); // another thread was first, or the bootstrap function
    return seen;
}
MC_SECOND_NAME(managed_bootstrap_u64)

uint64_t mc_machine_runtime_managed_current_u64(void) noexcept { return managed.load(mc::sync::acquire); }
MC_SECOND_NAME(managed_current_u64)

uint64_t mc_machine_runtime_managed_shutdown_u64(void) noexcept {
    // acq_rel: of several threads one ends it, after all that was done to it by who made it known.
    const uint64_t word = managed.exchange(0, mc::sync::acq_rel);
    mc::abi::end_machine_runtime(word);
    return word != 0;
}
MC_SECOND_NAME(managed_shutdown_u64)

// --- machines ---

// A mailbox as large as can be is never full before memory is.
uint64_t mc_machine_runtime_spawn_u64(uint64_t rt, uint64_t mailbox_cap) noexcept {
    const auto bound = static_cast<uint32_t>(std::min<uint64_t>(mailbox_cap, UINT32_MAX));
    return with_machines(rt, uint64_t{0}, [=](auto &runtime) { return runtime.spawn(bound); });
}
MC_SECOND_NAME(spawn_u64)

uint64_t mc_machine_runtime_start_u64(uint64_t rt, uint64_t machine) noexcept {
    return with_machines(rt, uint64_t{0}, [=](auto &runtime) { return runtime.start(machine_id(machine)); });
}
MC_SECOND_NAME(start_u64)

uint64_t mc_machine_runtime_set_state_u64(uint64_t rt, uint64_t machine, uint64_t state) noexcept {
    return with_machines(rt, uint64_t{0}, [=](auto &runtime) { return runtime.set_state(machine_id(machine), state); });
}
MC_SECOND_NAME(set_state_u64)

uint64_t mc_machine_runtime_send_u64(uint64_t rt, uint64_t dst, uint64_t kind, uint64_t payload0,
                                     uint64_t payload1) noexcept {
    return with_machines(rt, uint64_t{MC_MAILBOX_ENQUEUE_MACHINE_UNKNOWN}, [=](auto &runtime) {
        return runtime.enqueue(machine_id(dst), envelope_of(kind, payload0, payload1));
    });
}
MC_SECOND_NAME(send_u64)

uint64_t mc_machine_runtime_request_u64(uint64_t rt, uint64_t src, uint64_t dst, uint64_t kind, uint64_t payload0,
                                        uint64_t payload1) noexcept {
    const uint32_t to = src > UINT32_MAX ? 0 : machine_id(dst); // a requester that cannot be: as an unknown destination
    return with_machines(rt, uint64_t{0}, [=](auto &runtime) {
        uint64_t pending = 0;
        (void)runtime.request(machine_id(src), to, envelope_of(kind, payload0, payload1), &pending);
        return pending;
    });
}
MC_SECOND_NAME(request_u64)

uint64_t mc_machine_runtime_reply_u64(uint64_t rt, uint64_t src, uint64_t cap, uint64_t kind, uint64_t payload0,
                                      uint64_t payload1) noexcept {
    const uint64_t known = src > UINT32_MAX ? 0 : cap; // a replier that cannot be: as an unknown capability
    return with_machines(rt, uint64_t{MC_REPLY_CAP_UNKNOWN}, [=](auto &runtime) {
        return runtime.reply(machine_id(src), known, envelope_of(kind, payload0, payload1));
    });
}
MC_SECOND_NAME(reply_u64)

uint64_t mc_machine_runtime_bind_dispatch_u64(uint64_t rt, uint64_t machine, uint64_t fn, uint64_t ctx) noexcept {
    return with_machines(rt, uint64_t{0}, [=](auto &runtime) {
        return runtime.bind_function(machine_id(machine), function_at<mc_machine_dispatch_txn_fn>(fn),
                                     function_at<void *>(ctx));
    });
}
MC_SECOND_NAME(bind_dispatch_u64)

uint64_t mc_machine_runtime_bind_dispatch_thunk_u64(uint64_t rt, uint64_t machine, uint64_t thunk_id,
                                                    uint64_t ctx) noexcept {
    return with_machines(rt, uint64_t{0}, [=](auto &runtime) {
        return runtime.bind_thunk(machine_id(machine), thunk_id, function_at<void *>(ctx));
    });
}
MC_SECOND_NAME(bind_dispatch_thunk_u64)

uint64_t mc_machine_runtime_bind_descriptor_u64(uint64_t rt, uint64_t machine, uint64_t descriptor_id,
                                                uint64_t initial_tag) noexcept {
    return with_machines(rt, uint64_t{0}, [=](auto &runtime) {
        return runtime.bind_descriptor(machine_id(machine), descriptor_id, initial_tag);
    });
}
MC_SECOND_NAME(bind_descriptor_u64)

uint64_t mc_machine_runtime_step_u64(uint64_t rt) noexcept { return mc::abi::step_machines(rt, nullptr, nullptr); }
MC_SECOND_NAME(step_u64)

// --- what a handler emits ---

uint8_t __mc_machine_emit_send(uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1) noexcept {
    EmitContext *to = emits_to();
    return to != nullptr && dst <= UINT32_MAX && to->send(static_cast<uint32_t>(dst), kind, payload0, payload1);
}

uint64_t __mc_machine_emit_request(uint64_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1,
                                   uint64_t request_site_key) noexcept {
    EmitContext *to = emits_to();
    if (to == nullptr || dst > UINT32_MAX)
        return 0;
    return to->request(static_cast<uint32_t>(dst), kind, payload0, payload1, request_site_key);
}

uint8_t __mc_machine_emit_reply(uint64_t cap, uint64_t kind, uint64_t payload0, uint64_t payload1) noexcept {
    EmitContext *to = emits_to();
    return to != nullptr && to->reply(cap, kind, payload0, payload1);
}

uint8_t __mc_machine_emit_publish(uint64_t kind, uint64_t routing, uint64_t payload0, uint64_t payload1) noexcept {
    EmitContext *to = emits_to();
    return to != nullptr && to->publish(kind, routing, payload0, payload1);
}
