// mcrt: explores, replays and draws simulated runs (mc/sim.h); shows and makes descriptors of machines (mc/machine.h). Reads files and
// runs programs. Of the library, what reads descriptors is linked in, and nothing else.
#include "mcrt/arguments.hpp"
#include "mcrt/signals.hpp"
#include "mcrt/stop.hpp"

#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace mc::mcrt;

int run(const Arguments &arguments) {
    if (const auto *options = std::get_if<ExploreOptions>(&arguments))
        return explore(*options);
    if (const auto *options = std::get_if<ReplayOptions>(&arguments))
        return replay(*options);
    if (const auto *options = std::get_if<ShowOptions>(&arguments))
        return show_descriptor(*options);
    if (const auto *options = std::get_if<BuildOptions>(&arguments))
        return build_descriptor(*options);
    return draw(std::get<DrawOptions>(arguments));
}

// Started without one of them: a pipe must not get its number, or a program's output would go there.
void open_standard_files() {
    while (true) {
        const int file = open("/dev/null", O_RDWR);
        if (file < 0 || file > STDERR_FILENO) {
            close(file);
            return;
        }
    }
}

} // namespace

int main(int argc, char **argv) try {
    open_standard_files();
    int status = 0;
    if (const std::optional<Arguments> arguments = read_arguments(argc, argv, &status))
        status = run(*arguments);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        throw Stop{status == status_fine ? status_usage : status, "cannot write to standard output"};
    return status;
} catch (const Stop &stop) {
    std::fflush(stdout);
    std::fprintf(stderr, "mcrt: %s\n", stop.text.c_str());
    return stop.status;
} catch (const Interrupted &interrupted) {
    std::fflush(stdout); // what was found by then
    end_by(interrupted.signal);
} catch (const std::exception &error) {
    std::fprintf(stderr, "mcrt: %s\n", error.what());
    return status_usage;
}
