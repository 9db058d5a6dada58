// What is read from files: recordings, which a dying process may have left in any state, and failures, which somebody may have edited.
#include "mcrt/difference.hpp"
#include "mcrt/failure.hpp"
#include "mcrt/picture.hpp"
#include "mcrt/recording.hpp"
#include "mcrt/sequence.hpp"
#include "mcrt/stop.hpp"
#include "mcrt/test_text.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>

using namespace mc::mcrt;

namespace {

struct TemporaryFile {
    TemporaryFile() {
        const int file = mkstemp(path);
        cr_assert_geq(file, 0);
        close(file);
    }
    ~TemporaryFile() { unlink(path); }
    TemporaryFile(const TemporaryFile &) = delete;
    TemporaryFile &operator=(const TemporaryFile &) = delete;

    void write(const std::string &bytes) const { std::ofstream(path, std::ios::binary) << bytes; }

    char path[32] = "/tmp/mcrt-test-XXXXXX";
};

mc_sim_event event(uint32_t kind, uint64_t task, uint64_t object = 0, uint64_t peer = 0, int64_t value = 0,
                   const char *text = "") {
    mc_sim_event one{kind, 0, 1, MC_SEC, task, object, peer, value, {}};
    std::memcpy(one.text, text,
                std::min(std::strlen(text) + 1, sizeof one.text)); // may be without its 0, as a process may leave it
    return one;
}

Recording recording_with(std::vector<mc_sim_event> events) {
    Recording recording;
    recording.events = std::move(events);
    mc_sim_recording &header = recording.header;
    std::memcpy(header.magic, MC_SIM_MAGIC, sizeof header.magic);
    header.header_bytes = MC_SIM_HEADER_BYTES;
    header.events = recording.events.size();
    header.events_room = header.events + 2;
    header.choices_room = 4;
    header.choices = 9; // more than there is room for
    header.choices_at = MC_SIM_HEADER_BYTES;
    header.events_at = header.choices_at + 4 * sizeof(mc_sim_choice);
    return recording;
}

std::string bytes_of(const Recording &recording) {
    std::string bytes(recording.header.events_at + recording.header.events_room * sizeof(mc_sim_event), '\0');
    std::memcpy(bytes.data(), &recording.header, sizeof recording.header);
    std::memcpy(bytes.data() + recording.header.events_at, recording.events.data(),
                recording.events.size() * sizeof(mc_sim_event));
    return bytes;
}

bool reads(const TemporaryFile &file, const std::string &bytes) {
    file.write(bytes);
    std::string why;
    const bool read = read_recording(file.path, &why).has_value();
    cr_assert(read == read_header(file.path).has_value());
    cr_assert(read != (why.find(file.path) != std::string::npos), "%s", why.c_str());
    return read;
}

std::string joined(const std::vector<std::string> &lines) {
    std::string text;
    for (const std::string &line : lines)
        text += line + "\n";
    return text;
}

bool contains(const std::string &text, const char *part) { return text.find(part) != std::string::npos; }

} // namespace

// Goal: what is there is read, and no more than that.
Test(Recording, is_read_as_far_as_there_is_room) {
    const TemporaryFile file;
    const std::string name(sizeof(mc_sim_event::text), 'x');
    file.write(bytes_of(recording_with({event(MC_SIM_NAME, 0, 0, 0, 0, name.c_str())})));
    std::string why;
    const std::optional<Recording> read = read_recording(file.path, &why);
    cr_assert(read.has_value(), "%s", why.c_str());
    cr_assert_eq(read->choices.size(), 4);
    cr_assert(read->cut());
    cr_assert_eq(std::strlen(read->events.at(0).text), name.size() - 1);
}

