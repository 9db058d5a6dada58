/* layout.h: what the compiler must agree to, in C11 and in every C++ from 11 on: layouts and values that compiled
 * programs contain. structs.txt and enums.txt are complete; this is what breaks a build at once. 64-bit targets. */
#ifndef ABI_TESTS_LAYOUT_H
#define ABI_TESTS_LAYOUT_H

#include <mc/mc.h>
#include <stddef.h>

#ifdef __cplusplus
#define FIXED(condition) static_assert(condition, #condition)
#else
#define FIXED(condition) _Static_assert(condition, #condition)
#endif
#define FIXED_FIELD(type, field, offset) FIXED(offsetof(type, field) == (offset))
#define FIXED_SIZE(type, size, align)                                                                                  \
    struct align_of_##type {                                                                                           \
        char before;                                                                                                   \
        type it;                                                                                                       \
    };                                                                                                                 \
    FIXED(sizeof(type) == (size));                                                                                     \
    FIXED(offsetof(struct align_of_##type, it) == (align))

FIXED_SIZE(mc_runtime_t, 8, 8);
FIXED_SIZE(mc_task_t, 8, 8);
FIXED_SIZE(mc_chan_t, 8, 8);
FIXED_SIZE(csp_writer, 8, 8);
FIXED_SIZE(csp_reader, 8, 8);
FIXED_SIZE(csp_waiter, 8, 8);

FIXED_SIZE(mc_msg, 32, 8);
FIXED_FIELD(mc_msg, data, 0);
FIXED_FIELD(mc_msg, len, 8);
FIXED_FIELD(mc_msg, drop, 16);
FIXED_FIELD(mc_msg, user, 24);

FIXED_SIZE(mc_allocator, 32, 8);
FIXED_FIELD(mc_allocator, struct_size, 0);
FIXED_FIELD(mc_allocator, reserved, 4);
FIXED_FIELD(mc_allocator, alloc, 8);
FIXED_FIELD(mc_allocator, free, 16);
FIXED_FIELD(mc_allocator, user, 24);

FIXED_SIZE(mc_spawn_options, 24, 8);
FIXED_FIELD(mc_spawn_options, struct_size, 0);
FIXED_FIELD(mc_spawn_options, flags, 4);
FIXED_FIELD(mc_spawn_options, stack_size, 8);
FIXED_FIELD(mc_spawn_options, name, 16);

FIXED_SIZE(mc_scope_t, 8, 8);
FIXED_SIZE(mc_group_t, 8, 8);
FIXED_SIZE(mc_local_t, 8, 8);
FIXED_SIZE(mc_mutex_t, 8, 8);
FIXED_SIZE(mc_semaphore_t, 8, 8);
FIXED_SIZE(mc_waitgroup_t, 8, 8);
FIXED_SIZE(mc_once_t, 8, 8);
FIXED_SIZE(mc_cond_t, 8, 8);
FIXED_SIZE(mc_rwlock_t, 8, 8);

FIXED_SIZE(mc_runtime_options, 88, 8);
FIXED_FIELD(mc_runtime_options, struct_size, 0);
FIXED_FIELD(mc_runtime_options, flags, 4);
FIXED_FIELD(mc_runtime_options, executors, 8);
FIXED_FIELD(mc_runtime_options, wheel_segments, 12);
FIXED_FIELD(mc_runtime_options, quantum_ns, 16);
FIXED_FIELD(mc_runtime_options, quantum_reductions, 24);
FIXED_FIELD(mc_runtime_options, blocking_threads, 28);
FIXED_FIELD(mc_runtime_options, stack_size, 32);
FIXED_FIELD(mc_runtime_options, seed, 40);
FIXED_FIELD(mc_runtime_options, affinity, 48);
FIXED_FIELD(mc_runtime_options, cores, 52);
FIXED_FIELD(mc_runtime_options, thread_start, 56);
FIXED_FIELD(mc_runtime_options, thread_stop, 64);
FIXED_FIELD(mc_runtime_options, user, 72);
FIXED_FIELD(mc_runtime_options, mode, 80);
FIXED_FIELD(mc_runtime_options, reserved, 84);

FIXED_SIZE(mc_runtime_counters, 72, 8);
FIXED_FIELD(mc_runtime_counters, executors, 4);
FIXED_FIELD(mc_runtime_counters, microthreads, 16);
FIXED_FIELD(mc_runtime_counters, queued, 40);
FIXED_FIELD(mc_runtime_counters, blocking_threads, 48);
FIXED_FIELD(mc_runtime_counters, blocking_oldest_ns, 64);
FIXED_SIZE(mc_executor_counters, 56, 8);
FIXED_FIELD(mc_executor_counters, load, 4);
FIXED_FIELD(mc_executor_counters, cpu, 8);
FIXED_FIELD(mc_executor_counters, begun, 16);
FIXED_FIELD(mc_executor_counters, turn_ns, 48);

FIXED_SIZE(mc_task_info, 208, 8);
FIXED_FIELD(mc_task_info, kind, 4);
FIXED_FIELD(mc_task_info, id, 8);
FIXED_FIELD(mc_task_info, name, 32);
FIXED_FIELD(mc_task_info, state, 64);
FIXED_FIELD(mc_task_info, object, 80);
FIXED_FIELD(mc_task_info, object_name, 88);
FIXED_FIELD(mc_task_info, waited_ns, 120);
FIXED_FIELD(mc_task_info, holder, 128);
FIXED_FIELD(mc_task_info, holder_name, 136);
FIXED_FIELD(mc_task_info, stack_bytes, 168);
FIXED_FIELD(mc_task_info, stack_high, 184);
FIXED_FIELD(mc_task_info, reserved, 192);

FIXED_SIZE(mc_epoch_node, 32, 8);
FIXED_FIELD(mc_epoch_stall, struct_size, 0);
FIXED_FIELD(mc_epoch_stall, kind, 4);
FIXED_FIELD(mc_epoch_stall, epoch, 8);
FIXED_FIELD(mc_epoch_stall, age_ns, 16);
FIXED_FIELD(mc_epoch_stall, name, 24);

FIXED_SIZE(csp_chanop, 16, 8);
FIXED_FIELD(csp_chanop, waiter, 0);
FIXED_FIELD(csp_chanop, message, 8);

FIXED_SIZE(mc_op, 128, 8);
FIXED_FIELD(mc_op, word, 0);
FIXED_FIELD(mc_op, link, 8);
FIXED_FIELD(mc_op, cancel_link, 16);
FIXED_FIELD(mc_op, bell_link, 24);
FIXED_FIELD(mc_op, destination, 32);
FIXED_FIELD(mc_op, source, 40);
FIXED_FIELD(mc_op, kind, 48);
FIXED_FIELD(mc_op, flags, 52);
FIXED_FIELD(mc_op, deadline_ns, 56);
FIXED_FIELD(mc_op, id, 64);
FIXED_FIELD(mc_op, trace_id, 72);
FIXED_FIELD(mc_op, parent_id, 80);
FIXED_FIELD(mc_op, user, 88);
FIXED_FIELD(mc_op, value, 96);
FIXED_FIELD(mc_op, result, 104);
FIXED_FIELD(mc_op, slot, 108);
FIXED_FIELD(mc_op, reserved, 112);
FIXED(sizeof(((mc_op *)0)->reserved) == 16);

FIXED_SIZE(mc_completion, 32, 8);
FIXED_FIELD(mc_completion, token, 0);
FIXED_FIELD(mc_completion, value, 8);
FIXED_FIELD(mc_completion, status, 16);
FIXED_FIELD(mc_completion, kind, 20);
FIXED_FIELD(mc_completion, data, 24);

FIXED_SIZE(mc_machine_envelope_t, 72, 8);
FIXED_FIELD(mc_machine_envelope_t, kind, 0);
FIXED_FIELD(mc_machine_envelope_t, src, 8);
FIXED_FIELD(mc_machine_envelope_t, reply_cap_id, 16);
FIXED_FIELD(mc_machine_envelope_t, pending_id, 24);
FIXED_FIELD(mc_machine_envelope_t, payload0, 32);
FIXED_FIELD(mc_machine_envelope_t, payload1, 40);
FIXED_FIELD(mc_machine_envelope_t, origin_payload0, 48);
FIXED_FIELD(mc_machine_envelope_t, origin_payload1, 56);
FIXED_FIELD(mc_machine_envelope_t, origin_request_site_key, 64);

FIXED_SIZE(mc_machine_outbox_effect_t, 80, 8);
FIXED_FIELD(mc_machine_outbox_effect_t, dst, 0);
FIXED_FIELD(mc_machine_outbox_effect_t, env, 8);
FIXED_SIZE(mc_machine_request_effect_t, 96, 8);
FIXED_FIELD(mc_machine_request_effect_t, dst, 0);
FIXED_FIELD(mc_machine_request_effect_t, pending_id, 8);
FIXED_FIELD(mc_machine_request_effect_t, request_site_key, 16);
FIXED_FIELD(mc_machine_request_effect_t, env, 24);
FIXED_SIZE(mc_machine_reply_effect_t, 80, 8);
FIXED_FIELD(mc_machine_reply_effect_t, reply_cap_id, 0);
FIXED_FIELD(mc_machine_reply_effect_t, env, 8);
FIXED_SIZE(mc_subscription_update_t, 24, 8);
FIXED_FIELD(mc_subscription_update_t, op, 0);
FIXED_FIELD(mc_subscription_update_t, machine_id, 4);
FIXED_FIELD(mc_subscription_update_t, kind, 8);
FIXED_FIELD(mc_subscription_update_t, routing, 16);

FIXED_SIZE(mc_machine_dispatch_txn_t, 88, 8);
FIXED_FIELD(mc_machine_dispatch_txn_t, has_next_state, 0);
FIXED_FIELD(mc_machine_dispatch_txn_t, next_state, 8);
FIXED_FIELD(mc_machine_dispatch_txn_t, next_state_tag, 16);
FIXED_FIELD(mc_machine_dispatch_txn_t, outbox, 24);
FIXED_FIELD(mc_machine_dispatch_txn_t, outbox_len, 32);
FIXED_FIELD(mc_machine_dispatch_txn_t, subscriptions, 40);
FIXED_FIELD(mc_machine_dispatch_txn_t, subscriptions_len, 48);
FIXED_FIELD(mc_machine_dispatch_txn_t, requests, 56);
FIXED_FIELD(mc_machine_dispatch_txn_t, requests_len, 64);
FIXED_FIELD(mc_machine_dispatch_txn_t, replies, 72);
FIXED_FIELD(mc_machine_dispatch_txn_t, replies_len, 80);
FIXED_SIZE(mc_machine_dispatch_row_t, 40, 8);
FIXED_FIELD(mc_machine_dispatch_row_t, state_tag, 0);
FIXED_FIELD(mc_machine_dispatch_row_t, event_kind, 8);
FIXED_FIELD(mc_machine_dispatch_row_t, request_site_key, 16);
FIXED_FIELD(mc_machine_dispatch_row_t, state_local_thunk_id, 24);
FIXED_FIELD(mc_machine_dispatch_row_t, fallback_thunk_id, 32);
FIXED_SIZE(mc_machine_runtime_t, 192, 8);

FIXED_SIZE(mc_machine_id_t, 4, 4);
FIXED_SIZE(mc_machine_lifecycle_t, 4, 4);
FIXED_SIZE(mc_machine_fault_policy_t, 4, 4);
FIXED_SIZE(mc_mailbox_enqueue_result_t, 4, 4);
FIXED_SIZE(mc_dead_letter_reason_t, 4, 4);
FIXED_SIZE(mc_dispatch_result_t, 4, 4);
FIXED_SIZE(mc_machine_reply_result_t, 4, 4);
FIXED_SIZE(mc_machine_step_status_t, 4, 4);
FIXED_SIZE(mc_subscription_op_t, 4, 4);
FIXED_SIZE(mc_pending_cleanup_reason_t, 4, 4);
FIXED(MC_PAYLOAD_LAYOUT_OWNED_MASK == UINT64_C(1) << 63);
FIXED((MC_PAYLOAD_LAYOUT_OWNED_MASK ^ MC_PAYLOAD_LAYOUT_ID_MASK) == UINT64_MAX);

/* What embeds an operation has it first: the operation's address is that of the whole. */
typedef struct layout_read {
    mc_op op;
    void *buffer;
} layout_read;
FIXED_FIELD(layout_read, op, 0);
FIXED_FIELD(layout_read, buffer, 128);

FIXED(MC_OK == 0);
FIXED(MC_E_INVAL == -100001);
FIXED(MC_E_SIM == -100024);
FIXED(csp_dead == 2);
FIXED(csp_ready == 3);
FIXED(MC_NOW == INT64_MIN);
FIXED(MC_FOREVER == INT64_MAX);
FIXED(MC_SEC == 1000 * MC_MS);
FIXED(MC_OP_PHASE_IDLE == 0 && MC_OP_PHASE_SUBMITTED == 1 && MC_OP_PHASE_ACTIVE == 2);
FIXED(MC_OP_PHASE_COMPLETING == 3 && MC_OP_PHASE_DONE == 4);
FIXED(MC_OP_CAUSE_NONE == 0 && MC_OP_CAUSE_CANCEL == 1 && MC_OP_CAUSE_DEADLINE == 2);
FIXED(MC_OP_CAUSE_CLOSE == 3 && MC_OP_CAUSE_SHUTDOWN == 4);
FIXED(MC_OP_STANDING == 1 && MC_OP_UNREFERENCED == 2 && MC_OP_KIND_USER == 0x80000000u);
FIXED(MC_RUNTIME_DEFAULT == 1 && MC_RUNTIME_OVERFLOW_REPORT == 2 && MC_MODE_THREADS == 0);
FIXED(MC_AFFINITY_NONE == 0 && MC_AFFINITY_DEPTH_FIRST == 1 && MC_AFFINITY_BREADTH_FIRST == 2 &&
      MC_AFFINITY_RANDOM == 3);
FIXED(MC_CORES_ANY == 0 && MC_CORES_BIG == 1 && MC_CORES_LITTLE == 2);
FIXED(MC_MUTEX_FIFO == 1 && MC_MUTEX_RECURSIVE == 2);
FIXED(MC_TASK_RUNNING == 0 && MC_TASK_RUNNABLE == 1 && MC_TASK_WAITING == 2 && MC_WAIT_BLOCKING_CALL == 17 &&
      MC_WAIT_POLL == 19);
FIXED(MC_LOG_ERROR == 0 && MC_LOG_WARNING == 1 && MC_LOG_INFO == 2);
FIXED(MC_MODE_SIMULATION == 1 && MC_SIM_LEDGER == 1 && MC_SIM_FIFO == 2 && MC_SIM_NO_TASK_LEFT == 4 &&
      MC_SIM_BOUNDED_WAIT == 8);
FIXED(MC_SIM_HEADER_BYTES == 4096 && MC_SIM_DIED == 0 && MC_SIM_ENDED == 1 && MC_SIM_FINE == 0 && MC_SIM_ORACLE == 3);
FIXED(MC_SIM_SPAWN == 1 && MC_SIM_WAIT == 5 && MC_SIM_MESSAGE == 8 && MC_SIM_CHOSE == 16);
FIXED(sizeof MC_SIM_MAGIC == 9 && MC_SIM_CLOCK == UINT64_MAX);
FIXED_SIZE(mc_sim_recording, 1192, 8);
FIXED_FIELD(mc_sim_recording, failure, 28);
FIXED_FIELD(mc_sim_recording, choices, 56);
FIXED_FIELD(mc_sim_recording, events_at, 96);
FIXED_FIELD(mc_sim_recording, message, 168);
FIXED_SIZE(mc_sim_choice, 8, 2);
FIXED_SIZE(mc_sim_event, 88, 8);
FIXED_FIELD(mc_sim_event, choice, 8);
FIXED_FIELD(mc_sim_event, text, 56);

/* The macros that make values must compile cleanly too, in both languages. */
static inline int layout_macros(csp_writer w, csp_reader r) {
    mc_spawn_options options = MC_SPAWN_OPTIONS_INIT;
    mc_allocator allocator = MC_ALLOCATOR_INIT;
    mc_runtime_options runtime = MC_RUNTIME_OPTIONS_INIT;
    mc_runtime_counters stats = MC_RUNTIME_COUNTERS_INIT;
    mc_executor_counters executor = MC_EXECUTOR_COUNTERS_INIT;
    mc_op op = MC_OP_INIT;
    layout_read read = {MC_OP_INIT, 0};
    csp_chanop ops[3] = {{csp_wait(w), 0}, {csp_wait(r), 0}, {csp_wait_dead(r), 0}};
    return runtime.struct_size == sizeof runtime && runtime.user == 0 && runtime.mode == 0 &&
           stats.struct_size == sizeof stats && stats.blocking_oldest_ns == 0 &&
           executor.struct_size == sizeof executor && executor.turn_ns == 0 && options.struct_size == sizeof options &&
           options.flags == 0 && options.stack_size == 0 && allocator.struct_size == sizeof allocator &&
           allocator.alloc == 0 && op.word == 0 && op.deadline_ns == 0 && op.reserved[1] == 0 && read.op.link == 0 &&
           ((uintptr_t)ops[0].waiter & 15) == 0xE && ((uintptr_t)ops[1].waiter & 15) == 0xF &&
           ((uintptr_t)ops[2].waiter & 15) == 0xD && ((uintptr_t)csp_wait_dead(w) & 15) == 0xC &&
           (uintptr_t)csp_wait((csp_writer)0) == 0xE;
}

#endif /* ABI_TESTS_LAYOUT_H */
