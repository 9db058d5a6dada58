#include "mcrt/verdict.hpp"

#include "mcrt/text.hpp"

#include <cstring>

namespace mc::mcrt {
namespace {

// What assert() and the sanitizers write before they end a process. Without it every abort is like any other, and to make one's
// schedule short could end in another one's.
std::string told(std::string_view output) {
    std::string found;
    while (!output.empty()) {
        const size_t end = std::min(output.find('\n'), output.size());
        const std::string_view line = output.substr(0, end);
        if (line.find(": Assertion ") != std::string_view::npos || line.starts_with("SUMMARY: "))
            found = clean(line);
        output.remove_prefix(std::min(end + 1, output.size()));
    }
    return found;
}

Fault recorded(uint32_t failure) {
    switch (failure) {
    case MC_SIM_FINE:
        return Fault::none;
    case MC_SIM_DEADLOCK:
        return Fault::deadlock;
    case MC_SIM_ORACLE:
        return Fault::oracle;
    default:
        return Fault::failed;
    }
}

std::string with_message(const std::string &text, const Verdict &verdict) {
    return verdict.message.empty() ? text : text + ": " + verdict.message;
}

} // namespace

Verdict judge(const Ending &ending, const std::optional<mc_sim_recording> &header, std::string_view output) {
    if (ending.timed_out)
        return Verdict{Fault::timed_out, 0, ""};
    if (header && header->failure != MC_SIM_FINE)
        return Verdict{recorded(header->failure), ending.code, clean(header->message, Lines::keep)};
    if (ending.signalled)
        return Verdict{Fault::killed, ending.code, told(output)};
    return ending.code == 0 ? Verdict{} : Verdict{Fault::exited, ending.code, told(output)};
}

bool same_failure(const Verdict &one, const Verdict &other) {
    if (one.fault != other.fault)
        return false;
    const bool coded = one.fault == Fault::exited || one.fault == Fault::killed;
    return (!coded || one.code == other.code) && without_numbers(one.message) == without_numbers(other.message);
}

std::string in_words(const Verdict &verdict) {
    switch (verdict.fault) {
    case Fault::none:
        return "it ended well";
    case Fault::exited:
        return with_message("exit status " + std::to_string(verdict.code), verdict);
    case Fault::killed:
        return with_message("killed by signal " + std::to_string(verdict.code) + " (" + strsignal(verdict.code) + ")",
                            verdict);
    case Fault::failed:
        return with_message("mc_sim_fail", verdict);
    case Fault::oracle:
        return with_message("oracle", verdict);
    case Fault::deadlock:
        return verdict.message; // says so itself
    case Fault::timed_out:
        break;
    }
    return "it did not end within the time limit";
}

const char *name_of(Fault fault) {
    switch (fault) {
    case Fault::none:
        return "none";
    case Fault::exited:
        return "exited";
    case Fault::killed:
        return "killed";
    case Fault::failed:
        return "failed";
    case Fault::deadlock:
        return "deadlock";
    case Fault::oracle:
        return "oracle";
    case Fault::timed_out:
        break;
    }
    return "timed out";
}

} // namespace mc::mcrt
