#include "mcrt/descriptor_json.hpp"

#include "mcrt/stop.hpp"
#include "mcrt/text.hpp"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <initializer_list>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <set>
#include <string_view>

namespace mc::mcrt {
namespace {

constexpr const char *format_name = "mcrt descriptor";
constexpr uint64_t format_version = 1;
constexpr uint64_t most_exact = uint64_t{1} << 53; // of a double

// "0x" and hexadecimal digits, of 64 bits at most.
std::optional<uint64_t> hexadecimal(std::string_view text) {
    uint64_t number = 0;
    if (!text.starts_with("0x"))
        return std::nullopt;
    const char *end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + 2, end, number, 16);
    return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

// --- writing: an entry a line ---

std::string quoted_json(std::string_view text) {
    rapidjson::StringBuffer buffer;
    rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
    writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
    return {buffer.GetString(), buffer.GetSize()};
}

std::string json_of(const std::string &bytes) {
    if (utf8(bytes) == bytes)
        return quoted_json(bytes);
    std::string hex;
    for (const char byte : bytes) {
        char digits[4];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
        hex += digits;
    }
    return "{\"hex\": \"" + hex + "\"}";
}

std::string json_of(uint64_t number) {
    if (number <= most_exact)
        return std::to_string(number);
    char text[24];
    std::snprintf(text, sizeof text, "\"0x%" PRIx64 "\"", number);
    return text;
}

// A number by its name, where that leads back to it.
template <class Items, class Field> std::string reference(const Items &items, Field number_of, uint64_t number) {
    const auto has = [&](const auto &item) { return item.*number_of == number; };
    const auto found = std::find_if(items.begin(), items.end(), has);
    if (found == items.end() || found->name.empty() || found->name.starts_with("0x") ||
        utf8(found->name) != found->name)
        return json_of(number);
    const auto others =
        std::count_if(items.begin(), items.end(), [&](const auto &item) { return item.name == found->name; });
    return others == 1 ? quoted_json(found->name) : json_of(number);
}

class Entry {
public:
    void add(const char *key, const std::string &json) {
        text_ += (text_.empty() ? "{" : ", ") + quoted_json(key) + ": " + json;
    }
    void add_unless_0(const char *key, uint64_t number) {
        if (number != 0)
            add(key, json_of(number));
    }
    void add_unless_empty(const char *key, const std::string &text) {
        if (!text.empty())
            add(key, json_of(text));
    }
    std::string text() const { return text_ + "}"; }

private:
    std::string text_;
};

Entry entry_of(const Descriptor::State &state, const Descriptor &) {
    Entry entry;
    entry.add("tag", json_of(state.tag));
    entry.add_unless_empty("name", state.name);
    entry.add_unless_0("layout", state.layout);
    entry.add_unless_0("type_def", state.type_def);
    return entry;
}

Entry entry_of(const Descriptor::Event &event, const Descriptor &) {
    Entry entry;
    entry.add("kind", json_of(event.kind));
    if (event.two_names)
        entry.add("names", "[" + json_of(event.name) + ", " + json_of(event.second_name) + "]");
    else
        entry.add_unless_empty("name", event.name);
    entry.add_unless_0("layout", event.layout);
    return entry;
}

Entry entry_of(const Descriptor::Row &row, const Descriptor &descriptor) {
    const auto thunk = [&](const char *key, uint64_t id, Entry *entry) {
        if (id != 0)
            entry->add(key, reference(descriptor.thunks, &Descriptor::Thunk::id, id));
    };
    Entry entry;
    entry.add("state", reference(descriptor.states, &Descriptor::State::tag, row.state_tag));
    entry.add("event", reference(descriptor.events, &Descriptor::Event::kind, row.event_kind));
    entry.add_unless_0("site", row.request_site_key);
    thunk("local", row.state_local_thunk_id, &entry);
    thunk("fallback", row.fallback_thunk_id, &entry);
    return entry;
}

Entry entry_of(const Descriptor::Role &role, const Descriptor &) {
    Entry entry;
    entry.add("path", json_of(role.path));
    entry.add_unless_0("def", role.def);
    return entry;
}

Entry entry_of(const Descriptor::Thunk &thunk, const Descriptor &descriptor) {
    Entry entry;
    entry.add("id", json_of(thunk.id));
    entry.add_unless_empty("name", thunk.name);
    if (thunk.next)
        entry.add("next", reference(descriptor.states, &Descriptor::State::tag, *thunk.next));
    if (thunk.stays)
        entry.add("stays", "true");
    return entry;
}

template <class Items>
void add_list(std::string *out, const char *key, const Items &items, const Descriptor &descriptor) {
    if (items.empty())
        return;
    *out += std::string(",\n  \"") + key + "\": [";
    const char *before = "\n    ";
    for (const auto &item : items) {
        *out += before + entry_of(item, descriptor).text();
        before = ",\n    ";
    }
    *out += "\n  ]";
}

} // namespace

std::string to_json(const Descriptor &descriptor) {
    std::string out = std::string("{\n  \"format\": \"") + format_name +
                      "\",\n  \"format_version\": " + std::to_string(format_version) +
                      ",\n  \"name\": " + json_of(descriptor.name);
    add_list(&out, "states", descriptor.states, descriptor);
    add_list(&out, "events", descriptor.events, descriptor);
    add_list(&out, "rows", descriptor.rows, descriptor);
    add_list(&out, "roles", descriptor.roles, descriptor);
    add_list(&out, "thunks", descriptor.thunks, descriptor);
    return out + "\n}\n";
}

// --- reading ---

namespace {

using Json = rapidjson::Value;

// A value and where it stands, such as rows[3].event.
class Node {
public:
    Node(const Json &value, std::string place, const std::string &path)
        : value_(value), place_(std::move(place)), path_(path) {}

