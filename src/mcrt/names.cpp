#include "mcrt/names.hpp"

#include "mcrt/text.hpp"

#include <mc/inspect.h>

namespace mc::mcrt {

Names::Names(const Recording &recording) {
    for (const mc_sim_event &event : recording.events)
        learn(event);
    for (const auto &[id, name] : tasks_)
        ++called_[name];
}

void Names::learn(const mc_sim_event &event) {
    const auto is_a = [&](const char *kind) { objects_[event.object].kind = kind; };
    switch (event.kind) {
    case MC_SIM_SPAWN:
        tasks_[event.peer] = clean(event.text);
        break;
    case MC_SIM_NAME:
        tasks_[event.task] = clean(event.text);
        break;
    case MC_SIM_NAME_CHANNEL:
        objects_[event.object].name = clean(event.text);
        break;
    case MC_SIM_CHANNEL:
        is_a("channel");
        break;
    case MC_SIM_PUT:
        if (event.task == MC_SIM_CLOCK)
            is_a("timer");
        break;
    case MC_SIM_LOCK:
    case MC_SIM_UNLOCK:
        is_a("mutex");
        break;
    case MC_SIM_WAIT:
        if (event.object != 0 && event.value == MC_WAIT_MUTEX)
            is_a("mutex");
        break;
    default:
        break;
    }
}

std::string Names::bare(uint64_t id) const {
    if (id == MC_SIM_CLOCK)
        return "the clock";
    const auto found = tasks_.find(id);
    if (found != tasks_.end() && !found->second.empty())
        return found->second;
    return id == 0 ? "main" : "task";
}

std::string Names::task(uint64_t id) const {
    std::string name = bare(id);
    if (id == MC_SIM_CLOCK)
        return name;
    const auto found = called_.find(name);
    const bool one = id == 0 || (found != called_.end() && found->second == 1);
    return one ? name : name + "#" + std::to_string(id);
}

std::string Names::object(uint64_t number) const {
    const auto found = objects_.find(number);
    if (found == objects_.end())
        return "object " + std::to_string(number);
    const std::string text = found->second.kind + (" " + std::to_string(number));
    return found->second.name.empty() ? text : text + " \"" + found->second.name + "\"";
}

std::string Names::short_object(uint64_t number) const {
    const auto found = objects_.find(number);
    return found == objects_.end() || found->second.name.empty() ? object(number) : found->second.name;
}

} // namespace mc::mcrt
