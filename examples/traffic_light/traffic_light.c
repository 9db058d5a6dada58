/* traffic_light: a machine with a descriptor. traffic_light.json says which handler (thunk) an event has in each state; `mcrt
 * descriptor build --c` made traffic_light.h of it, and docs/traffic_light.svg is its picture. Each thunk is registered with
 * the state that it leads to, so the handlers here do not name states.
 *
 * The state's word counts how often the light has changed. A machine without a row for an event faults: so "Repair", which a
 * light that works does not expect, ends it. */
#include "traffic_light.h"

#include <mc/mc.h>

#include <inttypes.h>
#include <stdio.h>

/* As in traffic_light.json. */
enum { RED = 1, GREEN = 2, AMBER = 3, BLINKING = 4 };
enum { TIMER = 1, WALK = 2, FAILURE = 3, REPAIR = 4 };

static mc_dispatch_result_t change(mc_machine_dispatch_txn_t *txn, uint64_t changes, const char *to) {
    txn->has_next_state = 1; /* its tag is the thunk's */
    txn->next_state = changes + 1;
    printf("%s\n", to);
    return MC_DISPATCH_OK;
}

#define HANDLER(name)                                                                                                  \
    static mc_dispatch_result_t name(void *rt, mc_machine_id_t id, uint64_t changes, const mc_machine_envelope_t *env, \
                                     mc_machine_dispatch_txn_t *txn, uint64_t *fault_code)
#define UNUSED(x) ((void)(x))

HANDLER(turns_green) {
    UNUSED(rt), UNUSED(id), UNUSED(env), UNUSED(fault_code);
    return change(txn, changes, "green");
}
HANDLER(turns_amber) {
    UNUSED(rt), UNUSED(id), UNUSED(env), UNUSED(fault_code);
    return change(txn, changes, env->kind == WALK ? "amber, for somebody who walks" : "amber");
}
HANDLER(turns_red) {
    UNUSED(rt), UNUSED(id), UNUSED(env), UNUSED(fault_code);
    return change(txn, changes, "red");
}
HANDLER(blinks) {
    UNUSED(rt), UNUSED(id), UNUSED(env), UNUSED(fault_code);
    return change(txn, changes, "blinking");
}
HANDLER(stays) {
    UNUSED(rt), UNUSED(id), UNUSED(changes), UNUSED(env), UNUSED(txn), UNUSED(fault_code);
    printf("(stays)\n");
    return MC_DISPATCH_OK;
}

static void register_thunks(void) {
    mc_machine_runtime_register_thunk_meta(11, turns_green, GREEN);
    mc_machine_runtime_register_thunk_meta(21, turns_amber, AMBER);
    mc_machine_runtime_register_thunk_meta(22, turns_amber, AMBER);
    mc_machine_runtime_register_thunk_meta(31, turns_red, RED);
    mc_machine_runtime_register_thunk_meta(41, turns_red, RED);
    mc_machine_runtime_register_thunk_meta(2, blinks, BLINKING);
    mc_machine_runtime_register_thunk(1, stays);
}

static void on_fault(void *ctx, mc_machine_id_t id, uint64_t code) {
    UNUSED(ctx), UNUSED(id);
    printf("fault: %s\n", code == MC_FAULT_CODE_DESCRIPTOR_ROW_MISSING ? "no row for that" : "another");
}

int main(void) {
    static const uint64_t events[] = {TIMER, WALK, WALK, TIMER, TIMER, FAILURE, TIMER, REPAIR, TIMER, REPAIR};
    static mc_machine_runtime_t rt;
    mc_machine_id_t light;
    mc_machine_runtime_init(&rt);
    mc_machine_runtime_set_hooks(&rt, NULL, on_fault, NULL);
    register_thunks();
    const uint64_t descriptor =
        mc_machine_runtime_register_descriptor(traffic_light_descriptor, sizeof traffic_light_descriptor);
    if (!mc_machine_runtime_spawn(&rt, 16, &light) ||
        !mc_machine_runtime_bind_descriptor(&rt, light, descriptor, RED) || !mc_machine_runtime_start(&rt, light)) {
        fprintf(stderr, "traffic_light: no machine\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        const mc_machine_envelope_t event = {.kind = events[i]};
        mc_machine_runtime_enqueue(&rt, light, &event);
    }
    while (mc_machine_runtime_dispatch_one_txn(&rt, NULL, NULL)) {
    }
    printf("%" PRIu64 " changes\n", mc_machine_runtime_state(&rt, light));
    mc_machine_runtime_drop(&rt);
    return 0;
}
