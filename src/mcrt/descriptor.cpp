#include "mcrt/descriptor.hpp"

#include "mcrt/stop.hpp"
#include "mcrt/text.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <tuple>

namespace mc::mcrt {
namespace {

template <class Items, class Field>
auto find(const Items &items, Field field, uint64_t number) -> const typename Items::value_type * {
    const auto found =
        std::find_if(items.begin(), items.end(), [&](const auto &item) { return item.*field == number; });
    return found == items.end() ? nullptr : &*found;
}

} // namespace

const Descriptor::State *find_state(const Descriptor &descriptor, uint64_t tag) {
    return find(descriptor.states, &Descriptor::State::tag, tag);
}
const Descriptor::Event *find_event(const Descriptor &descriptor, uint64_t kind) {
    return find(descriptor.events, &Descriptor::Event::kind, kind);
}
const Descriptor::Thunk *find_thunk(const Descriptor &descriptor, uint64_t id) {
    return find(descriptor.thunks, &Descriptor::Thunk::id, id);
}

uint64_t thunk_of(const Descriptor::Row &row) {
    return row.state_local_thunk_id != 0 ? row.state_local_thunk_id : row.fallback_thunk_id;
}

// --- shown ---

std::string shown_number(uint64_t number) {
    constexpr uint64_t most_decimal = 999'999'999;
    if (number <= most_decimal)
        return std::to_string(number);
    char text[24];
    std::snprintf(text, sizeof text, "0x%" PRIx64, number);
    return text;
}

std::string shown_state(const Descriptor &descriptor, uint64_t tag) {
    const Descriptor::State *state = find_state(descriptor, tag);
    return state == nullptr || state->name.empty() ? "state " + shown_number(tag) : clean(state->name);
}

std::string shown_event(const Descriptor::Event &event) {
    if (event.name.empty() && event.second_name.empty())
        return "event " + shown_number(event.kind);
    return clean(event.name) + (event.two_names ? ", " + clean(event.second_name) : "");
}

std::string shown_event(const Descriptor &descriptor, uint64_t kind) {
    const Descriptor::Event *event = find_event(descriptor, kind);
    return event == nullptr ? "event " + shown_number(kind) : shown_event(*event);
}

std::string shown_thunk(const Descriptor &descriptor, uint64_t id) {
    const Descriptor::Thunk *thunk = find_thunk(descriptor, id);
    return thunk == nullptr || thunk->name.empty() ? "thunk " + shown_number(id) : clean(thunk->name);
}

// --- doubts ---

namespace {

// Tells of what has been there before; `what` of something, by its place and its number.
class Doubts {
public:
    explicit Doubts(const Descriptor &descriptor) : descriptor_(descriptor) {
        find_repeated(descriptor.states, &Descriptor::State::tag, "states", "tag");
        find_repeated(descriptor.events, &Descriptor::Event::kind, "events", "kind");
        find_repeated(descriptor.thunks, &Descriptor::Thunk::id, "thunks", "id");
        for (size_t i = 0; i < descriptor.rows.size(); ++i)
            judge(i, descriptor.rows[i]);
    }
    std::vector<Doubt> all;

private:
    template <class Items, class Field>
    void find_repeated(const Items &items, Field field, const std::string &list, const std::string &key) {
        std::map<uint64_t, size_t> seen;
        for (size_t i = 0; i < items.size(); ++i)
            if (const auto [before, is_new] = seen.try_emplace(items[i].*field, i); !is_new)
                doubt(true, list, i,
                      "has " + key + " " + shown_number(before->first) + " as " + place(list, before->second));
    }
    void judge(size_t i, const Descriptor::Row &row) {
        const auto key = std::tuple{row.state_tag, row.event_kind, row.request_site_key};
        if (const auto [before, is_new] = rows_.try_emplace(key, i); !is_new)
            doubt(true, "rows", i, "has state, event and site of " + place("rows", before->second));
        if (!descriptor_.states.empty() && find_state(descriptor_, row.state_tag) == nullptr)
            doubt(false, "rows", i, "state " + shown_number(row.state_tag) + " is not in the descriptor");
        if (!descriptor_.events.empty() && find_event(descriptor_, row.event_kind) == nullptr)
            doubt(false, "rows", i, "event " + shown_number(row.event_kind) + " is not in the descriptor");
        if (thunk_of(row) == 0)
            doubt(false, "rows", i, "has no thunk");
    }
    static std::string place(const std::string &list, size_t i) { return list + "[" + std::to_string(i) + "]"; }
    void doubt(bool grave, const std::string &list, size_t i, const std::string &text) {
        all.push_back({grave, place(list, i) + ": " + text});
    }

