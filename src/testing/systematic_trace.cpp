// See systematic_trace.hpp.
#if defined(MC_SYS)
#include "testing/systematic_trace.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

namespace mc::testing::sys {

namespace {

// What an operation's two values mean.
enum class Shape : std::uint8_t { read, wrote, both, versus, number, expects, until, plain };

struct Row {
    const char *name;
    Shape shape;
};

// By Op.
constexpr Row rows[] = {
    {"load", Shape::read},
    {"store", Shape::wrote},
    {"exchange", Shape::both},
    {"fetch_add", Shape::both},
    {"fetch_sub", Shape::both},
    {"fetch_or", Shape::both},
    {"fetch_and", Shape::both},
    {"dekker_observe", Shape::read},
    {"compare_exchange", Shape::both},
    {"compare_exchange fails", Shape::versus},
    {"compare_exchange fails spuriously", Shape::read},
    {"futex_wait sleeps", Shape::until},
    {"futex_wait finds another value", Shape::versus},
    {"futex_wait is late", Shape::until},
    {"futex_wait woken", Shape::plain},
    {"futex_wait timed out", Shape::plain},
    {"futex_wait woken spuriously", Shape::plain},
    {"futex_wake", Shape::expects},
    {"mutex lock", Shape::plain},
    {"mutex lock blocks", Shape::plain},
    {"mutex try_lock", Shape::plain},
    {"mutex try_lock fails", Shape::plain},
    {"mutex unlock", Shape::plain},
    {"cpu_relax", Shape::plain},
    {"thread_yield", Shape::plain},
    {"starts thread", Shape::number},
    {"joins thread", Shape::number},
    {"waits to join thread", Shape::number},
    {"ends", Shape::plain},
};

const char *order_name(std::memory_order order) {
    switch (order) {
    case std::memory_order_relaxed: return "relaxed";
    case std::memory_order_consume:
    case std::memory_order_acquire: return "acquire";
    case std::memory_order_release: return "release";
    case std::memory_order_acq_rel: return "acq_rel";
    case std::memory_order_seq_cst: return "seq_cst";
    }
    return "?";
}

std::string values(const Event &event, Shape shape) {
    const std::string read = describe_value(event.read), wrote = describe_value(event.wrote);
    switch (shape) {
    case Shape::read: return " -> " + read;
    case Shape::wrote: return " = " + wrote;
    case Shape::both: return " " + read + " -> " + wrote;
    case Shape::versus: return " -> " + read + ", expected " + wrote;
    case Shape::number: return " " + read;
    case Shape::expects: return " of at most " + read + ": " + wrote + " woken";
    case Shape::until:
        return " on " + wrote + (event.read == INT64_MAX ? "" : " until " + std::to_string(event.read) + " ns");
    case Shape::plain: break;
    }
    return "";
}

std::string place(const void *caller) {
    Dl_info info;
    if (!caller || !dladdr(caller, &info) || !info.dli_fname)
        return "";
    const char *slash = std::strrchr(info.dli_fname, '/');
    char text[96];
    std::snprintf(text, sizeof text, "  [%.60s+0x%" PRIxPTR "]", slash ? slash + 1 : info.dli_fname,
                  reinterpret_cast<std::uintptr_t>(caller) - reinterpret_cast<std::uintptr_t>(info.dli_fbase) - 1);
    return text;
}

} // namespace

std::string describe_word(std::uint32_t ordinal, const char *label) {
    return "word " + std::to_string(ordinal) + (label ? std::string(" '") + label + "'" : "");
}

std::string describe_value(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, value < 100'000 ? "%" PRIu64 : "0x%" PRIx64, value);
    return text;
}

std::string describe(const Event &event) {
    const Row &row = rows[static_cast<unsigned>(event.op)];
    std::string line = row.name;
    if (event.word != no_word)
        line += " " + describe_word(event.word, event.label);
    line += values(event, row.shape);
    if (event.op <= Op::swap_spurious)
        line += std::string(", ") + order_name(event.order);
    if (event.back != 0)
        line += ", STALE: " + std::to_string(event.back) + " newer";
    return line + place(event.caller);
}

} // namespace mc::testing::sys
#endif
