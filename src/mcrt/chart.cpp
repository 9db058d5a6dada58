#include "mcrt/chart.hpp"

#include "mcrt/text.hpp"

#include <map>

namespace mc::mcrt {
namespace {

// text is clean.
std::string quoted_dot(const std::string &text) {
    std::string out = "\"";
    for (const char c : text)
        out += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
    return out + "\"";
}

class Chart {
public:
    explicit Chart(const Descriptor &descriptor) : descriptor_(descriptor) {
        for (const Descriptor::State &state : descriptor.states)
            (void)state_node(state.tag);
        for (size_t i = 0; i < descriptor.rows.size(); ++i)
            add_edge(descriptor.rows[i]);
    }
    std::string text() const {
        return "digraph " + quoted_dot(clean(descriptor_.name)) +
               " {\n    rankdir=LR;\n    node [shape=box, style=rounded];\n" + nodes_ + edges_ + "}\n";
    }

private:
    // A node's name; what is named for the first time is drawn.
    std::string state_node(uint64_t tag) {
        const auto [found, is_new] = states_.try_emplace(tag, "state" + std::to_string(states_.size()));
        if (is_new)
            nodes_ += "    " + found->second + " [label=" + quoted_dot(shown_state(descriptor_, tag)) + "];\n";
        return found->second;
    }
    std::string thunk_node(uint64_t id) {
        const auto [found, is_new] = thunks_.try_emplace(id, "thunk" + std::to_string(thunks_.size()));
        if (is_new)
            nodes_ += "    " + found->second + " [label=" + quoted_dot(shown_thunk(descriptor_, id)) +
                      ", shape=note, style=\"\"];\n";
        return found->second;
    }

    // As in UML: event [guard] / action. Dashed: the fallback.
    void add_edge(const Descriptor::Row &row) {
        const uint64_t id = thunk_of(row);
        const Descriptor::Thunk *thunk = find_thunk(descriptor_, id);
        const std::string from = state_node(row.state_tag);
        if (id == 0)
            return;
        std::string label = shown_event(descriptor_, row.event_kind);
        if (row.request_site_key != 0)
            label += " [site " + shown_number(row.request_site_key) + "]";
        const bool leads = thunk != nullptr && (thunk->next || thunk->stays);
        const std::string to = leads ? state_node(thunk->next.value_or(row.state_tag)) : thunk_node(id);
        if (leads)
            label += " / " + shown_thunk(descriptor_, id);
        edges_ += "    " + from + " -> " + to + " [label=" + quoted_dot(label) +
                  (row.state_local_thunk_id == 0 ? ", style=dashed" : "") + "];\n";
    }

    const Descriptor &descriptor_;
    std::map<uint64_t, std::string> states_;
    std::map<uint64_t, std::string> thunks_;
    std::string nodes_;
    std::string edges_;
};

} // namespace

std::string chart_of(const Descriptor &descriptor) { return Chart(descriptor).text(); }

} // namespace mc::mcrt
