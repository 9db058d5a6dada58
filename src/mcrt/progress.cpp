#include "mcrt/progress.hpp"

#include "mcrt/runner.hpp"
#include "mcrt/text.hpp"

#include <algorithm>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

namespace mc::mcrt {
namespace {

constexpr double bar_every_s = 0.1;
constexpr double line_every_s = 2.0;
constexpr size_t bar_width = 24;
constexpr size_t least_bar_width = 4;
constexpr size_t usual_columns = 80;

size_t columns_of_terminal() {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : usual_columns;
}

} // namespace

Progress::Progress(std::string what, uint64_t most)
    : what_(std::move(what)), most_(most), terminal_(isatty(STDERR_FILENO) == 1), began_(steady_seconds()),
      shown_(began_) {}

Progress::~Progress() {
    if (drawn_)
        std::fputs("\r\033[K", stderr);
}

void Progress::show(uint64_t done, uint64_t signatures) {
    const double now = steady_seconds();
    if (now - shown_ < (terminal_ ? bar_every_s : line_every_s))
        return;
    shown_ = now;
    const double elapsed = now - began_;
    const auto rate = static_cast<uint64_t>(static_cast<double>(done) / elapsed);
    const std::string figures = grouped(done) + " of " + counted(most_, what_) + ", " + grouped(rate) + "/s, " +
                                counted(signatures, "distinct signature") + ", " + seconds(elapsed);
    if (terminal_)
        draw_bar(done, figures);
    else
        std::fprintf(stderr, "mcrt: %s\n", figures.c_str());
}

// On one line of the terminal, or each would leave the one before behind. The figures matter more than the bar.
void Progress::draw_bar(uint64_t done, const std::string &figures) {
    const size_t columns = columns_of_terminal() - 1;
    const size_t beside = figures.size() + 3; // its brackets, and a space
    const size_t room = columns < beside ? 0 : std::min(columns - beside, bar_width);
    const auto share = static_cast<double>(done) / static_cast<double>(std::max<uint64_t>(most_, 1));
    const auto full = std::min(static_cast<size_t>(share * static_cast<double>(room)), room);
    const std::string bar =
        room < least_bar_width ? "" : "[" + std::string(full, '#') + std::string(room - full, ' ') + "] ";
    std::fprintf(stderr, "\r%s\033[K", (bar + figures).substr(0, columns).c_str());
    drawn_ = true;
}

} // namespace mc::mcrt