// Goal: places outside the file, however large, are noticed; so is a file that is cut off, empty or another thing.
Test(Recording, is_not_believed) {
    const TemporaryFile file;
    const Recording good = recording_with({event(MC_SIM_SPAWN, 0, 0, 1)});
    cr_assert(reads(file, bytes_of(good)));
    const std::string bytes = bytes_of(good);
    cr_assert(!reads(file, ""));
    cr_assert(!reads(file, bytes.substr(0, 100)));
    cr_assert(!reads(file, bytes.substr(0, bytes.size() - 1)));
    cr_assert(!reads(file, std::string(10'000, 'M')));
    for (uint64_t mc_sim_recording::*const field : {&mc_sim_recording::choices_at, &mc_sim_recording::events_at,
                                                    &mc_sim_recording::choices_room, &mc_sim_recording::events_room})
        for (const uint64_t value : {uint64_t{1} << 20, UINT64_MAX, UINT64_MAX / 8, uint64_t{1} << 61}) {
            std::string bad = bytes;
            mc_sim_recording header = good.header;
            header.*field = value;
            std::memcpy(bad.data(), &header, sizeof header);
            cr_assert(!reads(file, bad));
        }
}

// Goal: events that make no sense are drawn as well as that can be, and text in them breaks nothing.
Test(Recording, nonsense_is_drawn) {
    std::vector<mc_sim_event> events;
    for (uint32_t kind = 0; kind <= 40; ++kind)
        for (const uint64_t task : {uint64_t{0}, uint64_t{7}, UINT64_MAX})
            for (const int64_t value : {INT64_MIN, int64_t{-1}, int64_t{1}, INT64_MAX})
                events.push_back(event(kind, task, UINT64_MAX, 7, value, "</text>&\x1b\xff\"'"));
    const Recording recording = recording_with(std::move(events));
    const std::string picture = picture_of(recording, "a < b && c > d\x01");
    cr_assert(contains(picture, "a &lt; b &amp;&amp; c &gt; d"));
    cr_assert(!contains(picture, "\x1b") && !contains(picture, "\xff") && !contains(picture, "</text>&amp;"));
    const std::string text = joined(sequence_of(recording, "at last"));
    cr_assert(contains(text, "! at last\n"));
    cr_assert(!contains(text, "\x1b"));
    cr_assert(contains(picture_of(recording_with({}), ""), "</svg>"));
}

// Goal: a long recording is cut to its end, of many tasks some are left out, and both are said.
Test(Picture, is_cut_to_the_end) {
    std::vector<mc_sim_event> events;
    for (uint64_t i = 1; i <= 1000; ++i)
        events.push_back(event(MC_SIM_SPAWN, 0, 0, i, 0, "worker"));
    const std::string picture = picture_of(recording_with(std::move(events)), "");
    cr_assert(contains(picture, "the last 400 of 1,000 events"));
    cr_assert(contains(picture, "tasks left out"));
    cr_assert(contains(picture, ">1000</text>"));
    cr_assert_lt(picture.size(), size_t{400} << 10);
}

// Where the text that ends so begins: the last x before it.
double x_before(const std::string &picture, const std::string &end) {
    const size_t at = picture.find(end);
    cr_assert(at != std::string::npos, "no %s in\n%s", end.c_str(), picture.c_str());
    return std::atof(picture.c_str() + picture.rfind("<text x=\"", at) + 9);
}

// Goal: words stand beside the head of an arrow, from whichever side it comes.
Test(Picture, arrow_heads_are_seen) {
    const std::string picture =
        picture_of(recording_with({
                       event(MC_SIM_SPAWN, 0, 0, 1), event(MC_SIM_PUT, 1, 1, 0, 5),
                       event(MC_SIM_TAKE, 0, 1, 0, 5),                                // from the right
                       event(MC_SIM_PUT, 0, 1, 0, 6), event(MC_SIM_TAKE, 1, 1, 0, 6), // from the left
                   }),
                   "");
    const double right = x_before(picture, ">takes 5 of object 1</text>");
    const double left = x_before(picture, ">takes 6 of object 1</text>");
    cr_assert_geq(right - x_before(picture, ">puts 6 into object 1</text>"), 8.0);
    cr_assert_eq(left, x_before(picture, ">puts 5 into object 1</text>"));
}

// Goal: long names leave room for those beside them, are told apart by their ends too, and stand in full in their titles.
Test(Picture, long_names_are_elided_inside) {
    const std::string first = "connection_to_backend_a", second = "connection_to_backend_b";
    const std::string picture = picture_of(recording_with({event(MC_SIM_SPAWN, 0, 0, 1, 0, first.c_str()),
                                                           event(MC_SIM_SPAWN, 0, 0, 2, 0, second.c_str())}),
                                           "");
    cr_assert(contains(picture, "<title>connection_to_backend_a</title>connectio\xe2\x80\xa6"
                                "backend_a</text>"),
              "%s", picture.c_str());
    cr_assert(contains(picture, "\xe2\x80\xa6"
                                "backend_b</text>"));
    cr_assert(!contains(picture, ">connection_to_backend_a</text>"));
}

// Goal: what is wrong is shown in lines that fit into its box, however long it is, and stands in full in the box's title.
Test(Picture, what_is_wrong_is_wrapped) {
    std::string wrong = "it went wrong";
    for (int i = 0; i < 30; ++i)
        wrong += " word_" + std::to_string(i);
    const std::string picture = picture_of(recording_with({event(MC_SIM_SPAWN, 0, 0, 1)}), wrong);
    cr_assert(contains(picture, ("<title>" + wrong + "</title></rect>").c_str()));
    size_t lines = 0;
    for (size_t at = 0; (at = picture.find("class=\"wrong\">", at)) != std::string::npos; ++lines) {
        const size_t begin = picture.find("</title>", at) + 8;
        at = picture.find("</text>", begin);
        cr_assert_leq(at - begin, 100u);
    }
    cr_assert_eq(lines, 3u);
}

// Goal: names say who is meant: by number where several have one.
Test(Sequence, names_tasks_and_channels) {
    const Recording recording = recording_with({
        event(MC_SIM_SPAWN, 0, 0, 1, 0, "worker"),
        event(MC_SIM_SPAWN, 0, 0, 2, 0, "worker"),
        event(MC_SIM_SPAWN, 0, 0, 3, 0, "boss"),
        event(MC_SIM_SPAWN, 0, 0, 4),
        event(MC_SIM_CHANNEL, 0, 1, 0, 2),
        event(MC_SIM_NAME_CHANNEL, 0, 1, 0, 0, "jobs"),
        event(MC_SIM_MESSAGE, 3, 1, 2),
        event(MC_SIM_PUT, 4, 1, 0, 5),
        event(MC_SIM_WAIT, 1, 9, 0, 7),
        event(MC_SIM_RUN, 2, 0, 1, 1),
    });
    const std::string text = joined(sequence_of(recording, ""));
    for (const char *part :
         {"boss      sends to channel 1 \"jobs\" -> worker#2", "task#4    puts message 5 into channel 1 \"jobs\"",
          "worker#1  waits for mutex 9", "makes channel 1 \"jobs\", for 2 messages",
          "*      9   1.0000000  worker#2  goes on, before worker#1 does (choice 0)"})
        cr_assert(contains(text, part), "%s is not in\n%s", part, text.c_str());
}

// Goal: the text and the picture mark what deviations did, and nothing else.
Test(Sequence, marks_deviations) {
    auto other_goes_on = event(MC_SIM_RUN, 1, 0, 2, 1);
    auto time = event(MC_SIM_TIME, MC_SIM_CLOCK, 0, 0, 1);
    other_goes_on.choice = 2;
    time.choice = 3;
    Recording recording =
        recording_with({event(MC_SIM_SPAWN, 0, 0, 1), event(MC_SIM_SPAWN, 0, 0, 2), other_goes_on, time});
    recording.choices = {{2, 1, 0, 1}, {2, 0, 0, 1}, {2, 0, 0, 3}};
    cr_assert(!contains(joined(sequence_of(recording, "")), "*"));
    cr_assert(!contains(picture_of(recording, ""), "halo wrong"));
    recording.choices[1].taken = 1;
    cr_assert(contains(joined(sequence_of(recording, "")), "*      2"));
    cr_assert(!contains(joined(sequence_of(recording, "")), "*      3"));
    cr_assert(contains(picture_of(recording, ""), "class=\"halo wrong\"><title>2: "));
    recording.choices[2].taken = 1;
    cr_assert(contains(joined(sequence_of(recording, "")), "*      3"));
    cr_assert(contains(picture_of(recording, ""), "time passes those"));
}

// Goal: of more events than are wanted the last are told, and how many there were before.
Test(Sequence, is_cut_at_its_beginning) {
    std::vector<mc_sim_event> events;
    for (uint64_t i = 0; i < 5; ++i)
        events.push_back(event(MC_SIM_NOTE, 1, 0, 0, 0, ("note " + std::to_string(i)).c_str()));
    const std::vector<std::string> lines = sequence_of(recording_with(events), "", 2);
    cr_assert_eq(lines.size(), 4u);
    check_text(lines[1], "  ... after 3 events that only the recording has");
    cr_assert(contains(lines[2], "note 3") && contains(lines[3], "note 4"));
    cr_assert_eq(sequence_of(recording_with(events), "", 5).size(), 6u);
}

// --- two runs ---

namespace {

std::optional<std::string> compare(const Recording &one, const Recording &other, bool cut = false) {
    return difference({one, "one"}, {other, "other"}, cut);
}

} // namespace

// Goal: the first event that differs is named, with what both do there; what a time limit cut off is no difference.
Test(Difference, is_told_in_words) {
    const auto one =
        recording_with({event(MC_SIM_SPAWN, 0, 0, 1, 0, "a"), event(MC_SIM_CLOSE, 1, 4), event(MC_SIM_END, 1)});
    auto other = one;
    cr_assert(!compare(one, other));
    other.header.signature = 1;
    other.events[1].object = 5;
    check_text(compare(one, other).value_or(""),
               "at event 1:\n  one: a closes object 4 for writing\n  other: a closes object 5 for writing");
    other.events.resize(1);
    check_text(compare(one, other).value_or(""),
               "at event 1:\n  one: a closes object 4 for writing\n  other: it had ended");
    cr_assert(!compare(one, other, true));
    other = one;
    other.header.signature = 1;
    other.events[2].now_ns += 100;
    check_text(compare(one, other).value_or(""),
               "at event 2:\n  one: a ends, at 1.0000000\n  other: a ends, at 1.0000001");
}

// Goal: choices tell what events do not.
Test(Difference, of_choices) {
    auto one = recording_with({});
    one.choices = {{2, 0, 0, 1}, {2, 0, 0, 1}};
    auto other = one;
    other.header.signature = 1;
    other.choices[1].candidates = 3;
    check_text(compare(one, other).value_or(""), "at choice 1:\n  one: candidate 0 of 2\n  other: candidate 0 of 3");
    cr_assert(compare(one, other, true).has_value());
}

// --- failures ---

namespace {

Failure planted_failure() {
    Failure failure;
    failure.program = Program{
        "/opt/an app", {"./an app", "--x", "", "\"q\"\n\x1b[31m"}, {{"MCRT_ORACLES", "fifo"}, {"LD_PRELOAD", "x.so"}}};
    failure.directory = "/tmp";
    failure.seed = UINT64_MAX;
    failure.policy = "mix";
    failure.schedule = "3:1,17:2";
    failure.by_schedule = true;
    failure.signature = 0xfedcba9876543210;
    failure.verdict = Verdict{Fault::oracle, 6, "channel 3 \"jobs\" <lost>"};
    failure.limit_s = 2.5;
    failure.output = "printed\x01\xff";
    return failure;
}

bool is_refused(const TemporaryFile &file, const std::string &text) {
    file.write(text);
    try {
        (void)read_failure(file.path);
    } catch (const Stop &stop) {
        return stop.status == status_usage;
    }
    return false;
}

} // namespace

// Goal: what is written is read again.
Test(Failure, round_trip) {
    const TemporaryFile file;
    const Failure failure = planted_failure();
    file.write(to_json(failure));
    const Failure read = read_failure(file.path);
    cr_assert(read.program.path == failure.program.path && read.program.arguments == failure.program.arguments);
    cr_assert(read.program.environment == failure.program.environment);
    cr_assert(read.directory == failure.directory && read.policy == failure.policy &&
              read.schedule == failure.schedule);
    cr_assert(read.seed == failure.seed && read.signature == failure.signature && read.by_schedule);
    cr_assert(same_failure(read.verdict, failure.verdict));
    cr_assert(to_json(read) == to_json(failure));
}

// Goal: the line for a shell has what the simulation needs, quoted.
Test(Failure, command) {
    Failure failure = planted_failure();
    failure.program.arguments = {"./an app", "-v"};
    check_text(command_of(failure),
               "MCRT_SEED=18446744073709551615 MCRT_ORACLES=fifo MCRT_SCHEDULE=3:1,17:2 './an app' -v");
    failure.by_schedule = false;
    check_text(command_of(failure), "MCRT_SEED=18446744073709551615 MCRT_ORACLES=fifo MCRT_POLICY=mix './an app' -v");
}

// Goal: whatever is missing or of another kind is refused, and nothing crashes.
Test(Failure, is_not_believed) {
    const TemporaryFile file;
    const std::string json = to_json(planted_failure());
    for (const char *text :
         {"", "{", "[]", "{}", "null", "{\"format\": 3}", "{\"format\": \"mcrt failure\", \"format_version\": 2}"})
        cr_assert(is_refused(file, text), "%s", text);
    cr_assert(is_refused(file, std::string(200'000, '[')));
    cr_assert(is_refused(file, std::string(200'000, '[') + std::string(200'000, ']')));
    for (const char *key :
         {"program", "arguments", "environment", "seed", "schedule", "signature", "failure", "kind", "code"}) {
        std::string without = json;
        without.replace(without.find(std::string("\"") + key + "\""), std::strlen(key) + 2, "\"other\"");
        cr_assert(is_refused(file, without), "%s", key);
    }
    const auto with = [&](const std::string &from, const std::string &to) {
        std::string changed = json;
        const size_t at = changed.find(from);
        cr_assert_lt(at, changed.size(), "%s", from.c_str());
        return changed.replace(at, from.size(), to);
    };
    cr_assert(is_refused(file, with("\"--x\"", "7")));
    cr_assert(is_refused(file, with("\"x.so\"", "null")));
    cr_assert(is_refused(file, with("\"oracle\"", "\"it ended well\"")));
    for (const char *text : {"\"zz\"", "\"0x\"", "\"0x1g\"", "\"0x1fedcba9876543210\""})
        cr_assert(is_refused(file, with("\"0xfedcba9876543210\"", text)), "%s", text);
    for (size_t length = 0; length + 2 < json.size(); length += 7)
        cr_assert(is_refused(file, json.substr(0, length)));
}
