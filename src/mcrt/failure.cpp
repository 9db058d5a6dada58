#include "mcrt/failure.hpp"

#include "mcrt/stop.hpp"
#include "mcrt/text.hpp"

#include <mc/base.h>

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <rapidjson/document.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

namespace mc::mcrt {
namespace {

constexpr const char *format_name = "mcrt failure";
constexpr int format_version = 1;
constexpr Fault faults[] = {Fault::none,     Fault::exited, Fault::killed,   Fault::failed,
                            Fault::deadlock, Fault::oracle, Fault::timed_out};

using Writer = rapidjson::PrettyWriter<rapidjson::StringBuffer>;

// Arguments and paths are bytes; those that are no UTF-8 can not be told in JSON, and are not the same any more. Control characters
// are, as escapes.
void put(Writer &json, const std::string &text) {
    const std::string told = utf8(text);
    json.String(told.data(), static_cast<rapidjson::SizeType>(told.size()));
}

void put(Writer &json, const char *key, const std::string &text) {
    json.Key(key);
    put(json, text);
}

void put(Writer &json, const char *key, uint64_t number) {
    json.Key(key);
    json.Uint64(number);
}

std::string hexadecimal(uint64_t number) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%016" PRIx64, number);
    return text;
}

void put_program(Writer &json, const Program &program) {
    put(json, "program", program.path);
    json.Key("arguments");
    json.StartArray();
    for (const std::string &argument : program.arguments)
        put(json, argument);
    json.EndArray();
    json.Key("environment");
    json.StartObject();
    for (const auto &[name, value] : program.environment)
        put(json, name.c_str(), value);
    json.EndObject();
}

void put_verdict(Writer &json, const Verdict &verdict) {
    json.Key("failure");
    json.StartObject();
    put(json, "kind", name_of(verdict.fault));
    json.Key("code");
    json.Int(verdict.code);
    put(json, "message", verdict.message);
    json.EndObject();
}

} // namespace

std::string to_json(const Failure &failure) {
    rapidjson::StringBuffer buffer;
    Writer json(buffer);
    json.StartObject();
    put(json, "format", std::string(format_name));
    put(json, "format_version", format_version);
    put(json, "version", std::to_string(MC_VERSION_MAJOR) + "." + std::to_string(MC_VERSION_MINOR));
    put_program(json, failure.program);
    put(json, "directory", failure.directory);
    put(json, "seed", failure.seed);
    put(json, "policy", failure.policy);
    put(json, "schedule", failure.schedule);
    put(json, "replay_by", std::string(failure.by_schedule ? "schedule" : "policy"));
    put(json, "signature", hexadecimal(failure.signature));
    put(json, "choices", failure.choices);
    put(json, "preemptions", failure.preemptions);
    json.Key("time_limit_s");
    json.Double(failure.limit_s);
    put_verdict(json, failure.verdict);
    put(json, "output", failure.output);
    json.EndObject();
    return std::string(buffer.GetString(), buffer.GetSize()) + "\n";
}

// --- reading ---

namespace {

using Json = rapidjson::Value;

// What is missing, or of another kind, is a mistake: a file that somebody wrote by hand.
class Reader {
public:
    Reader(const Json &object, const std::string &path) : object_(object), path_(path) {}