    const Descriptor &descriptor_;
    std::map<std::tuple<uint64_t, uint64_t, uint64_t>, size_t> rows_;
};

} // namespace

std::vector<Doubt> doubts_of(const Descriptor &descriptor) { return Doubts(descriptor).all; }

// --- blobs ---

Descriptor from_blob(const std::string &bytes, const std::string &path) {
    Descriptor descriptor;
    mc_machine_descriptor_visitor visitor = MC_MACHINE_DESCRIPTOR_VISITOR_INIT;
    visitor.head = [](void *user, const mc_machine_descriptor_head *head) {
        auto *out = static_cast<Descriptor *>(user);
        out->name.assign(head->name, head->name_len);
        out->states.reserve(head->states);
        out->rows.reserve(head->rows);
    };
    visitor.state = [](void *user, const mc_machine_descriptor_state *state) {
        static_cast<Descriptor *>(user)->states.push_back(
            {state->tag, state->type_def, state->layout, {state->name, state->name_len}});
    };
    visitor.event = [](void *user, const mc_machine_descriptor_event *event) {
        static_cast<Descriptor *>(user)->events.push_back({event->kind,
                                                           event->layout,
                                                           event->key_kind == 1,
                                                           {event->name, event->name_len},
                                                           {event->second_name, event->second_name_len}});
    };
    visitor.row = [](void *user, const mc_machine_dispatch_row_t *row) {
        static_cast<Descriptor *>(user)->rows.push_back(*row);
    };
    visitor.role = [](void *user, const mc_machine_descriptor_role *role) {
        static_cast<Descriptor *>(user)->roles.push_back({{role->path, role->path_len}, role->def});
    };
    char why[MC_MACHINE_DESCRIPTOR_ERROR_BYTES] = "no memory for it"; // of a visitor that threw
    if (mc_machine_descriptor_parse(bytes.data(), bytes.size(), &visitor, &descriptor, why, sizeof why) != MC_OK)
        throw Stop{status_usage, path + ": no descriptor: " + why};
    return descriptor;
}

namespace {

class Bytes {
public:
    void number(uint64_t value, unsigned bytes) {
        for (unsigned i = 0; i < bytes; ++i)
            out += static_cast<char>(value >> (8 * i));
    }
    void u32(uint64_t value) { number(value, 4); }
    void u64(uint64_t value) { number(value, 8); }
    void string(const std::string &text) {
        u32(text.size());
        out += text;
    }
    std::string out;
};

} // namespace

std::string to_blob(const Descriptor &descriptor) {
    Bytes bytes;
    bytes.out = "MCHD";
    bytes.u32(1);
    bytes.string(descriptor.name);
    for (const size_t count :
         {descriptor.states.size(), descriptor.events.size(), descriptor.rows.size(), descriptor.roles.size()})
        bytes.u32(count);
    for (const Descriptor::State &state : descriptor.states) {
        for (const uint64_t number : {state.tag, state.type_def, state.layout})
            bytes.u64(number);
        bytes.string(state.name);
    }
    for (const Descriptor::Event &event : descriptor.events) {
        bytes.u64(event.kind);
        bytes.u64(event.layout);
        bytes.number(event.two_names ? 1 : 0, 1);
        bytes.string(event.name);
        if (event.two_names)
            bytes.string(event.second_name);
    }
    for (const Descriptor::Row &row : descriptor.rows)
        for (const uint64_t number :
             {row.state_tag, row.event_kind, row.request_site_key, row.state_local_thunk_id, row.fallback_thunk_id})
            bytes.u64(number);
    for (const Descriptor::Role &role : descriptor.roles) {
        bytes.string(role.path);
        bytes.u64(role.def);
    }
    return std::move(bytes.out);
}

} // namespace mc::mcrt
