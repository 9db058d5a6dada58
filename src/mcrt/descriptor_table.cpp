#include "mcrt/descriptor_table.hpp"

#include "mcrt/text.hpp"

#include <algorithm>

namespace mc::mcrt {
namespace {

struct Column {
    std::string title;
    bool is_number; // stands to the right
    std::vector<std::string> cells;
};

std::string padded(const std::string &cell, size_t width, bool right) {
    const std::string blanks(width - std::min(width_of(cell), width), ' ');
    return right ? blanks + cell : cell + blanks;
}

// Under a title with the count; nothing when there are no cells.
std::string table(const char *title, std::vector<Column> columns) {
    const size_t count = columns[0].cells.size();
    if (count == 0)
        return "";
    std::vector<std::string> lines(count + 1, " ");
    for (Column &column : columns) {
        column.cells.insert(column.cells.begin(), column.title);
        size_t width = 0;
        for (const std::string &cell : column.cells)
            width = std::max(width, width_of(cell));
        for (size_t i = 0; i < lines.size(); ++i)
            lines[i] += " " + padded(column.cells[i], width, column.is_number);
    }
    std::string out = "\n" + counted(count, title) + "\n";
    for (std::string &line : lines) {
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
    }
    return out;
}

template <class Items, class Cell> Column column(const char *title, bool is_number, const Items &items, Cell cell) {
    Column out{title, is_number, {}};
    for (const auto &item : items)
        out.cells.push_back(cell(item));
    return out;
}

std::string or_dash(uint64_t number) { return number == 0 ? "-" : shown_number(number); }
std::string shown_name(const std::string &name) { return name.empty() ? "-" : clean(name); }

} // namespace

std::string table_of(const Descriptor &descriptor) {
    using State = Descriptor::State;
    using Event = Descriptor::Event;
    using Row = Descriptor::Row;
    using Role = Descriptor::Role;
    const auto thunk = [&](uint64_t id) { return id == 0 ? "-" : shown_thunk(descriptor, id); };
    std::string out = "descriptor " + shown_name(descriptor.name) + "\n";
    out += table("state",
                 {column("tag", true, descriptor.states, [](const State &state) { return shown_number(state.tag); }),
                  column("name", false, descriptor.states, [](const State &state) { return shown_name(state.name); }),
                  column("layout", true, descriptor.states, [](const State &state) { return or_dash(state.layout); }),
                  column("type", true, descriptor.states, [](const State &state) { return or_dash(state.type_def); })});
    out += table("event",
                 {column("kind", true, descriptor.events, [](const Event &event) { return shown_number(event.kind); }),
                  column("name", false, descriptor.events,
                         [](const Event &event) {
                             return event.two_names ? shown_name(event.name) + ", " + shown_name(event.second_name)
                                                    : shown_name(event.name);
                         }),
                  column("layout", true, descriptor.events, [](const Event &event) { return or_dash(event.layout); })});
    out += table(
        "row",
        {column("state", false, descriptor.rows,
                [&](const Row &row) { return shown_state(descriptor, row.state_tag); }),
         column("event", false, descriptor.rows,
                [&](const Row &row) { return shown_event(descriptor, row.event_kind); }),
         column("site", false, descriptor.rows,
                [](const Row &row) { return row.request_site_key == 0 ? "any" : shown_number(row.request_site_key); }),
         column("local", false, descriptor.rows, [&](const Row &row) { return thunk(row.state_local_thunk_id); }),
         column("fallback", false, descriptor.rows, [&](const Row &row) { return thunk(row.fallback_thunk_id); })});
    out += table("role",
                 {column("path", false, descriptor.roles, [](const Role &role) { return shown_name(role.path); }),
                  column("definition", true, descriptor.roles, [](const Role &role) { return or_dash(role.def); })});
    const std::vector<Doubt> doubts = doubts_of(descriptor);
    if (!doubts.empty())
        out += "\n" + counted(doubts.size(), "doubt") + "\n";
    for (const Doubt &doubt : doubts)
        out += "  " + doubt.text + (doubt.grave ? ", and is never used" : "") + "\n";
    return out;
}

} // namespace mc::mcrt
