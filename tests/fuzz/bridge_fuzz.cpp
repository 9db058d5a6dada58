// Fuzz target: sequences of calls of mc/bridge.h and mc/machine.h, with words that are live, stale or were never anything, from
// outside and from inside handlers and hooks.
//
// An input is a program: each step a call with words that it draws; a handler draws from the same input what it emits, fills in,
// calls and answers. Nothing crashes, and what must hold is counted, not modelled:
//  - every box (a payload, or the token of a state) is dropped once, and in the end no block is left; a handler's state lives
//    until the handler returns, whatever it does;
//  - an unknown runtime does nothing and owns nothing;
//  - of direct calls: a mailbox is longer by one when, and only when, the answer is OK; else there was one dead letter;
//  - requests that were made are those that are pending and those that have ended;
//  - a step inside a handler of the same runtime is refused; machines' ids only grow; who is stopped stays stopped.
// Allocations fail here and there: then a call may say that it has not been done, and all of this holds still.
// What a program may not do is left out: functions and boxes that are none, a box that is not its own any more.
//
// Built by tests/fuzz/run with libFuzzer, and by tests/fuzz_replay_bridge.cpp, which plays the corpus and random inputs.
#include "input.hpp"

#include <mc/mc.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using fuzz::steps;

namespace {

constexpr int most_steps = 256, most_depth = 4;
constexpr size_t most_filled = 3;
constexpr uint64_t owned = MC_PAYLOAD_LAYOUT_OWNED_MASK;
constexpr uint64_t dropped_layouts = 2; // 1 and 2 have drop functions, 0 and 3 have none
constexpr uint64_t token_layout = 4;    // of all states of the descriptor; it has one
constexpr uint64_t kinds = 4, states = 3, thunk_count = 3;

class Input : public fuzz::Input {
public:
    using fuzz::Input::Input;
    bool one_in(unsigned n) { return below(n) == n - 1; }
    uint64_t word() { // wide, of one byte: programs are short
        const uint64_t wide = (below(256) + 1) * 0x9e3779b97f4a7c15u;
        return wide ^ wide >> 29;
    }
};
Input input;

// --- memory ---

unsigned fails_in;  // the allocation that fails; 0: none
bool lacked_memory; // one has failed in this call
bool ours;          // what the target itself allocates does not fail

void *allocate(void *, uint64_t size, uint64_t align) {
    if (!ours && fails_in != 0 && --fails_in == 0) {
        lacked_memory = true;
        fails_in = input.one_in(2); // the next one, too?
        return nullptr;
    }
    return std::aligned_alloc(align, (size + align - 1) / align * align);
}
void deallocate(void *, void *block, uint64_t, uint64_t) { std::free(block); }

// --- boxes ---

struct Box {
    uint64_t *block;
    uint64_t layout;
    bool given;
    bool dropped;
};
std::vector<Box> boxes;
uint64_t blocks_before;

struct Payload {
    uint64_t word0, word1;
    size_t box; // SIZE_MAX: none
};

void drop_box(void *block) {
    const uint64_t number = *static_cast<uint64_t *>(block);
    REQUIRE(number < boxes.size() && boxes[number].block == block);
    REQUIRE(boxes[number].given && !boxes[number].dropped);
    boxes[number].dropped = true;
}

Payload new_box(uint64_t layout) {
    ours = true;
    auto *block = static_cast<uint64_t *>(__mc_alloc(sizeof(uint64_t), alignof(uint64_t)));
    ours = false;
    REQUIRE(block != nullptr);
    *block = boxes.size();
    boxes.push_back({block, layout, false, false});
    return {reinterpret_cast<uint64_t>(block), layout | owned, boxes.size() - 1};
}

Payload draw_payload() {
    if (input.one_in(3))
        return {input.word(), input.word() & ~owned, SIZE_MAX};
    return new_box(input.below(4));
}

// The call has got it, or it is ours to free.
void settle(const Payload &payload, bool given) {
    if (payload.box == SIZE_MAX || boxes[payload.box].given)
        return;
    boxes[payload.box].given = given;
    if (!given)
        __mc_free(boxes[payload.box].block);
}

// What a handler has received, to be passed on; or a new one.
Payload draw_payload(const mc_machine_envelope_t *received) {
    if (received == nullptr || input.below(3) != 0)
        return draw_payload();
    if (input.one_in(2))
        return {received->payload0, received->payload1, SIZE_MAX};
    return {received->origin_payload0, received->origin_payload1, SIZE_MAX};
}

// --- runtimes ---

struct Machine {
    uint32_t id;
    bool stopped;
    bool described;    // bound to the descriptor: its state is a token
    unsigned bindings; // how often it was bound
};
struct Runtime {
    uint64_t word;
    bool live;
    std::vector<Machine> machines;
    std::vector<uint64_t> requests; // some that were made
    int handlers;                   // that run
};
mc_machine_runtime_t storage[2];
std::vector<Runtime> runtimes;
unsigned dead_letters;
int depth;
size_t running[most_depth +
               1]; // the index of whose handler runs, by depth: a function that is bound is told of no runtime

// The index of a word's, or that of none.
size_t index_of(uint64_t word) {
    for (size_t i = 0; i < runtimes.size(); ++i)
        if (runtimes[i].live && runtimes[i].word == word)
            return i;
    return SIZE_MAX;
}
Machine *machine_of(size_t at, uint64_t id) {
    if (at != SIZE_MAX)
        for (Machine &machine : runtimes[at].machines)
            if (machine.id == id)
                return &machine;
    return nullptr;
}
mc_machine_runtime_t *pointer(uint64_t word) { return reinterpret_cast<mc_machine_runtime_t *>(word); }

uint64_t draw_runtime() {
    const unsigned dice = input.below(32);
    if (dice == 0)
        return input.word();
    if (dice == 1)
        return input.below(4);
    if (dice == 2)
        return runtimes[0].word + 8 * input.below(48) - 192;
    return dice < 24 ? runtimes.back().word : runtimes[dice % runtimes.size()].word;
}
uint64_t draw_machine(uint64_t rt) {
    const size_t at = index_of(rt);
    const unsigned dice = input.below(64);
    if (at == SIZE_MAX || runtimes[at].machines.empty() || dice < 4)
        return dice % 2 == 0 ? input.word() : dice;
    return runtimes[at].machines[dice % runtimes[at].machines.size()].id;
}
uint64_t draw_request(uint64_t rt) {
    const size_t at = index_of(rt);
    const unsigned dice = input.below(64);
    if (at == SIZE_MAX || runtimes[at].requests.empty() || dice < 8)
        return dice % 2 == 0 ? input.word() : dice;
    return runtimes[at].requests[dice % runtimes[at].requests.size()];
}
uint64_t draw_kind() { return input.below(kinds); }

void made_request(uint64_t rt, uint64_t id) {
    if (const size_t at = index_of(rt); at != SIZE_MAX && id != 0)
        runtimes[at].requests.push_back(id);
}

void on_dead_letter(void *, mc_machine_id_t, mc_dead_letter_reason_t, const mc_machine_envelope_t *) { ++dead_letters; }

void begin_runtime(uint64_t word) {
    if (word == 0)
        return;
    REQUIRE(index_of(word) == SIZE_MAX);
    runtimes.push_back({word, true, {}, {}, 0});
    mc_machine_runtime_set_hooks(pointer(word), on_dead_letter, nullptr, nullptr);
}

// A state for a machine: of one with a token a new one, none, or one that it has or had; of others any word.
Payload draw_state(const Machine *machine, uint64_t has, uint64_t had) {
    if (machine == nullptr || !machine->described)
        return {input.word(), 0, SIZE_MAX};
    const unsigned dice = input.below(8);
    if (dice < 3)
        return {dice == 0 ? 0 : dice == 1 ? has : had, 0, SIZE_MAX};
    return new_box(token_layout);
}

void end_runtime(uint64_t word) {
    if (const size_t at = index_of(word); at != SIZE_MAX)
        runtimes[at].live = false;
}

// --- calls ---

void call(const mc_machine_envelope_t *received);

mc_machine_envelope_t draw_envelope(const Payload &payload) {
    mc_machine_envelope_t envelope{};
    envelope.kind = draw_kind();
    envelope.src = input.below(4);
    envelope.reply_cap_id = input.below(3);
    envelope.pending_id = input.below(3);
    envelope.payload0 = payload.word0;
    envelope.payload1 = payload.word1;
    envelope.origin_request_site_key = input.below(3);
    return envelope;
}

// A direct call to `dst`'s machine that answers whether it was sent; outside of handlers, where nothing else happens meanwhile.
template <class Send> void check_direct(uint64_t rt, uint64_t dst, const Payload &payload, Send send) {
    const bool known = index_of(rt) != SIZE_MAX;
    const auto length = [&] {
        return dst > UINT32_MAX ? 0 : mc_machine_runtime_mailbox_len(pointer(rt), static_cast<uint32_t>(dst));
    };
    const uint32_t before = length();
    const unsigned letters = dead_letters;
    if (known && payload.box != SIZE_MAX)
        boxes[payload.box].given = true; // it may be dropped in the call
    const bool sent = send();
    REQUIRE(known || !sent);
    REQUIRE(length() == before + sent);
    REQUIRE(dead_letters == letters + (known && !sent));
    settle(payload, known);
}

void call_send(uint64_t rt, const mc_machine_envelope_t *received) {
    const uint64_t dst = draw_machine(rt);
    const Payload payload = draw_payload(received);
    if (input.one_in(2))
        return check_direct(rt, dst, payload, [&] {
            return mc_machine_runtime_send_u64(rt, dst, draw_kind(), payload.word0, payload.word1) ==
                   MC_MAILBOX_ENQUEUE_OK;
        });
    const mc_machine_envelope_t envelope = draw_envelope(payload);
    const auto narrow = static_cast<uint32_t>(dst);
    check_direct(rt, narrow, payload,
                 [&] { return mc_machine_runtime_enqueue(pointer(rt), narrow, &envelope) == MC_MAILBOX_ENQUEUE_OK; });
}

void call_request(uint64_t rt, const mc_machine_envelope_t *received) {
    const uint64_t src = draw_machine(rt), dst = draw_machine(rt);
    const Payload payload = draw_payload(received);
    check_direct(rt, dst, payload, [&] {
        const uint64_t id = mc_machine_runtime_request_u64(rt, src, dst, draw_kind(), payload.word0, payload.word1);
        REQUIRE(id == 0 || mc_machine_runtime_pending_contains(pointer(rt), id) == 1);
        made_request(rt, id);
        return id != 0;
    });
}

void call_reply(uint64_t rt, const mc_machine_envelope_t *received) {
    const uint64_t src = draw_machine(rt), cap = draw_request(rt);
    const Payload payload = draw_payload(received);
    const bool known = index_of(rt) != SIZE_MAX;
    const unsigned letters = dead_letters;
    if (known && payload.box != SIZE_MAX)
        boxes[payload.box].given = true;
    const uint64_t result = mc_machine_runtime_reply_u64(rt, src, cap, draw_kind(), payload.word0, payload.word1);
    REQUIRE(known || result == MC_REPLY_CAP_UNKNOWN);
    REQUIRE(dead_letters == letters + (known && result != MC_REPLY_OK));
    REQUIRE(result != MC_REPLY_OK || mc_machine_runtime_pending_contains(pointer(rt), cap) == 0);
    settle(payload, known);
}

uint64_t call_spawn(uint64_t rt) {
    const uint64_t id =
        mc_machine_runtime_spawn_u64(rt, input.one_in(8) ? UINT64_MAX - input.below(4) : input.below(4));
    const size_t at = index_of(rt);
    REQUIRE((id != 0) == (at != SIZE_MAX) || lacked_memory);
    if (id == 0)
        return 0;
    std::vector<Machine> &machines = runtimes[at].machines;
    REQUIRE(machines.empty() || machines.back().id < id);
    machines.push_back({static_cast<uint32_t>(id), false, false, 0});
    return id;
}

mc_dispatch_result_t handler(void *, mc_machine_id_t, uint64_t, const mc_machine_envelope_t *,
                             mc_machine_dispatch_txn_t *, uint64_t *);

// What its state was belongs to who had it: the machine has none then.
void call_bind(uint64_t rt, uint64_t id) {
    (void)mc_machine_runtime_set_state_u64(rt, id, 0);
    const uint64_t fn = input.one_in(8) ? 0 : reinterpret_cast<uint64_t>(handler);
    const unsigned way = input.below(3);
    uint64_t bound = 0;
    if (way == 0)
        bound = mc_machine_runtime_bind_dispatch_u64(rt, id, fn, input.below(2));
    else if (way == 1)
        bound = mc_machine_runtime_bind_dispatch_thunk_u64(rt, id, input.below(thunk_count + 2), 0);
    else
        bound = mc_machine_runtime_bind_descriptor_u64(rt, id, input.below(3), 1 + input.below(states));
    if (Machine *machine = machine_of(index_of(rt), id); machine != nullptr && bound != 0) {
        machine->described = way == 2;
        ++machine->bindings;
    }
}

// had: what the handler that calls has in hand.
void call_set_state(uint64_t rt, uint64_t id, uint64_t had) {
    const auto narrow = static_cast<uint32_t>(id);
    const uint64_t has = narrow == id ? mc_machine_runtime_state(pointer(rt), narrow) : 0;
    const Payload state = draw_state(machine_of(index_of(rt), id), has, had);
    settle(state, mc_machine_runtime_set_state_u64(rt, id, state.word0) == 1);
}

// One that is ready to run, most times.
void call_machine(uint64_t rt) {
    const uint64_t machine = call_spawn(rt);
    call_bind(rt, machine);
    if (!input.one_in(8))
        (void)mc_machine_runtime_start_u64(rt, machine);
}

void call_end(uint64_t rt) {
    end_runtime(rt);
    const bool is_managed = rt == mc_machine_runtime_managed_current_u64(); // then free says that there is none
    switch (is_managed ? 0 : input.below(4)) {
    case 0:
        mc_machine_runtime_free(rt);
        break;
    case 1:
        mc_machine_runtime_drop(pointer(rt));
        break;
    case 2:
        mc_machine_runtime_free(rt);
        mc_machine_runtime_free(rt);
        break;
    default:
        mc_machine_runtime_free(rt);
        mc_machine_runtime_drop(pointer(rt));
    }
    REQUIRE(mc_machine_runtime_spawn_u64(rt, 1) == 0);
}

void call_begin() {
    const unsigned which = input.below(3);
    if (which == 2)
        return begin_runtime(mc_machine_runtime_new());
    const uint64_t word = reinterpret_cast<uint64_t>(&storage[which]);
    end_runtime(word);
    mc_machine_runtime_init(&storage[which]);
    mc_machine_runtime_set_pending_timeout_steps(&storage[which], 1);
    const bool made = mc_machine_runtime_pending_timeout_steps(&storage[which]) == 1;
    mc_machine_runtime_set_pending_timeout_steps(&storage[which], 0);
    REQUIRE(made || lacked_memory);
    if (made)
        begin_runtime(word);
}

void call_managed() {
    const uint64_t before = mc_machine_runtime_managed_current_u64();
    if (input.one_in(3)) {
        end_runtime(before);
        REQUIRE(mc_machine_runtime_managed_shutdown_u64() == (before != 0));
        REQUIRE(mc_machine_runtime_managed_current_u64() == 0);
        return;
    }
    const uint64_t word = mc_machine_runtime_managed_bootstrap_u64();
    REQUIRE(before == 0 || word == before);
    if (before == 0)
        begin_runtime(word);
}

void call_setting(uint64_t rt) {
    mc_machine_runtime_t *at = pointer(rt);
    const auto machine = static_cast<uint32_t>(draw_machine(rt));
    switch (input.below(6)) {
    case 0:
        mc_machine_runtime_set_fault_policy(at, input.one_in(2) ? MC_FAULT_POLICY_MARK_STOPPED
                                                                : MC_FAULT_POLICY_MARK_FAULTED);
        break;
    case 1:
        mc_machine_runtime_set_pending_timeout_steps(at, input.one_in(6) ? input.word() : input.below(5));
        break;
    case 2:
        (void)mc_machine_runtime_mark_faulted(at, machine);
        break;
    case 3:
        call_set_state(rt, draw_machine(rt), 0);
        break;
    case 4:
        (void)mc_machine_runtime_subscription_contains(at, machine, draw_kind(), input.below(2));
        (void)mc_machine_runtime_pending_request_site(at, draw_request(rt));
        (void)mc_machine_runtime_pending_contains_identity(at, draw_request(rt), input.below(3));
        break;
    default:
        (void)mc_machine_runtime_stop(at, machine);
        REQUIRE(mc_machine_runtime_lifecycle(at, machine) == MC_MACHINE_STOPPED);
    }
}

void call_step(uint64_t rt) {
    const size_t at = index_of(rt);
    const bool refused = at == SIZE_MAX || runtimes[at].handlers != 0;
    const bool nothing = refused || mc_machine_runtime_ready_len(pointer(rt)) == 0;
    if (depth >= most_depth)
        return;
    running[depth + 1] = at;
    if (input.one_in(6)) {
        const uint8_t stepped = mc_machine_runtime_dispatch_one_txn(pointer(rt), handler, nullptr);
        REQUIRE(!nothing || stepped == 0);
        return;
    }
    const uint64_t status = mc_machine_runtime_step_u64(rt);
    REQUIRE(!nothing || status == MC_STEP_IDLE);
    REQUIRE(status <= MC_STEP_FAULTED);
}

// received: the envelope of the handler that calls, or null. Its boxes are its own runtime's.
void call(const mc_machine_envelope_t *received) {
    const uint64_t rt = draw_runtime();
    if (received != nullptr && index_of(rt) != running[depth])
        received = nullptr;
    const unsigned dice = input.below(64);
    if (dice == 0)
        return call_begin();
    if (dice == 1)
        return call_end(rt);
    if (dice == 2)
        return call_managed();
    if (dice < 9)
        return call_machine(rt);
    if (dice < 10)
        (void)mc_machine_runtime_start_u64(rt, draw_machine(rt));
    else if (dice < 12)
        call_bind(rt, draw_machine(rt));
    else if (dice < 14)
        call_setting(rt);
    else if (dice < 24)
        call_send(rt, received);
    else if (dice < 30)
        call_request(rt, received);
    else if (dice < 34)
        call_reply(rt, received);
    else
        call_step(rt);
}

// --- handlers ---

void emit(uint64_t rt, const mc_machine_envelope_t *received) {
    const Payload payload = draw_payload(received);
    for (unsigned times = 1 + input.one_in(5); times > 0; --times) { // twice: one box still
        bool staged = false;
        switch (input.below(4)) {
        case 0:
            staged = __mc_machine_emit_send(draw_machine(rt), draw_kind(), payload.word0, payload.word1) == 1;
            break;
        case 1: {
            const uint64_t id =
                __mc_machine_emit_request(draw_machine(rt), draw_kind(), payload.word0, payload.word1, input.below(3));
            made_request(rt, id);
            staged = id != 0;
            break;
        }
        case 2: {
            const uint64_t cap = received != nullptr && input.below(3) != 0 ? received->reply_cap_id : draw_request(rt);
            staged = __mc_machine_emit_reply(cap, draw_kind(), payload.word0, payload.word1) == 1;
            break;
        }
        default:
            staged = __mc_machine_emit_publish(draw_kind(), input.below(2), payload.word0, payload.word1) == 1;
            REQUIRE(!staged || (payload.word1 & owned) == 0);
        }
        REQUIRE(!staged || depth > 0);
        if (staged)
            settle(payload, true);
    }
    settle(payload, false);
}

// What a handler fills in; read when it has returned, so each depth has its own.
struct Filled {
    mc_machine_outbox_effect_t outbox[most_filled];
    mc_machine_request_effect_t requests[most_filled];
    mc_machine_reply_effect_t replies[most_filled];
    mc_subscription_update_t subscriptions[most_filled];
};
Filled filled[most_depth + 1];

mc_machine_envelope_t fill_envelope(const mc_machine_envelope_t *received) {
    const Payload payload = draw_payload(received);
    settle(payload, true);
    return draw_envelope(payload);
}

void fill(uint64_t rt, const mc_machine_envelope_t *received, Filled &out, mc_machine_dispatch_txn_t *txn) {
    const auto narrow = [&] { return static_cast<uint32_t>(draw_machine(rt)); };
    for (txn->outbox_len = 0; txn->outbox_len < most_filled && input.one_in(3); ++txn->outbox_len)
        out.outbox[txn->outbox_len] = {narrow(), fill_envelope(received)};
    for (txn->requests_len = 0; txn->requests_len < most_filled && input.one_in(4); ++txn->requests_len)
        out.requests[txn->requests_len] = {narrow(), input.one_in(3) ? draw_request(rt) : 0, input.below(3),
                                           fill_envelope(received)};
    for (txn->replies_len = 0; txn->replies_len < most_filled && input.one_in(4); ++txn->replies_len)
        out.replies[txn->replies_len] = {input.one_in(2) ? received->reply_cap_id : draw_request(rt),
                                         fill_envelope(received)};
    for (txn->subscriptions_len = 0; txn->subscriptions_len < most_filled && input.one_in(3); ++txn->subscriptions_len)
        out.subscriptions[txn->subscriptions_len] = {input.one_in(3) ? MC_SUBSCRIPTION_REMOVE : MC_SUBSCRIPTION_ADD,
                                                     narrow(), draw_kind(), input.below(2)};
    txn->outbox = out.outbox;
    txn->requests = out.requests;
    txn->replies = out.replies;
    txn->subscriptions = out.subscriptions;
}

// Of a machine that is bound as it was, or nobody could say whose the token is.
void fill_state(size_t at, const Machine &before, uint64_t had, mc_machine_dispatch_txn_t *txn) {
    const Machine *machine = machine_of(at, before.id);
    if (machine == nullptr || machine->bindings != before.bindings || input.one_in(3))
        return;
    const uint64_t has = runtimes[at].live ? mc_machine_runtime_state(pointer(runtimes[at].word), before.id) : had;
    const Payload state = draw_state(machine, has, had);
    settle(state, true);
    txn->has_next_state = 1;
    txn->next_state = state.word0;
    txn->next_state_tag = input.below(states + 1);
}

mc_dispatch_result_t handler(void *, mc_machine_id_t id, uint64_t state, const mc_machine_envelope_t *received,
                             mc_machine_dispatch_txn_t *txn, uint64_t *fault_code) {
    ++depth;
    const size_t at = running[depth];
    const uint64_t rt = runtimes[at].word;
    ++runtimes[at].handlers;
    const Machine *machine = machine_of(at, id);
    REQUIRE(machine != nullptr);
    const Machine before = *machine;
    const bool has_token = before.described && state != 0;
    const uint64_t token = has_token ? *reinterpret_cast<uint64_t *>(state) : 0;
    const auto leave = [&] {
        --runtimes[at].handlers;
        --depth;
    };
    for (unsigned acts = input.below(5); acts > 0; --acts) {
        if (input.one_in(3))
            call(received);
        else if (input.one_in(8) && runtimes[at].live)
            call_set_state(rt, id, machine_of(at, id)->bindings == before.bindings ? state : 0);
        else
            emit(rt, received);
    }
    REQUIRE(!has_token || (boxes[token].block == reinterpret_cast<uint64_t *>(state) && !boxes[token].dropped));
    if (input.one_in(24)) {
        leave();
        throw 7;
    }
    if (input.one_in(2))
        fill(rt, received, filled[depth], txn);
    fill_state(at, before, state, txn);
    leave();
    const unsigned answer = input.below(12);
    *fault_code = answer;
    return answer == 11 ? MC_DISPATCH_STOP : answer == 10 ? MC_DISPATCH_FAULT : MC_DISPATCH_OK;
}

// --- the whole ---

void check_runtimes() {
    for (Runtime &runtime : runtimes) {
        const mc_machine_runtime_t *rt = pointer(runtime.word);
        if (!runtime.live)
            continue;
        uint64_t ended = 0;
        for (const mc_pending_cleanup_reason_t reason :
             {MC_PENDING_CLEANUP_COMPLETED, MC_PENDING_CLEANUP_REQUESTER_STOPPED, MC_PENDING_CLEANUP_REQUESTER_FAULTED,
              MC_PENDING_CLEANUP_TIMEOUT})
            ended += mc_machine_runtime_pending_cleanup_count(rt, reason);
        REQUIRE(mc_machine_runtime_pending_created_count(rt) == ended + mc_machine_runtime_pending_len(rt));
        for (Machine &machine : runtime.machines) {
            const bool stopped = mc_machine_runtime_lifecycle(rt, machine.id) == MC_MACHINE_STOPPED;
            REQUIRE(stopped || !machine.stopped);
            REQUIRE(!stopped || mc_machine_runtime_mailbox_len(rt, machine.id) == 0);
            machine.stopped = stopped;
        }
    }
}

void begin_process() {
    static bool begun = false;
    if (begun)
        return;
    begun = true;
    mc_allocator allocator = MC_ALLOCATOR_INIT;
    allocator.alloc = allocate;
    allocator.free = deallocate;
    REQUIRE(mc_set_allocator(&allocator) == MC_OK);
    mc_set_log_hook([](void *, int32_t, int32_t, const char *) {}, nullptr);
    for (uint64_t layout = 1; layout <= dropped_layouts; ++layout)
        mc_machine_runtime_register_payload_drop(layout, drop_box);
    mc_machine_runtime_register_payload_drop(token_layout, drop_box);
    for (uint64_t id = 1; id <= thunk_count; ++id)
        mc_machine_runtime_register_thunk_meta_u64(id, reinterpret_cast<uint64_t>(handler), id % (states + 1));
    std::string bytes("MCHD\1\0\0\0\0\0\0\0", 12);
    const auto number = [&](uint64_t value, unsigned size) {
        for (unsigned i = 0; i < size; ++i)
            bytes += static_cast<char>(value >> (8 * i));
    };
    for (const uint64_t count : {states, uint64_t{0}, states * (kinds - 1), uint64_t{0}})
        number(count, 4);
    for (uint64_t state = 1; state <= states; ++state) {
        for (const uint64_t value : {state, uint64_t{0}, token_layout})
            number(value, 8);
        number(0, 4); // no name
    }
    for (uint64_t state = 1; state <= states; ++state)
        for (uint64_t kind = 0; kind < kinds - 1; ++kind) // one kind has no row, and one thunk is not there
            for (const uint64_t value :
                 {state, kind, kind == 2 ? state : 0, (state + kind) % 2 * (kind + 1), state + 1})
                number(value, 8);
    REQUIRE(mc_machine_runtime_register_descriptor_u64(reinterpret_cast<uint64_t>(bytes.data()), bytes.size()) == 1);
}

void clean_up() {
    for (const Runtime &runtime : runtimes)
        if (runtime.live)
            mc_machine_runtime_free(runtime.word);
    for (const Box &box : boxes)
        if (box.given && ((box.layout >= 1 && box.layout <= dropped_layouts) || box.layout == token_layout))
            REQUIRE(box.dropped);
    REQUIRE(__mc_alloc_live_blocks() == blocks_before);
    REQUIRE(mc_machine_runtime_managed_current_u64() == 0);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    begin_process();
    input = Input(data, size);
    boxes.clear();
    runtimes.clear();
    blocks_before = __mc_alloc_live_blocks();
    begin_runtime(mc_machine_runtime_new());
    for (unsigned machines = 1 + input.below(4); machines > 0; --machines)
        call_machine(runtimes[0].word);
    for (steps = 0; steps < most_steps && !input.empty(); ++steps) {
        lacked_memory = false;
        fails_in = input.one_in(4) ? 1 + input.below(8) : 0;
        call(nullptr);
        fails_in = 0;
        if (input.one_in(16))
            emit(draw_runtime(), nullptr);
        check_runtimes();
    }
    clean_up();
    return 0;
}
