// See systematic_trace.hpp.
#if defined(MC_SYS)
#include "testing/systematic_trace.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

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
    {"counts threads", Shape::read},
};

const char *order_name(std::memory_order order) {
    switch (order) {
    case std::memory_order_relaxed:
        return "relaxed";
    case std::memory_order_consume:
    case std::memory_order_acquire:
        return "acquire";
    case std::memory_order_release:
        return "release";
    case std::memory_order_acq_rel:
        return "acq_rel";
    case std::memory_order_seq_cst:
        return "seq_cst";
    }
    return "?";
}

std::string values(const Event &event, Shape shape) {
    const std::string read = describe_value(event.read), wrote = describe_value(event.wrote);
    switch (shape) {
    case Shape::read:
        return " -> " + read;
    case Shape::wrote:
        return " = " + wrote;
    case Shape::both:
        return " " + read + " -> " + wrote;
    case Shape::versus:
        return " -> " + read + ", expected " + wrote;
    case Shape::number:
        return " " + read;
    case Shape::expects:
        return " of at most " + read + ": " + wrote + " woken";
    case Shape::until:
        return " on " + wrote + (event.read == INT64_MAX ? "" : " until " + std::to_string(event.read) + " ns");
    case Shape::plain:
        break;
    }
    return "";
}

// Module and offset, as addr2line takes them.
std::string place(const void *caller) {
    static const char here = 0;
    Dl_info info, own;
    if (caller == nullptr || dladdr(caller, &info) == 0 || info.dli_fname == nullptr)
        return "";
    const bool in_program = dladdr(&here, &own) != 0 && own.dli_fbase == info.dli_fbase;
    const char *slash = std::strrchr(info.dli_fname, '/');
    const std::string module = in_program ? program_name() : slash != nullptr ? slash + 1 : info.dli_fname;
    char offset[24];
    std::snprintf(offset, sizeof offset, "+0x%" PRIxPTR,
                  reinterpret_cast<std::uintptr_t>(caller) - 1 - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
    return "  [" + module + offset + "]";
}

} // namespace

// Not program_invocation_name: a test runner may have started us under a name of its own.
std::string program_name() {
    char path[512];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return "?";
    path[length] = '\0';
    const char *slash = std::strrchr(path, '/');
    return slash != nullptr ? slash + 1 : path;
}

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
