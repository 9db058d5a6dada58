#include "mcrt/picture.hpp"

#include "mcrt/layout.hpp"
#include "mcrt/names.hpp"
#include "mcrt/schedule.hpp"
#include "mcrt/svg.hpp"
#include "mcrt/text.hpp"
#include "mcrt/words.hpp"

#include <mc/inspect.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

namespace mc::mcrt {
namespace {

constexpr std::string_view style = R"(
text { font-family: "DejaVu Sans", Verdana, Arial, sans-serif; font-size: 11px; fill: #1f2933; }
.halo { paint-order: stroke; stroke: #ffffff; stroke-width: 3px; stroke-linejoin: round; }
.title { font-size: 15px; font-weight: bold; }
.quiet { fill: #7b8794; }
.time { font-size: 10px; fill: #7b8794; text-anchor: end; }
.name { font-size: 12px; font-weight: bold; text-anchor: middle; }
.number { font-size: 10px; fill: #7b8794; text-anchor: middle; }
.wrong { fill: #c81e1e; font-weight: bold; }
.note { font-style: italic; }
)";

constexpr const char *ink = "#1f2933";      // messages
constexpr const char *buffered = "#7c3aed"; // into a buffer and out of it
constexpr const char *birth = "#15803d";
constexpr const char *red = "#c81e1e";
constexpr const char *lock_colours[] = {"#d97706", "#0891b2", "#be185d", "#4d7c0f", "#7c3aed", "#b45309"};

constexpr double letter = 6.6; // about as wide as one is
constexpr double bold_letter = 7.9;
constexpr double name_letter = 8.6; // of lanes' names
constexpr double between_names = 12;
constexpr double half_block = 6;   // of where a task runs
constexpr double foot_height = 34; // below the last row
constexpr double line_height = 16; // of what is wrong
constexpr size_t most_wrong_lines = 12;
constexpr size_t most_wrong_letters = 100; // in a line
constexpr double high_picture = 1000;      // one that is higher has the names at the bottom too

class Picture {
public:
    Picture(const Recording &recording, const std::string &wrong)
        : recording_(recording), names_(recording), layout_(lay_out(recording)),
          wrong_(lines_of(clean(wrong, Lines::keep))), wrong_title_(title_of(clean(wrong, Lines::keep), wrong_)),
          svg_(width(), height(), style) {}

    std::string draw() {
        draw_heading();
        for (const Lane &lane : layout_.lanes)
            draw_lane(lane);
        draw_buffers();
        for (const Row &row : layout_.rows)
            draw_row(row);
        draw_times();
        draw_end();
        return std::move(svg_).finish();
    }

private:
    static std::vector<std::string> lines_of(const std::string &text) {
        std::istringstream stream(text);
        std::vector<std::string> lines;
        for (std::string line; std::getline(stream, line);)
            for (std::string &part : wrapped(line, most_wrong_letters))
                lines.push_back(std::move(part));
        if (lines.size() > most_wrong_lines) {
            lines.resize(most_wrong_lines);
            lines.back() = "\xe2\x80\xa6";
        }
        return lines;
    }
    static std::string title_of(const std::string &text, const std::vector<std::string> &lines) {
        std::string shown;
        for (const std::string &line : lines)
            shown += (shown.empty() ? "" : "\n") + line;
        return shown == text ? "" : text;
    }

    double width() const {
        double widest = layout_.right + 60;
        for (const std::string &line : wrong_)
            widest = std::max(widest, layout_.left + 40 + static_cast<double>(width_of(line)) * bold_letter);
        return widest;
    }
    // Of what is below the last row.
    double wrong_top() const { return layout_.bottom + (has_names_below() ? 2 : 1) * foot_height - 10; }
    double height() const {
        return wrong_top() + (wrong_.empty() ? 0 : static_cast<double>(wrong_.size()) * line_height + 24);
    }
    bool has_names_below() const { return layout_.bottom - layout_.top > high_picture; }

    const mc_sim_event &event(const Row &row) const { return recording_.events[row.event]; }
    double x_of(uint64_t task) const { return layout_.lanes[layout_.lane.at(task)].x; }
    bool is_last(const Lane &lane) const { return &lane == &layout_.lanes.back(); }

    // --- what stands above and below ---

    void draw_heading() {
        const mc_sim_recording &header = recording_.header;
        svg_.text({16, 26}, "class=\"title\"", "seed " + std::to_string(header.seed));
        const std::string policy = clean(header.policy); // "schedule" is none
        std::string about = (policy == "schedule" ? "by schedule, " : "policy " + policy + ", ") +
                            counted(header.steps, "step") + ", " + counted(header.choices, "choice") + ", " +
                            counted(preemptions_of(recording_.choices), "preemption");
        if (layout_.events_before != 0)
            about += "; the last " + grouped(recording_.events.size() - layout_.events_before) + " of " +
                     counted(header.events, "event");
        if (layout_.tasks_left_out != 0)
            about += "; " + counted(layout_.tasks_left_out, "task") + " left out, which did nothing at the end";
        svg_.text({16, 44}, "class=\"quiet\"", about);
        draw_names(layout_.top - 24);
        if (has_names_below())
            draw_names(layout_.bottom + 24);
    }

    void draw_names(double y) {
        for (const Lane &lane : layout_.lanes) {
            const std::string name = names_.bare(lane.task);
            const auto most = static_cast<size_t>((layout_.spacing - between_names) / name_letter);
            svg_.text({lane.x, y}, "class=\"name\"", shortened_inside(name, most), name);
            if (lane.task != MC_SIM_CLOCK)
                svg_.text({lane.x, y + 13}, "class=\"number\"", std::to_string(lane.task));
        }
    }

    void draw_end() {
        const auto last = layout_.lane.find(layout_.last_task);
        if (wrong_.empty())
            return;
        if (last != layout_.lane.end())
            svg_.circle({layout_.lanes[last->second].x, layout_.bottom}, 7,
                        "fill=\"" + std::string(red) + "\" stroke=\"#ffffff\"");
        const double top = wrong_top();
        svg_.rectangle({layout_.left - 76, top}, width() - layout_.left + 60,
                       static_cast<double>(wrong_.size()) * line_height + 12,
                       "rx=\"4\" fill=\"#fef2f2\" stroke=\"#c81e1e\"", wrong_title_);
        for (size_t i = 0; i < wrong_.size(); ++i)
            svg_.text({layout_.left - 64, top + 18 + static_cast<double>(i) * line_height}, "class=\"wrong\"",
                      wrong_[i], wrong_title_);
    }

    // Where it has changed, and not so often that one hides the other.
    void draw_times() {
        double free = 0;
        std::string before;
        for (const Row &row : layout_.rows) {
            std::string text = time_words(event(row).now_ns);
            if (row.y < free || text == before)
                continue;
            svg_.text({layout_.left - 10, row.y + 4}, "class=\"time\"", text);
            before = std::move(text);
            free = row.y + 14;
        }
    }

    // --- lanes ---

    void draw_lane(const Lane &lane) {
        svg_.line({lane.x, lane.life.from}, {lane.x, lane.life.to}, "stroke=\"#9aa5b1\"");
        for (const Span &wait : lane.waits) {
            svg_.line({lane.x, wait.from}, {lane.x, wait.to}, "stroke=\"#ffffff\" stroke-width=\"2\"");
            svg_.line({lane.x, wait.from}, {lane.x, wait.to}, "stroke=\"#9aa5b1\" stroke-dasharray=\"2 4\"");
        }
        for (const Span &run : lane.runs)
            svg_.rectangle({lane.x - half_block, run.from}, 2 * half_block, run.to - run.from,
                           "fill=\"#bfdbfe\" stroke=\"#60a5fa\" rx=\"2\"");
        for (const Hold &hold : lane.holds)
            svg_.rectangle({lane.x - half_block - 6 - 6 * static_cast<double>(hold.depth), hold.span.from}, 4,
                           hold.span.to - hold.span.from, "fill=\"" + lock_colour(hold.mutex) + "\"",
                           names_.object(hold.mutex));
        if (lane.ends)
            svg_.line({lane.x - 9, lane.life.to}, {lane.x + 9, lane.life.to}, "stroke=\"#52606d\" stroke-width=\"2\"");
    }

    static std::string lock_colour(uint64_t mutex) { return lock_colours[mutex % std::size(lock_colours)]; }

    // --- rows ---

    void draw_row(const Row &row) {
        const mc_sim_event &one = event(row);
        switch (one.kind) {
        case MC_SIM_TIME:
            return draw_jump(row);
        case MC_SIM_SPAWN:
            return draw_birth(row);
        case MC_SIM_MESSAGE:
            return draw_message(row);
        case MC_SIM_CLOSE:
            draw_cross({x_of(one.task), row.y});
            break;
        case MC_SIM_RUN:
            if (one.value != 0)
                draw_turn(row);
            return;
        default:
            break;
        }
        label(row, short_words(one), label_class(one));
    }

    static const char *label_class(const mc_sim_event &one) {
        return one.kind == MC_SIM_NOTE   ? "class=\"halo note\""
               : one.kind == MC_SIM_WAIT ? "class=\"halo quiet\""
                                         : "class=\"halo\"";
    }

    // The lane says who, and there is little room: the whole of it is the text's title.
    std::string short_words(const mc_sim_event &one) const {
        const std::string object = names_.short_object(one.object);
        switch (one.kind) {
        case MC_SIM_WAIT:
            return wait_in_short(one, object);
        case MC_SIM_CHANNEL:
            return "makes " + object + (one.value == 0 ? "" : " (" + grouped(static_cast<uint64_t>(one.value)) + ")");
        case MC_SIM_PUT:
            return "puts " + std::to_string(one.value) + " into " + object;
        case MC_SIM_TAKE:
            return "takes " + std::to_string(one.value) + " of " + object;
        case MC_SIM_CLOSE:
            return "closes " + object;
        case MC_SIM_LOCK:
            return "locks " + object;
        case MC_SIM_UNLOCK:
            return "unlocks " + object;
        case MC_SIM_NOTE:
            return clean(one.text);
        default:
            return words_of(one, names_);
        }
    }

    std::string wait_in_short(const mc_sim_event &one, const std::string &object) const {
        switch (one.value) {
        case MC_WAIT_SEND:
            return "waits \xe2\x86\x92 " + object;
        case MC_WAIT_RECEIVE:
            return "waits \xe2\x86\x90 " + object;
        case MC_WAIT_JOIN:
            return "joins " + names_.task(one.peer);
        default:
            return wait_words(one.value) + (one.object == 0 ? "" : " " + object);
        }
    }

    void label(const Row &row, const std::string &text, std::string_view attributes) {
        const mc_sim_event &one = event(row);
        const Lane &lane = layout_.lanes[layout_.lane.at(one.task)];
        const double beside = heads_on_the_right_.count(row.event) == 0 ? 0 : arrow_head_length;
        const double room = (is_last(lane) ? layout_.spacing + 40 : layout_.spacing - 22) - beside;
        svg_.text({lane.x + half_block + beside + 5, row.y + 4}, attributes,
                  shortened(text, static_cast<size_t>(room / letter)),
                  std::to_string(row.event) + ": " + sentence_of(one, names_));
    }

    void draw_cross(Point at) {
        const std::string_view attributes = "stroke=\"#52606d\" stroke-width=\"2.5\"";
        svg_.line({at.x - 5, at.y - 5}, {at.x + 5, at.y + 5}, attributes);
        svg_.line({at.x - 5, at.y + 5}, {at.x + 5, at.y - 5}, attributes);
    }

    void draw_jump(const Row &row) {
        const bool passes = deviates(event(row), recording_.choices);
        svg_.line({layout_.left - 4, row.y}, {width() - 16, row.y},
                  passes ? "stroke=\"#c81e1e\" stroke-dasharray=\"6 4\""
                         : "stroke=\"#7b8794\" stroke-dasharray=\"6 4\"");
        svg_.text({width() - 16, row.y - 4},
                  passes ? "class=\"halo wrong\" text-anchor=\"end\"" : "class=\"halo quiet\" text-anchor=\"end\"",
                  (passes ? "time passes those that could go on: " : "time: ") + time_words(event(row).now_ns));
    }

    // Red where a deviation made it so.
    void draw_turn(const Row &row) {
        const mc_sim_event &one = event(row);
        if (!deviates(one, recording_.choices))
            return label(row, "before " + names_.task(one.peer), "class=\"halo quiet\"");
        const double x = x_of(one.task);
        svg_.path("M" + number(x - 16) + " " + number(row.y - 5) + " l8 5 l-8 5 Z",
                  "fill=\"" + std::string(red) + "\"");
        label(row, "before " + names_.task(one.peer), "class=\"halo wrong\"");
    }

    void draw_birth(const Row &row) {
        const mc_sim_event &one = event(row);
        shaft(one.task, one.peer, row.y, birth, "starts " + names_.task(one.peer), row);
    }

    void draw_message(const Row &row) {
        const mc_sim_event &one = event(row);
        shaft(one.task, one.peer, row.y, ink, names_.short_object(one.object), row);
    }

    // Its text stands above it, at the end where it begins.
    void shaft(uint64_t from, uint64_t to, double y, const char *colour, const std::string &text, const Row &row) {
        const double begin = x_of(from);
        const double end = x_of(to);
        const double side = end < begin ? -1 : 1;
        const std::string title = std::to_string(row.event) + ": " + sentence_of(event(row), names_);
        svg_.circle({begin, y}, 2.5, "fill=\"" + std::string(colour) + "\"");
        svg_.arrow({begin, y}, {end - side * half_block, y}, colour, "stroke-width=\"1.4\"", title);
        const auto most = static_cast<size_t>(std::max(std::abs(end - begin) - 30, 0.0) / letter);
        svg_.text({begin + side * (half_block + 5), y - 4},
                  std::string("class=\"halo\" style=\"fill:") + colour + "\" text-anchor=\"" +
                      (side < 0 ? "end" : "start") + "\"",
                  shortened(text, most), title);
    }

    // Before the rows, whose words make room for the heads. From where a message is put into a buffer to where it is taken out.
    void draw_buffers() {
        std::map<std::pair<uint64_t, int64_t>, const Row *> puts;
        for (const Row &row : layout_.rows) {
            const mc_sim_event &one = event(row);
            const auto key = std::make_pair(one.object, one.value);
            if (one.kind == MC_SIM_PUT)
                puts[key] = &row;
            if (one.kind != MC_SIM_TAKE || puts.count(key) == 0)
                continue;
            const Row &put = *puts[key];
            const double from = x_of(event(put).task);
            if (from > x_of(one.task))
                heads_on_the_right_.insert(row.event);
            draw_buffered({from, put.y}, {x_of(one.task), row.y});
        }
    }

    void draw_buffered(Point from, Point to) {
        const double side = to.x < from.x ? -1 : 1;
        const double beside = from.x == to.x ? 0 : half_block;
        svg_.circle(from, 2.5, "fill=\"" + std::string(buffered) + "\"");
        svg_.arrow(from, {to.x - side * beside, to.y}, buffered, "stroke-width=\"1.2\" stroke-opacity=\"0.6\"");
    }

    const Recording &recording_;
    const Names names_;
    const Layout layout_;
    const std::vector<std::string> wrong_;
    const std::string wrong_title_;       // all of it, where it is not shown as it is
    std::set<size_t> heads_on_the_right_; // events whose lane an arrow reaches from there, where their words stand
    Svg svg_;
};

} // namespace

std::string picture_of(const Recording &recording, const std::string &wrong) {
    return Picture(recording, wrong).draw();
}

} // namespace mc::mcrt
