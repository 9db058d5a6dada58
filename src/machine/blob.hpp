// A descriptor blob, schema 1: what a compiler emits for a typestate. Checks it from its first byte to its last, and walks it.
//
// Little-endian, without padding; a string is its length (u32) and its bytes, which may be any:
//
//   "MCHD"  schema u32  type name string  states, events, rows, roles: u32 each
//   state:  tag u64  type definition u64  layout u64  name string
//   event:  kind u64  layout u64  key kind u8  name string  (key kind 1: second name string)
//   row:    state tag, event kind, request site key, state-local thunk, fallback thunk: u64 each
//   role:   path string  definition u64
//
// Callers: any thread; pure, but for the bytes, which must stay as they are while a Blob refers to them. Nothing is
// allocated, whatever a count says: the counts are held against the bytes that are left before anything is read by them.
//
// What is no defect: rows that name states or events which the blob does not have (a compiler may leave those out), and two
// entries of one key (descriptor.hpp says which one counts). A compiler that emits them has run on other implementations.
//
// Rejected: visiting while checking (a visitor would have seen half of a bad blob).
#pragma once

#include <mc/machine.h>

#include <cstdint>

namespace mc::machine {

// What is wrong with a blob, and where: "offset 61: event 3: ...".
struct Defect {
    char text[200] = "";
};

// Reads one after another. From the first that is not there on, all reads as 0 or empty; offset() and wanted() tell of that one.
class Cursor {
public:
    Cursor() = default;
    Cursor(const void *bytes, uint64_t len) noexcept : start_(static_cast<const unsigned char *>(bytes)), len_(len) {}

    uint64_t offset() const noexcept { return at_; }
    uint64_t left() const noexcept { return len_ - at_; }
    bool failed() const noexcept { return wanted_ != 0; }
    uint64_t wanted() const noexcept { return wanted_; } // bytes, of which left() are there

    uint64_t number(unsigned bytes) noexcept;
    uint64_t u64() noexcept { return number(8); }
    uint32_t u32() noexcept { return static_cast<uint32_t>(number(4)); }
    uint8_t u8() noexcept { return static_cast<uint8_t>(number(1)); }
    const char *string(uint64_t *len) noexcept;

private:
    const unsigned char *take(uint64_t bytes) noexcept; // null: failed

    const unsigned char *start_ = nullptr;
    uint64_t len_ = 0;
    uint64_t at_ = 0;
    uint64_t wanted_ = 0; // 0: not failed
};

// A blob without defects.
class Blob {
public:
    static bool check(const void *bytes, uint64_t len, Blob *out, Defect *defect) noexcept;

    const mc_machine_descriptor_head &head() const noexcept { return head_; }
    template <class Act> void each_state(Act act) const { each(states_, head_.states, read_state, act); }
    template <class Act> void each_event(Act act) const { each(events_, head_.events, read_event, act); }
    template <class Act> void each_row(Act act) const { each(rows_, head_.rows, read_row, act); }
    template <class Act> void each_role(Act act) const { each(roles_, head_.roles, read_role, act); }

private:
    // How many bytes an entry has at least: with empty strings.
    static constexpr uint64_t least_state = 28, least_event = 21, least_row = 40, least_role = 12;

    template <class Entry, class Act>
    static void each(Cursor at, uint32_t count, Entry (*read)(Cursor &) noexcept, Act act) {
        for (uint32_t i = 0; i < count; ++i)
            act(read(at));
    }
    static mc_machine_descriptor_state read_state(Cursor &at) noexcept;
    static mc_machine_descriptor_event read_event(Cursor &at) noexcept;
    static mc_machine_dispatch_row_t read_row(Cursor &at) noexcept;
    static mc_machine_descriptor_role read_role(Cursor &at) noexcept;

    bool check_head(Cursor &at, Defect *defect) noexcept;
    bool check_entries(Cursor &at, Defect *defect) noexcept;

    mc_machine_descriptor_head head_{};
    Cursor states_, events_, rows_, roles_; // where each begins
};

} // namespace mc::machine
