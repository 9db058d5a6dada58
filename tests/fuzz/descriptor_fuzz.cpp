// Fuzz target: the bytes of descriptors (mc/machine.h).
//
// An input that begins with "MCHD" is the bytes themselves. Any other is a recipe for a descriptor without defects: a machine
// with it must call, for random states, events and sites, the thunk that a plain list of the rows has. What is left of the
// recipe says which bytes of it to spoil.
//
// Of all bytes must hold: reading and registering agree on whether they are a descriptor. When they are, what the visitor is told,
// written down again, is those bytes; and they are none any more with their last byte gone or one more behind it. When they
// are not, the text has a place that lies in them, and the visitor was told nothing.
//
// Built by tests/fuzz/run with libFuzzer, and by tests/fuzz_replay_descriptor.cpp, which plays the corpus and random inputs.
#include "input.hpp"

#include <mc/mc.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Row = mc_machine_dispatch_row_t;
constexpr uint64_t thunks = 8;                // registered: 1 to 8
constexpr uint64_t most_registered = 200'000; // in a process: nobody gives a descriptor back

class Input : public fuzz::Input {
public:
    using fuzz::Input::Input;
    // Small, or wide: so that keys meet, and lie far apart.
    uint64_t number() {
        const uint64_t small = below(5);
        const unsigned shape = below(4);
        return shape < 2 ? small : shape == 2 ? small << 60 : UINT64_MAX - small;
    }
};

class Bytes {
public:
    void number(uint64_t value, unsigned bytes) {
        for (unsigned i = 0; i < bytes; ++i)
            all.push_back(static_cast<char>(value >> (8 * i)));
    }
    void string(const char *text, uint64_t len) {
        number(len, 4);
        all.append(text, len);
    }
    std::string all;
};

// Writes down what it is told.
struct Told {
    Bytes bytes;
    unsigned calls = 0;

    static Told &of(void *user) {
        auto *told = static_cast<Told *>(user);
        ++told->calls;
        return *told;
    }
    static void head(void *user, const mc_machine_descriptor_head *head) {
        Bytes &out = of(user).bytes;
        out.all = "MCHD";
        out.number(1, 4);
        out.string(head->name, head->name_len);
        for (const uint32_t count : {head->states, head->events, head->rows, head->roles})
            out.number(count, 4);
    }
    static void state(void *user, const mc_machine_descriptor_state *state) {
        Bytes &out = of(user).bytes;
        for (const uint64_t number : {state->tag, state->type_def, state->layout})
            out.number(number, 8);
        out.string(state->name, state->name_len);
    }
    static void event(void *user, const mc_machine_descriptor_event *event) {
        Bytes &out = of(user).bytes;
        out.number(event->kind, 8);
        out.number(event->layout, 8);
        out.number(event->key_kind, 1);
        out.string(event->name, event->name_len);
        if (event->key_kind == 1)
            out.string(event->second_name, event->second_name_len);
    }
    static void row(void *user, const Row *row) {
        Bytes &out = of(user).bytes;
        for (const uint64_t number : {row->state_tag, row->event_kind, row->request_site_key, row->state_local_thunk_id,
                                      row->fallback_thunk_id})
            out.number(number, 8);
    }
    static void role(void *user, const mc_machine_descriptor_role *role) {
        Bytes &out = of(user).bytes;
        out.string(role->path, role->path_len);
        out.number(role->def, 8);
    }
};

// Copied to where nothing lies behind them, for AddressSanitizer to see.
class Exact {
public:
    explicit Exact(const std::string &bytes)
        : at_(static_cast<uint8_t *>(std::malloc(bytes.size() + 1))), size_(bytes.size()) {
        at_ = static_cast<uint8_t *>(std::realloc(at_, std::max<size_t>(size_, 1)));
        std::memcpy(at_, bytes.data(), size_);
    }
    Exact(const Exact &) = delete;
    Exact &operator=(const Exact &) = delete;
    ~Exact() { std::free(at_); }
    const uint8_t *data() const { return at_; }
    size_t size() const { return size_; }

private:
    uint8_t *at_;
    size_t size_;
};

bool is_descriptor(const std::string &bytes) {
    const Exact exact(bytes);
    return mc_machine_descriptor_parse(exact.data(), exact.size(), nullptr, nullptr, nullptr, 0) == MC_OK;
}

// The descriptor's number; 0: it is none, or enough are registered.
uint64_t check(const std::string &bytes) {
    mc_machine_descriptor_visitor visitor = MC_MACHINE_DESCRIPTOR_VISITOR_INIT;
    visitor.head = Told::head;
    visitor.state = Told::state;
    visitor.event = Told::event;
    visitor.row = Told::row;
    visitor.role = Told::role;
    Told told;
    char error[MC_MACHINE_DESCRIPTOR_ERROR_BYTES] = "";
    const Exact exact(bytes);
    const int32_t status =
        mc_machine_descriptor_parse(exact.data(), exact.size(), &visitor, &told, error, sizeof error);
    static uint64_t registered = 0;
    uint64_t id = 0;
    if (registered < most_registered) {
        id = mc_machine_runtime_register_descriptor(exact.data(), exact.size());
        REQUIRE((id != 0) == (status == MC_OK));
        registered += id != 0;
    }
    if (status == MC_OK) {
        REQUIRE(told.bytes.all == bytes);
        REQUIRE(!is_descriptor(bytes.substr(0, bytes.size() - 1)));
        REQUIRE(!is_descriptor(bytes + '\0'));
        return id;
    }
    REQUIRE(status == MC_E_INVAL && told.calls == 0);
    uint64_t offset = UINT64_MAX;
    REQUIRE(std::sscanf(error, "offset %" SCNu64 ": ", &offset) == 1 && offset <= bytes.size());
    return 0;
}

