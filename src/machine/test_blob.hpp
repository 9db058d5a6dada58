// What the tests of descriptors share: blobs made piece by piece, and what the log and the allocator were asked for.
#pragma once

#include "base/alloc.hpp"
#include "base/log.hpp"
#include "base/prng.hpp"
#include "testing/test.hpp"

#include <mc/machine.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace mc::machine::test {

// Bytes as the format wants them: numbers little-endian, strings with their lengths.
class Bytes {
public:
    Bytes &number(uint64_t value, unsigned bytes) {
        for (unsigned i = 0; i < bytes; ++i)
            bytes_.push_back(static_cast<char>(value >> (8 * i)));
        return *this;
    }
    Bytes &u8(uint64_t value) { return number(value, 1); }
    Bytes &u32(uint64_t value) { return number(value, 4); }
    Bytes &u64(uint64_t value) { return number(value, 8); }
    Bytes &raw(std::string_view text) {
        bytes_ += text;
        return *this;
    }
    Bytes &string(std::string_view text) { return u32(text.size()).raw(text); }

    Bytes &head(std::string_view name, uint64_t states, uint64_t events, uint64_t rows, uint64_t roles) {
        return raw("MCHD").u32(1).string(name).u32(states).u32(events).u32(rows).u32(roles);
    }
    Bytes &state(uint64_t tag, uint64_t layout, std::string_view name = "") {
        return u64(tag).u64(1000 + tag).u64(layout).string(name);
    }
    Bytes &event(uint64_t kind, std::string_view name = "") { return u64(kind).u64(0).u8(0).string(name); }
    Bytes &event(uint64_t kind, std::string_view name, std::string_view second) {
        return u64(kind).u64(0).u8(1).string(name).string(second);
    }
    Bytes &row(uint64_t state, uint64_t event, uint64_t site, uint64_t local, uint64_t fallback) {
        return u64(state).u64(event).u64(site).u64(local).u64(fallback);
    }
    Bytes &role(std::string_view path, uint64_t def) { return string(path).u64(def); }

    const std::string &all() const { return bytes_; }
    const uint8_t *data() const { return reinterpret_cast<const uint8_t *>(bytes_.data()); }
    uint64_t size() const { return bytes_.size(); }

private:
    std::string bytes_;
};

// Everything that a descriptor can have, once or more.
inline Bytes full_blob() {
    Bytes bytes;
    bytes.head("Ping", 2, 3, 4, 2);
    bytes.state(1, 0, "Ready").state(2, 77, "Waiting");
    bytes.event(10, "Go").event(20, "Pong", "Ask").event(30);
    bytes.row(1, 10, 0, 101, 0).row(2, 20, 0, 102, 103).row(2, 20, 555, 104, 0).row(1, 30, 0, 0, 105);
    bytes.role("Ping.peer", 9).role("", 0);
    return bytes;
}

// The log, while one lives.
class Log {
public:
    Log() { base::set_log_hook(write, this); }
    ~Log() { base::set_log_hook(nullptr, nullptr); }
    Log(const Log &) = delete;
    Log &operator=(const Log &) = delete;

    int lines = 0;
    int32_t level = -1;
    int32_t code = 1;
    std::string text;

private:
    static void write(void *user, int32_t level, int32_t code, const char *text) {
        auto *self = static_cast<Log *>(user);
        ++self->lines;
        self->level = level;
        self->code = code;
        self->text = text;
    }
};

// An allocator that counts, and fails as of some allocation on. In a process for good.
struct Memory {
    int64_t allowed = INT64_MAX;  // allocations that still succeed
    int64_t fails_at = INT64_MAX; // the call that fails, alone
    uint64_t calls = 0;
    uint64_t failures = 0;
    uint64_t blocks = 0; // that live
    uint64_t bytes = 0;  // asked for since the last reset

    void install() {
        mc_allocator allocator = MC_ALLOCATOR_INIT;
        allocator.alloc = alloc;
        allocator.free = free;
        allocator.user = this;
        cr_assert_eq(base::set_allocator(allocator), MC_OK);
    }

private:
    static void *alloc(void *user, uint64_t size, uint64_t align) {
        auto *self = static_cast<Memory *>(user);
        ++self->calls;
        if (self->allowed-- <= 0 || static_cast<int64_t>(self->calls) == self->fails_at) {
            ++self->failures;
            return nullptr;
        }
        ++self->blocks;
        self->bytes += size;
        return std::aligned_alloc(align, (size + align - 1) / align * align);
    }
    static void free(void *user, void *ptr, uint64_t, uint64_t) {
        --static_cast<Memory *>(user)->blocks;
        std::free(ptr);
    }
};

} // namespace mc::machine::test