    const Json &member(const char *name, bool (Json::*is)() const) const {
        if (object_.IsObject())
            if (const auto found = object_.FindMember(name); found != object_.MemberEnd() && (found->value.*is)())
                return found->value;
        refuse(name);
    }
    std::string string(const Json &value, const char *name) const {
        return value.IsString() ? value.GetString() : refuse(name);
    }
    [[noreturn]] const char *refuse(const char *name) const {
        throw Stop{status_usage, path_ + ": no \"" + name + "\" as `mcrt explore` writes it"};
    }
    std::string text(const char *name) const { return member(name, &Json::IsString).GetString(); }
    uint64_t number(const char *name) const { return member(name, &Json::IsUint64).GetUint64(); }

private:
    const Json &object_;
    const std::string &path_;
};

Program read_program(const Reader &reader) {
    Program program;
    program.path = reader.text("program");
    const Json &arguments = reader.member("arguments", &Json::IsArray);
    for (const Json &argument : arguments.GetArray())
        program.arguments.emplace_back(reader.string(argument, "arguments"));
    if (program.arguments.empty())
        program.arguments.push_back(program.path);
    for (const auto &variable : reader.member("environment", &Json::IsObject).GetObject())
        program.environment[variable.name.GetString()] = reader.string(variable.value, "environment");
    return program;
}

Verdict read_verdict(const Reader &reader) {
    Verdict verdict;
    verdict.code = reader.member("code", &Json::IsInt).GetInt();
    verdict.message = reader.text("message");
    const std::string kind = reader.text("kind");
    const auto *const known =
        std::find_if(std::begin(faults), std::end(faults), [&](Fault fault) { return kind == name_of(fault); });
    if (known == std::end(faults))
        reader.refuse("kind");
    verdict.fault = *known;
    return verdict;
}

uint64_t read_signature(const Reader &reader) {
    const std::string text = reader.text("signature");
    uint64_t signature = 0;
    const char *end = text.data() + text.size();
    const bool prefixed = text.size() > 2 && text.starts_with("0x");
    const auto read = std::from_chars(text.data() + (prefixed ? 2 : 0), end, signature, 16);
    if (!prefixed || read.ec != std::errc() || read.ptr != end)
        reader.refuse("signature");
    return signature;
}

std::string read_file(const std::string &path) {
    if (std::filesystem::is_directory(path))
        throw Stop{status_usage, path + ": a directory; the file in it is failure.json"};
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw Stop{status_usage, path + ": " + std::strerror(errno)};
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

} // namespace

Failure read_failure(const std::string &path) {
    rapidjson::Document document;
    document.Parse<rapidjson::kParseIterativeFlag>(read_file(path).c_str()); // however deep it is
    if (document.HasParseError())
        throw Stop{status_usage, path + ": no JSON"};
    const Reader reader(document, path);
    if (reader.text("format") != format_name || reader.number("format_version") != format_version)
        throw Stop{status_usage, path + ": no failure that this version of mcrt knows"};
    Failure failure;
    failure.program = read_program(reader);
    failure.directory = reader.text("directory");
    failure.seed = reader.number("seed");
    failure.policy = reader.text("policy");
    failure.schedule = reader.text("schedule");
    failure.by_schedule = reader.text("replay_by") == "schedule";
    failure.signature = read_signature(reader);
    failure.choices = reader.number("choices");
    failure.preemptions = reader.number("preemptions");
    failure.limit_s = reader.member("time_limit_s", &Json::IsNumber).GetDouble();
    failure.verdict = read_verdict(Reader(reader.member("failure", &Json::IsObject), path));
    failure.output = reader.text("output");
    return failure;
}

// --- how to run it ---

std::map<std::string, std::string> variables_of(const Failure &failure, bool by_schedule, const std::string &record) {
    std::map<std::string, std::string> variables = failure.program.environment;
    variables["MCRT_SEED"] = std::to_string(failure.seed);
    const std::string schedule = failure.schedule_file.empty() ? failure.schedule : "@" + failure.schedule_file;
    variables[by_schedule ? "MCRT_SCHEDULE" : "MCRT_POLICY"] = by_schedule ? schedule : failure.policy;
    if (!record.empty())
        variables["MCRT_RECORD"] = record;
    return variables;
}

std::string command_of(const Failure &failure) {
    std::map<std::string, std::string> variables = variables_of(failure, failure.by_schedule, "");
    std::string text = "MCRT_SEED=" + variables["MCRT_SEED"] + " "; // what is looked for first
    variables.erase("MCRT_SEED");
    for (const auto &[name, value] : variables)
        if (name.starts_with("MCRT_"))
            text += name + "=" + quoted(value) + " ";
    return text + quoted(failure.program.arguments);
}

} // namespace mc::mcrt