    [[noreturn]] void refuse(const std::string &why) const {
        throw Stop{status_usage, path_ + ": " + (place_.empty() ? "" : place_ + ": ") + why};
    }

    // An object with no other keys than these, and none of them twice.
    void expect_keys(std::initializer_list<std::string_view> keys) const {
        if (!value_.IsObject())
            refuse("is no object");
        std::set<std::string_view> seen;
        for (const auto &member : value_.GetObject()) {
            const std::string_view key(member.name.GetString(), member.name.GetStringLength());
            if (std::find(keys.begin(), keys.end(), key) == keys.end())
                refuse("\"" + clean(key) + "\" is no key here: " + joined(keys));
            if (!seen.insert(key).second)
                refuse("\"" + clean(key) + "\" is there twice");
        }
    }
    std::optional<Node> member(const char *key) const {
        const auto found = value_.FindMember(key);
        if (found == value_.MemberEnd())
            return std::nullopt;
        return Node(found->value, place_.empty() ? key : place_ + "." + key, path_);
    }
    Node needed(const char *key) const {
        if (const std::optional<Node> found = member(key))
            return *found;
        refuse(std::string("has no \"") + key + "\"");
    }

    uint64_t number() const {
        if (value_.IsUint64())
            return value_.GetUint64();
        if (value_.IsString())
            if (const std::optional<uint64_t> number = hexadecimal(string()))
                return *number;
        refuse("is no whole number from 0 to 18446744073709551615, nor one as \"0x...\"");
    }
    uint64_t number_of(const char *key) const { // 0 when it is not there
        const std::optional<Node> found = member(key);
        return found ? found->number() : 0;
    }
    std::string text() const {
        if (value_.IsString())
            return std::string(string());
        if (!value_.IsObject())
            refuse("is no string, nor {\"hex\": \"...\"}");
        expect_keys({"hex"});
        return needed("hex").bytes();
    }
    std::string text_of(const char *key) const { // empty when it is not there
        const std::optional<Node> found = member(key);
        return found ? found->text() : "";
    }
    bool flag_of(const char *key) const { // false when it is not there
        const std::optional<Node> found = member(key);
        if (found && !found->value_.IsBool())
            found->refuse("is neither true nor false");
        return found && found->value_.GetBool();
    }
    std::vector<Node> elements() const {
        if (!value_.IsArray())
            refuse("is no array");
        std::vector<Node> out;
        for (const Json &element : value_.GetArray())
            out.emplace_back(element, place_ + "[" + std::to_string(out.size()) + "]", path_);
        return out;
    }

    // The number of the one that has this name, or a number.
    template <class Items, class Field>
    uint64_t reference(const Items &items, Field number_of, const char *what) const {
        if (!value_.IsString() || hexadecimal(string()))
            return number();
        const auto named = [&](const auto &item) { return item.name == string(); };
        const auto found = std::find_if(items.begin(), items.end(), named);
        if (found == items.end())
            refuse(std::string("no ") + what + " is named \"" + clean(string()) + "\"");
        if (std::count_if(items.begin(), items.end(), named) > 1)
            refuse(std::string("more than one ") + what + " is named \"" + clean(string()) + "\": use its number");
        return *found.*number_of;
    }

private:
    static std::string joined(std::initializer_list<std::string_view> keys) {
        std::string out;
        for (const std::string_view key : keys)
            out += (out.empty() ? "" : ", ") + std::string(key);
        return out;
    }
    std::string_view string() const { return {value_.GetString(), value_.GetStringLength()}; }
    std::string bytes() const {
        const std::string digits = text();
        std::string out;
        for (size_t i = 0; i + 1 < digits.size(); i += 2) {
            unsigned char byte = 0;
            const auto read = std::from_chars(&digits[i], &digits[i] + 2, byte, 16);
            if (read.ptr != &digits[i] + 2)
                break;
            out += static_cast<char>(byte);
        }
        if (2 * out.size() != digits.size())
            refuse("is no even number of hexadecimal digits");
        return out;
    }

