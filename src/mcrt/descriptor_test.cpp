// Descriptors as the command handles them: bytes, JSON, tables and charts say the same.
#include "mcrt/chart.hpp"
#include "mcrt/descriptor.hpp"
#include "mcrt/descriptor_json.hpp"
#include "mcrt/descriptor_table.hpp"
#include "mcrt/stop.hpp"
#include "testing/test.hpp"

#include <algorithm>
#include <random>
#include <string>

using namespace mc;
using namespace mc::mcrt;

namespace {

Descriptor example() {
    Descriptor descriptor;
    descriptor.name = "Ping";
    descriptor.states = {{1, 0, 0, "Ready"}, {2, 9, 77, "Waiting"}};
    descriptor.events = {{1, 0, false, "Go", ""}, {2, 5, true, "Pong", "Ask"}};
    descriptor.rows = {{1, 1, 0, 11, 0}, {2, 2, 0, 0, 12}, {2, 2, 0xa3b2'0000'0001, 13, 12}};
    descriptor.roles = {{"Ping.peer", 4}};
    return descriptor;
}

// JSON with these lists in it.
std::string json(const std::string &lists) {
    return R"({"format": "mcrt descriptor", "format_version": 1, "name": "x", )" + lists + "}";
}

// What is said of JSON that is refused; empty: it is not.
std::string complaint(const std::string &text) {
    try {
        (void)from_json(text, "f");
        return "";
    } catch (const Stop &stop) {
        cr_assert_eq(stop.status, status_usage);
        return stop.text;
    }
}

std::string said(const std::string &text, const std::string &wanted) {
    const std::string found = complaint(text);
    cr_assert(found == wanted, "\n      %s\n not  %s", found.c_str(), wanted.c_str());
    return found;
}

} // namespace

// Goal: an example as JSON, to the byte: numbers by their names where those lead back, nothing that is 0 or empty.
Test(DescriptorJson, is_written_for_people) {
    const std::string text = to_json(example());
    const std::string wanted = R"({
  "format": "mcrt descriptor",
  "format_version": 1,
  "name": "Ping",
  "states": [
    {"tag": 1, "name": "Ready"},
    {"tag": 2, "name": "Waiting", "layout": 77, "type_def": 9}
  ],
  "events": [
    {"kind": 1, "name": "Go"},
    {"kind": 2, "names": ["Pong", "Ask"], "layout": 5}
  ],
  "rows": [
    {"state": "Ready", "event": "Go", "local": 11},
    {"state": "Waiting", "event": "Pong", "fallback": 12},
    {"state": "Waiting", "event": "Pong", "site": 179984899506177, "local": 13, "fallback": 12}
  ],
  "roles": [
    {"path": "Ping.peer", "def": 4}
  ]
}
)";
    cr_assert(text == wanted, "%s", text.c_str());
}

// Goal: whatever bytes and numbers a descriptor has, its JSON makes the same blob again.
Test(DescriptorJson, makes_the_same_blob_again) {
    std::mt19937_64 random(23);
    const auto below = [&](uint64_t bound) { return random() % bound; };
    const auto number = [&] { return below(3) == 0 ? random() : below(6); };
    const std::string names[] = {"",
                                 "Ready",
                                 "Ready",
                                 "0x12",
                                 "Wait\n\"ing\\",
                                 "\xff\xfe",
                                 "\0",
                                 "caf\xc3\xa9",
                                 "{",
                                 std::string("a\0b", 3),
                                 "\xed\xa0\x80"};
    const auto name = [&] { return names[below(std::size(names))]; };
    unsigned made = 0;
    for (unsigned round = 0; round < 3000 * testing::scale(); ++round) {
        Descriptor descriptor;
        descriptor.name = name();
        for (uint64_t i = below(4); i > 0; --i)
            descriptor.states.push_back({number(), number(), number(), name()});
        for (uint64_t i = below(4); i > 0; --i) {
            const bool two = below(2) == 1;
            descriptor.events.push_back({number(), number(), two, name(), two ? name() : ""});
        }
        for (uint64_t i = below(4); i > 0; --i)
            descriptor.rows.push_back({number(), number(), number(), number(), number()});
        for (uint64_t i = below(3); i > 0; --i)
            descriptor.roles.push_back({name(), number()});
        const std::string blob = to_blob(descriptor);
        const Descriptor read = from_blob(blob, "f");
        cr_assert(to_blob(read) == blob, "round %u", round);
        const std::vector<Doubt> doubts = doubts_of(descriptor);
        if (std::any_of(doubts.begin(), doubts.end(), [](const Doubt &doubt) { return doubt.grave; }))
            continue; // refused, and rightly
        ++made;
        cr_assert(to_blob(from_json(to_json(read), "f")) == blob, "round %u: %s", round, to_json(read).c_str());
    }
    cr_assert_gt(made, 500u);
}