// --- a machine with it ---

uint64_t called; // the thunk that was, or 0
uint64_t fault;

template <uint64_t id>
mc_dispatch_result_t handler(void *, mc_machine_id_t, uint64_t, const mc_machine_envelope_t *,
                             mc_machine_dispatch_txn_t *, uint64_t *) {
    called = id;
    return MC_DISPATCH_OK;
}

template <uint64_t id> void register_handlers() {
    mc_machine_runtime_register_thunk(id, handler<id>);
    if constexpr (id < thunks)
        register_handlers<id + 1>();
}

// What must be called: the first row of the site, or else of any site. 0: the machine faults.
uint64_t wanted_thunk(const std::vector<Row> &rows, uint64_t state, uint64_t event, uint64_t site) {
    for (const uint64_t of : {site, uint64_t{0}})
        for (const Row &row : rows)
            if (row.state_tag == state && row.event_kind == event && row.request_site_key == of)
                return row.state_local_thunk_id != 0 ? row.state_local_thunk_id : row.fallback_thunk_id;
    return 0;
}

void check_dispatch(uint64_t descriptor, const std::vector<Row> &rows, uint64_t state, uint64_t event, uint64_t site) {
    static mc_machine_runtime_t rt;
    mc_machine_id_t machine = 0;
    mc_machine_runtime_init(&rt);
    mc_machine_runtime_set_hooks(
        &rt, nullptr, [](void *, mc_machine_id_t, uint64_t code) { fault = code; }, nullptr);
    REQUIRE(mc_machine_runtime_spawn(&rt, 1, &machine) == 1);
    REQUIRE(mc_machine_runtime_bind_descriptor(&rt, machine, descriptor, state) == 1);
    REQUIRE(mc_machine_runtime_start(&rt, machine) == 1);
    mc_machine_envelope_t envelope{};
    envelope.kind = event;
    envelope.origin_request_site_key = site;
    REQUIRE(mc_machine_runtime_enqueue(&rt, machine, &envelope) == MC_MAILBOX_ENQUEUE_OK);
    called = fault = 0;
    REQUIRE(mc_machine_runtime_dispatch_one_txn(&rt, nullptr, nullptr) == 1);
    const uint64_t wanted = wanted_thunk(rows, state, event, site);
    REQUIRE(called == (wanted > thunks ? 0 : wanted));
    REQUIRE(fault == (wanted == 0       ? MC_FAULT_CODE_DESCRIPTOR_ROW_MISSING
                      : wanted > thunks ? MC_FAULT_CODE_DESCRIPTOR_THUNK_MISSING
                                        : 0));
    mc_machine_runtime_drop(&rt);
}

// --- recipes ---

std::string make(Input &input, std::vector<Row> *rows) {
    static constexpr char letters[] = "descriptor\0\xff";
    Bytes bytes;
    const auto name = [&] { bytes.string(letters, input.below(sizeof letters)); };
    bytes.all = "MCHD";
    bytes.number(1, 4);
    name();
    const unsigned counts[] = {input.below(4), input.below(4), input.below(24), input.below(3)};
    for (const unsigned count : counts)
        bytes.number(count, 4);
    for (unsigned i = 0; i < counts[0]; ++i) {
        for (int field = 0; field < 3; ++field)
            bytes.number(field == 2 ? 0 : input.number(), 8); // tokens are the program's
        name();
    }
    for (unsigned i = 0; i < counts[1]; ++i) {
        bytes.number(input.number(), 8);
        bytes.number(input.number(), 8);
        const unsigned key_kind = input.below(2);
        bytes.number(key_kind, 1);
        for (unsigned strings = 0; strings <= key_kind; ++strings)
            name();
    }
    for (unsigned i = 0; i < counts[2]; ++i) {
        const Row row{input.number(), input.number(), input.number(), input.below(thunks + 2), input.below(thunks + 2)};
        rows->push_back(row);
        for (const uint64_t number :
             {row.state_tag, row.event_kind, row.request_site_key, row.state_local_thunk_id, row.fallback_thunk_id})
            bytes.number(number, 8);
    }
    for (unsigned i = 0; i < counts[3]; ++i) {
        name();
        bytes.number(input.number(), 8);
    }
    return bytes.all;
}

void spoil(Input &input, std::string bytes) {
    while (!input.empty() && !bytes.empty()) {
        const size_t at = (input.below(256) | input.below(256) << 8) % bytes.size();
        switch (input.below(4)) {
        case 0:
            bytes.resize(at);
            break;
        case 1:
            bytes.erase(at, 1);
            break;
        default:
            bytes[at] = static_cast<char>(input.below(256));
        }
        (void)check(bytes);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const bool begun = [] {
        mc_set_log_hook([](void *, int32_t, int32_t, const char *) {}, nullptr);
        register_handlers<1>();
        return true;
    }();
    (void)begun;
    if (size >= 4 && std::memcmp(data, "MCHD", 4) == 0) {
        (void)check({reinterpret_cast<const char *>(data), size});
        return 0;
    }
    Input input(data, size);
    std::vector<Row> rows;
    const std::string made = make(input, &rows);
    REQUIRE(is_descriptor(made));
    if (const uint64_t id = check(made)) {
        for (const Row &row : rows)
            check_dispatch(id, rows, row.state_tag, row.event_kind, row.request_site_key);
        for (int i = 0; i < 8; ++i)
            check_dispatch(id, rows, input.number(), input.number(), input.number());
    }
    spoil(input, made);
    return 0;
}