    const Json &value_;
    const std::string place_;
    const std::string &path_;
};

// Each element of the array under the key, if it is there.
template <class Read> void each(const Node &root, const char *key, Read read) {
    if (const std::optional<Node> list = root.member(key))
        for (const Node &node : list->elements())
            read(node);
}

Descriptor::State read_state(const Node &node) {
    node.expect_keys({"tag", "name", "layout", "type_def"});
    return {node.needed("tag").number(), node.number_of("type_def"), node.number_of("layout"), node.text_of("name")};
}

Descriptor::Event read_event(const Node &node) {
    node.expect_keys({"kind", "name", "names", "layout"});
    Descriptor::Event event{node.needed("kind").number(), node.number_of("layout"), false, node.text_of("name"), ""};
    if (const std::optional<Node> names = node.member("names")) {
        const std::vector<Node> both = names->elements();
        if (both.size() != 2 || node.member("name"))
            names->refuse("an event has a \"name\", or two \"names\"");
        event.two_names = true;
        event.name = both[0].text();
        event.second_name = both[1].text();
    }
    return event;
}

Descriptor::Row read_row(const Node &node, const Descriptor &descriptor) {
    node.expect_keys({"state", "event", "site", "local", "fallback"});
    const auto thunk = [&](const char *key) {
        const std::optional<Node> found = node.member(key);
        return found ? found->reference(descriptor.thunks, &Descriptor::Thunk::id, "thunk") : 0;
    };
    return {node.needed("state").reference(descriptor.states, &Descriptor::State::tag, "state"),
            node.needed("event").reference(descriptor.events, &Descriptor::Event::kind, "event"),
            node.number_of("site"), thunk("local"), thunk("fallback")};
}

Descriptor::Role read_role(const Node &node) {
    node.expect_keys({"path", "def"});
    return {node.needed("path").text(), node.number_of("def")};
}

Descriptor::Thunk read_thunk(const Node &node, const Descriptor &descriptor) {
    node.expect_keys({"id", "name", "next", "stays"});
    Descriptor::Thunk thunk{node.needed("id").number(), node.text_of("name"), std::nullopt, node.flag_of("stays")};
    if (const std::optional<Node> next = node.member("next"))
        thunk.next = next->reference(descriptor.states, &Descriptor::State::tag, "state");
    if (thunk.id == 0)
        node.refuse("0 is no thunk");
    if (thunk.next && thunk.stays)
        node.refuse("\"stays\" and \"next\" exclude each other");
    return thunk;
}

std::string line_and_column(const std::string &text, size_t offset) {
    const std::string_view before = std::string_view(text).substr(0, offset);
    const size_t line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
    const size_t begin = before.rfind('\n') + 1; // 0 when there is none
    return "line " + std::to_string(line) + ", column " + std::to_string(width_of(before.substr(begin)) + 1);
}

} // namespace

Descriptor from_json(const std::string &text, const std::string &path) {
    rapidjson::Document document;
    document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(text.data(), text.size());
    if (document.HasParseError())
        throw Stop{status_usage, path + ": " + line_and_column(text, document.GetErrorOffset()) + ": " +
                                     rapidjson::GetParseError_En(document.GetParseError())};
    const Node root(document, "", path);
    root.expect_keys({"format", "format_version", "name", "states", "events", "rows", "roles", "thunks"});
    if (root.needed("format").text() != format_name || root.needed("format_version").number() != format_version)
        root.refuse(
            "no descriptor that this version of mcrt knows: \"format\" is \"mcrt descriptor\", \"format_version\" 1");
    Descriptor descriptor;
    descriptor.name = root.needed("name").text();
    each(root, "states", [&](const Node &node) { descriptor.states.push_back(read_state(node)); });
    each(root, "events", [&](const Node &node) { descriptor.events.push_back(read_event(node)); });
    each(root, "thunks", [&](const Node &node) { descriptor.thunks.push_back(read_thunk(node, descriptor)); });
    each(root, "rows", [&](const Node &node) { descriptor.rows.push_back(read_row(node, descriptor)); });
    each(root, "roles", [&](const Node &node) { descriptor.roles.push_back(read_role(node)); });
    for (const Doubt &doubt : doubts_of(descriptor))
        if (doubt.grave)
            throw Stop{status_usage, path + ": " + doubt.text};
    return descriptor;
}

} // namespace mc::mcrt