// Goal: thunks by name, and where they lead, are kept in JSON.
Test(DescriptorJson, thunks_have_names) {
    const Descriptor descriptor = from_json(
        json(R"("states": [{"tag": 3, "name": "On"}], "rows": [{"state": "On", "event": 1, "local": "turn"}],)"
             R"("thunks": [{"id": "0x10", "name": "turn", "next": "On"}, {"id": 17, "stays": true}])"),
        "f");
    cr_assert_eq(descriptor.rows[0].state_local_thunk_id, 16u);
    cr_assert_eq(descriptor.thunks[0].next.value(), 3u);
    const std::string text = to_json(descriptor);
    cr_assert(text.find(R"("local": "turn")") != std::string::npos, "%s", text.c_str());
    cr_assert(text.find(R"({"id": 16, "name": "turn", "next": "On"})") != std::string::npos, "%s", text.c_str());
    cr_assert(text.find(R"({"id": 17, "stays": true})") != std::string::npos, "%s", text.c_str());
}

// Goal: what is wrong is told with its line, or its key.
Test(DescriptorJson, mistakes_are_told_with_their_places) {
    said("", "f: line 1, column 1: The document is empty.");
    said("{\n  \"name\": \xc3\xa9\n}", "f: line 2, column 11: Invalid value.");
    said("{\"a\":1,\n\n", "f: line 3, column 1: Missing a name for object member.");
    said("\"\xff\"", "f: line 1, column 2: Invalid encoding in string.");
    said("[]", "f: is no object");
    said("{}", "f: has no \"format\"");
    said(R"({"format": "mcrt failure", "format_version": 1, "name": ""})",
         "f: no descriptor that this version of mcrt knows: \"format\" is \"mcrt descriptor\", \"format_version\" 1");
    said(R"({"format": "mcrt descriptor", "format_version": 2, "name": ""})",
         "f: no descriptor that this version of mcrt knows: \"format\" is \"mcrt descriptor\", \"format_version\" 1");
    said(R"({"format": "mcrt descriptor", "format_version": 1})", "f: has no \"name\"");
    said(json(R"("stats": [])"),
         "f: \"stats\" is no key here: format, format_version, name, states, events, rows, roles, thunks");
    said(json(R"("states": [], "states": [])"), "f: \"states\" is there twice");
    said(json(R"("states": {})"), "f: states: is no array");
    said(json(R"("states": [7])"), "f: states[0]: is no object");
    said(json(R"("states": [{"tag": 1}, {"name": "On"}])"), "f: states[1]: has no \"tag\"");
    const std::string no_number = "is no whole number from 0 to 18446744073709551615, nor one as \"0x...\"";
    for (const char *value : {"-1", "1.5", "1e3", "18446744073709551616", "\"7\"", "\"0x\"", "\"0xg\"",
                              "\"0x10000000000000000\"", "true", "null", "[]"})
        said(json(R"("states": [{"tag": )" + std::string(value) + "}]"), "f: states[0].tag: " + no_number);
    said(json(R"("states": [{"tag": 1, "name": 7}])"), "f: states[0].name: is no string, nor {\"hex\": \"...\"}");
    said(json(R"("states": [{"tag": 1, "name": {"hex": "abc"}}])"),
         "f: states[0].name.hex: is no even number of hexadecimal digits");
    said(json(R"("states": [{"tag": 1, "name": {"hex": "0xab"}}])"),
         "f: states[0].name.hex: is no even number of hexadecimal digits");
    said(json(R"("states": [{"tag": 1, "name": {"hax": ""}}])"), "f: states[0].name: \"hax\" is no key here: hex");
    said(json(R"("events": [{"kind": 1, "names": ["a"]}])"),
         "f: events[0].names: an event has a \"name\", or two \"names\"");
    said(json(R"("events": [{"kind": 1, "name": "a", "names": ["a", "b"]}])"),
         "f: events[0].names: an event has a \"name\", or two \"names\"");
    said(json(R"("rows": [{"state": "On", "event": 1}])"), "f: rows[0].state: no state is named \"On\"");
    said(
        json(
            R"("states": [{"tag": 1, "name": "On"}, {"tag": 2, "name": "On"}], "rows": [{"state": "On", "event": 1}])"),
        "f: rows[0].state: more than one state is named \"On\": use its number");
    said(json(R"("rows": [{"state": 1, "event": "Go"}])"), "f: rows[0].event: no event is named \"Go\"");
    said(json(R"("rows": [{"state": 1, "event": 1, "local": "go"}])"), "f: rows[0].local: no thunk is named \"go\"");
    said(json(R"("rows": [{"state": 1, "event": 1, "next": 2}])"),
         "f: rows[0]: \"next\" is no key here: state, event, site, local, fallback");
    said(json(R"("roles": [{"def": 1}])"), "f: roles[0]: has no \"path\"");
    said(json(R"("thunks": [{"id": 0}])"), "f: thunks[0]: 0 is no thunk");
    said(json(R"("thunks": [{"id": 1, "stays": 1}])"), "f: thunks[0].stays: is neither true nor false");
    said(json(R"("thunks": [{"id": 1, "next": 1, "stays": true}])"),
         "f: thunks[0]: \"stays\" and \"next\" exclude each other");
    said(json(R"("thunks": [{"id": 1, "next": "On"}])"), "f: thunks[0].next: no state is named \"On\"");
}

