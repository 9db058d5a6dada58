#include "mcrt/words.hpp"

#include "mcrt/text.hpp"

#include <mc/inspect.h>

#include <cinttypes>
#include <cstdio>

namespace mc::mcrt {
namespace {

constexpr const char *waits[] = {"waits",
                                 "sleeps",
                                 "waits to send to",
                                 "waits to receive from",
                                 "waits in a choice",
                                 "waits for the end of",
                                 "waits for an operation",
                                 "waits for",
                                 "waits for an answer",
                                 "waits for a semaphore",
                                 "waits for a wait group",
                                 "waits for a once",
                                 "waits for a condition",
                                 "waits for a read lock",
                                 "waits for a write lock",
                                 "waits for its group",
                                 "waits until nothing moves",
                                 "waits for a blocking call",
                                 "waits for room in a mailbox",
                                 "waits for a machine to poll"};
static_assert(sizeof waits / sizeof *waits == MC_WAIT_POLL + 1);

std::string wait_in_words(const mc_sim_event &event, const Names &names) {
    std::string text = wait_words(event.value);
    if (event.object != 0)
        text += " " + names.object(event.object);
    else if (event.value == MC_WAIT_JOIN)
        text += " " + names.task(event.peer);
    return text;
}

std::string channel_in_words(const mc_sim_event &event, const Names &names) {
    const std::string text = "makes " + names.object(event.object);
    return event.value == 0 ? text + ", unbuffered"
                            : text + ", for " + counted(static_cast<uint64_t>(event.value), "message");
}

std::string buffer_in_words(const char *verb, const char *preposition, const mc_sim_event &event, const Names &names) {
    return verb + (" message " + std::to_string(event.value)) + preposition + names.object(event.object);
}

} // namespace

const char *wait_words(int64_t wait) { return wait < 0 || wait > MC_WAIT_POLL ? "waits" : waits[wait]; }

std::string words_of(const mc_sim_event &event, const Names &names) {
    switch (event.kind) {
    case MC_SIM_SPAWN:
        return "starts " + names.task(event.peer);
    case MC_SIM_NAME:
        return "is called \"" + clean(event.text) + "\"";
    case MC_SIM_END:
        return event.value == 0 ? "ends" : "ends with " + std::to_string(event.value);
    case MC_SIM_RUN:
        return event.value == 0 ? "goes on" : "goes on, before " + names.task(event.peer) + " does";
    case MC_SIM_WAIT:
        return wait_in_words(event, names);
    case MC_SIM_CHANNEL:
        return channel_in_words(event, names);
    case MC_SIM_NAME_CHANNEL:
        return "gives " + names.object(event.object) + " its name";
    case MC_SIM_MESSAGE:
        return "sends to " + names.object(event.object) + " -> " + names.task(event.peer);
    case MC_SIM_PUT:
        return buffer_in_words("puts", " into ", event, names);
    case MC_SIM_TAKE:
        return buffer_in_words("takes", " out of ", event, names);
    case MC_SIM_CLOSE:
        return "closes " + names.object(event.object) + (event.value == 0 ? " for writing" : " for reading");
    case MC_SIM_LOCK:
        return "locks " + names.object(event.object);
    case MC_SIM_UNLOCK:
        return "unlocks " + names.object(event.object);
    case MC_SIM_TIME:
        return event.value == 0 ? "jumps to the next deadline"
                                : "jumps to the next deadline, past those that could go on";
    case MC_SIM_NOTE:
        return "notes: " + clean(event.text);
    case MC_SIM_CHOSE:
        return "chooses " + std::to_string(event.value);
    default:
        return "does what this version has no word for (" + std::to_string(event.kind) + ")";
    }
}

std::string sentence_of(const mc_sim_event &event, const Names &names) {
    return names.task(event.task) + " " + words_of(event, names);
}

std::string time_words(int64_t now_ns) {
    char text[40];
    std::snprintf(text, sizeof text, "%" PRId64 ".%07" PRId64, now_ns / 1'000'000'000, now_ns % 1'000'000'000 / 100);
    return text;
}

} // namespace mc::mcrt
