#include "mcrt/draw.hpp"

#include "mcrt/picture.hpp"
#include "mcrt/recording.hpp"
#include "mcrt/sequence.hpp"
#include "mcrt/stop.hpp"
#include "mcrt/verdict.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace mc::mcrt {
namespace {

void write_picture(const std::string &path, const std::string &picture) {
    if (path == "-") {
        std::fwrite(picture.data(), 1, picture.size(), stdout);
        return;
    }
    std::ofstream file(path, std::ios::binary);
    file << picture;
    if (!file.flush())
        throw Stop{status_usage, "cannot write " + path + ": " + std::strerror(errno)};
}

// The recording knows no more of how the process ended.
std::string wrong_with(const mc_sim_recording &header) {
    const Verdict verdict = judge(Ending{}, header, "");
    return verdict.failed()               ? in_words(verdict)
           : header.state == MC_SIM_ENDED ? ""
                                          : "the program did not come to its exit";
}

} // namespace

int draw(const DrawOptions &options) {
    std::string why;
    const std::optional<Recording> recording = read_recording(options.recording, &why);
    if (!recording)
        throw Stop{status_usage, why};
    const std::string wrong = wrong_with(recording->header);
    if (!options.svg.empty())
        write_picture(options.svg, picture_of(*recording, wrong));
    if (options.text || options.svg.empty())
        for (const std::string &line : sequence_of(*recording, wrong))
            std::printf("%s\n", line.c_str());
    return status_fine;
}

} // namespace mc::mcrt