// Goal: what is there twice is refused; what is only odd is not.
Test(DescriptorJson, repeated_ones_are_refused) {
    said(json(R"("states": [{"tag": 1}, {"tag": 2}, {"tag": 1}])"), "f: states[2]: has tag 1 as states[0]");
    said(json(R"("events": [{"kind": 5}, {"kind": 5}])"), "f: events[1]: has kind 5 as events[0]");
    said(json(R"("thunks": [{"id": 5}, {"id": 5}])"), "f: thunks[1]: has id 5 as thunks[0]");
    said(json(R"("rows": [{"state": 1, "event": 2, "local": 3}, {"state": 1, "event": 2, "local": 4}])"),
         "f: rows[1]: has state, event and site of rows[0]");
    cr_assert_eq(complaint(json(R"("rows": [{"state": 1, "event": 2}, {"state": 1, "event": 2, "site": 1}])")), "");
}

// Goal: the table shows every entry, and what is doubtful.
Test(DescriptorTable, shows_every_entry) {
    Descriptor descriptor = example();
    descriptor.rows.push_back({7, 1, 0, 0, 0});
    descriptor.rows.push_back({1, 1, 0, 12, 0});
    const std::string text = table_of(descriptor);
    const std::string wanted = R"(descriptor Ping

2 states
  tag name    layout type
    1 Ready        -    -
    2 Waiting     77    9

2 events
  kind name      layout
     1 Go             -
     2 Pong, Ask      5

5 rows
  state   event     site           local    fallback
  Ready   Go        any            thunk 11 -
  Waiting Pong, Ask any            -        thunk 12
  Waiting Pong, Ask 0xa3b200000001 thunk 13 thunk 12
  state 7 Go        any            -        -
  Ready   Go        any            thunk 12 -

1 role
  path      definition
  Ping.peer          4

3 doubts
  rows[3]: state 7 is not in the descriptor
  rows[3]: has no thunk
  rows[4]: has state, event and site of rows[0], and is never used
)";
    cr_assert(text == wanted, "%s", text.c_str());
}

// Goal: names with control characters, and names that are no UTF-8, do not reach the terminal.
Test(DescriptorTable, shows_clean_names) {
    Descriptor descriptor;
    descriptor.name = "\x1b[31m\xff";
    descriptor.states = {{1, 0, 0, "a\nb"}};
    descriptor.rows = {{1, 1, 0, 1, 0}};
    for (const std::string &text : {table_of(descriptor), chart_of(descriptor)}) {
        cr_assert(text.find('\x1b') == std::string::npos && text.find('\xff') == std::string::npos);
        cr_assert(text.find("a\xef\xbf\xbd"
                            "b") != std::string::npos,
                  "%s", text.c_str());
    }
}

// Goal: an edge leads to the state that its thunk leads to, where that is known, else to the thunk.
Test(Chart, edges_lead_where_thunks_lead) {
    Descriptor descriptor = example();
    descriptor.states[0].name = "Re\"ady\\";
    descriptor.rows.push_back({8, 1, 0, 14, 0});
    descriptor.rows.push_back({8, 2, 0, 0, 0});
    descriptor.thunks = {{11, "go", 2}, {13, "", std::nullopt, true}, {14, "", 9}};
    const std::string text = chart_of(descriptor);
    const std::string wanted = R"(digraph "Ping" {
    rankdir=LR;
    node [shape=box, style=rounded];
    state0 [label="Re\"ady\\"];
    state1 [label="Waiting"];
    thunk0 [label="thunk 12", shape=note, style=""];
    state2 [label="state 8"];
    state3 [label="state 9"];
    state0 -> state1 [label="Go / go"];
    state1 -> thunk0 [label="Pong, Ask", style=dashed];
    state1 -> state1 [label="Pong, Ask [site 0xa3b200000001] / thunk 13"];
    state2 -> state3 [label="Go / thunk 14"];
}
)";
    cr_assert(text == wanted, "%s", text.c_str());
}
