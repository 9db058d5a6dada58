// What histories of machines are made of, for the library's side (history_test.cpp) and the reference's (test_model.hpp).
#pragma once

#include <mc/machine.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace mc::machine::test {

// What a history is made of: calls, and what a handler does: calls at once, effects that it emits, or fills in. The first six
// are effects, in the order in which a commit carries them out. Which numbers mean what depends on `what`.
enum class What { subscribe, unsubscribe, send, ask, reply, publish, stop, start, fault, spawn, state };
enum class Way { direct, emitted, filled };
enum class Words { plain, fresh, received, again }; // a new box; what is being handled; those of the effect before
struct Action {
    What what = What::send;
    Way way = Way::direct;
    uint32_t machine = 0; // destination, or whom it is done to
    uint32_t other = 0;   // source
    uint64_t number = 0;  // capability, pending id, routing, state, capacity
    uint64_t kind = 0, payload0 = 0, payload1 = 0, site = 0;
    Words words = Words::plain; // the library's side finds them, and writes them down here
};
struct Plan {
    std::vector<Action> actions;
    mc_dispatch_result_t result = MC_DISPATCH_OK;
    uint64_t code = 0, has_next = 0, next = 0, next_tag = 0;
};

inline std::string text(const char *what, std::initializer_list<uint64_t> numbers) {
    std::string all = what;
    for (const uint64_t number : numbers)
        all += " " + std::to_string(number);
    return all;
}
inline std::string text(const char *what, std::initializer_list<uint64_t> numbers, const mc_machine_envelope_t &e) {
    return text(what, numbers) + text(":", {e.kind, e.src, e.reply_cap_id, e.pending_id, e.payload0, e.payload1,
                                            e.origin_payload0, e.origin_payload1, e.origin_request_site_key});
}

// The descriptor of every other machine; the rest (of tag 0) have a function. Every state but 2 owns its tokens.
struct Row {
    uint64_t tag, kind, thunk, next_tag;
};
inline constexpr uint64_t token_layout = 4003, last_tag = 3, last_kind = 3;
inline constexpr Row rows[] = {{1, 0, 7200, 0}, {1, 1, 7203, 3}, {1, 2, 7202, 2}, {1, 3, 7200, 0}, {2, 0, 7200, 0},
                               {2, 1, 7201, 1}, {2, 2, 7203, 3}, {3, 0, 7202, 2}, {3, 1, 7201, 1}, {3, 3, 7200, 0}};
inline const Row *row_of(uint64_t tag, uint64_t kind) {
    for (const Row &row : rows)
        if (row.tag == tag && row.kind == kind)
            return &row;
    return nullptr;
}
inline uint64_t layout_of_state(uint64_t tag) { return tag == 1 || tag == 3 ? token_layout : 0; }
inline uint64_t first_tag(uint64_t id) { return id % 2 != 0 ? 0 : 1 + id / 2 % last_tag; }

} // namespace mc::machine::test
