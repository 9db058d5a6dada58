#include "machine/blob.hpp"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace mc::machine {
namespace {

constexpr char magic[4] = {'M', 'C', 'H', 'D'};
constexpr uint32_t known_schema = 1;
constexpr uint32_t most_key_kind = 1;

// False, always.
[[gnu::format(printf, 3, 4)]] bool refuse(Defect *defect, uint64_t offset, const char *format, ...) noexcept {
    const int length = std::snprintf(defect->text, sizeof defect->text, "offset %" PRIu64 ": ", offset);
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(defect->text + length, sizeof defect->text - static_cast<size_t>(length), format, arguments);
    va_end(arguments);
    return false;
}

bool refuse_end(Defect *defect, const Cursor &at, const char *what, uint32_t number) noexcept {
    return refuse(defect, at.offset(), "%s %" PRIu32 ": %" PRIu64 " bytes are wanted, and %" PRIu64 " are left", what,
                  number, at.wanted(), at.left());
}

} // namespace

// --- Cursor ---

const unsigned char *Cursor::take(uint64_t bytes) noexcept {
    if (failed())
        return nullptr;
    if (bytes > left()) {
        wanted_ = bytes;
        return nullptr;
    }
    const unsigned char *taken = start_ + at_;
    at_ += bytes;
    return taken;
}

uint64_t Cursor::number(unsigned bytes) noexcept {
    const unsigned char *taken = take(bytes);
    uint64_t number = 0;
    for (unsigned i = bytes; taken != nullptr && i-- > 0;)
        number = number << 8 | taken[i];
    return number;
}

const char *Cursor::string(uint64_t *len) noexcept {
    *len = u32();
    if (const unsigned char *taken = take(*len))
        return reinterpret_cast<const char *>(taken);
    *len = 0;
    return "";
}

// --- Entries ---

mc_machine_descriptor_state Blob::read_state(Cursor &at) noexcept {
    mc_machine_descriptor_state state{};
    state.tag = at.u64();
    state.type_def = at.u64();
    state.layout = at.u64();
    state.name = at.string(&state.name_len);
    return state;
}

mc_machine_descriptor_event Blob::read_event(Cursor &at) noexcept {
    mc_machine_descriptor_event event{};
    event.kind = at.u64();
    event.layout = at.u64();
    event.key_kind = at.u8();
    event.name = at.string(&event.name_len);
    event.second_name = "";
    if (event.key_kind == 1)
        event.second_name = at.string(&event.second_name_len);
    return event;
}

mc_machine_dispatch_row_t Blob::read_row(Cursor &at) noexcept {
    mc_machine_dispatch_row_t row{};
    row.state_tag = at.u64();
    row.event_kind = at.u64();
    row.request_site_key = at.u64();
    row.state_local_thunk_id = at.u64();
    row.fallback_thunk_id = at.u64();
    return row;
}

mc_machine_descriptor_role Blob::read_role(Cursor &at) noexcept {
    mc_machine_descriptor_role role{};
    role.path = at.string(&role.path_len);
    role.def = at.u64();
    return role;
}

// --- Blob ---

bool Blob::check_head(Cursor &at, Defect *defect) noexcept {
    char found[sizeof magic];
    for (char &byte : found)
        byte = static_cast<char>(at.u8());
    if (at.failed() || std::memcmp(found, magic, sizeof magic) != 0)
        return refuse(defect, 0, "it does not begin with \"MCHD\"");
    const uint64_t schema_at = at.offset();
    const uint32_t schema = at.u32();
    if (!at.failed() && schema != known_schema)
        return refuse(defect, schema_at, "schema %" PRIu32 ", and only %" PRIu32 " is known", schema, known_schema);
    head_.name = at.string(&head_.name_len);
    const uint64_t counts_at = at.offset();
    head_.states = at.u32();
    head_.events = at.u32();
    head_.rows = at.u32();
    head_.roles = at.u32();
    if (at.failed())
        return refuse(defect, at.offset(), "head: %" PRIu64 " bytes are wanted, and %" PRIu64 " are left", at.wanted(),
                      at.left());
    // At most 2^32 entries of each kind: no overflow.
    const uint64_t least =
        head_.states * least_state + head_.events * least_event + head_.rows * least_row + head_.roles * least_role;
    if (least > at.left())
        return refuse(defect, counts_at,
                      "%" PRIu32 " states, %" PRIu32 " events, %" PRIu32 " rows and %" PRIu32 " roles need %" PRIu64
                      " bytes, and %" PRIu64 " are left",
                      head_.states, head_.events, head_.rows, head_.roles, least, at.left());
    return true;
}

bool Blob::check_entries(Cursor &at, Defect *defect) noexcept {
    states_ = at;
    for (uint32_t i = 0; i < head_.states; ++i)
        if ((void)read_state(at), at.failed())
            return refuse_end(defect, at, "state", i);
    events_ = at;
    for (uint32_t i = 0; i < head_.events; ++i) {
        const uint64_t event_at = at.offset();
        const uint32_t key_kind = read_event(at).key_kind;
        if (key_kind > most_key_kind)
            return refuse(defect, event_at + 16, "event %" PRIu32 ": key kind %" PRIu32 " is neither 0 nor 1", i,
                          key_kind);
        if (at.failed())
            return refuse_end(defect, at, "event", i);
    }
    rows_ = at;
    for (uint32_t i = 0; i < head_.rows; ++i)
        if ((void)read_row(at), at.failed())
            return refuse_end(defect, at, "row", i);
    roles_ = at;
    for (uint32_t i = 0; i < head_.roles; ++i)
        if ((void)read_role(at), at.failed())
            return refuse_end(defect, at, "role", i);
    if (at.left() != 0)
        return refuse(defect, at.offset(), "%" PRIu64 " bytes too many", at.left());
    return true;
}

bool Blob::check(const void *bytes, uint64_t len, Blob *out, Defect *defect) noexcept {
    if (bytes == nullptr)
        return refuse(defect, 0, "there is no blob");
    Blob blob;
    Cursor at(bytes, len);
    if (!blob.check_head(at, defect) || !blob.check_entries(at, defect))
        return false;
    *out = blob;
    return true;
}

} // namespace mc::machine
