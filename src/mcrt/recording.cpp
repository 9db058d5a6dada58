#include "mcrt/recording.hpp"

#include "mcrt/file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mc::mcrt {
namespace {

bool read_at(int file, uint64_t offset, void *out, size_t bytes) {
    auto *at = static_cast<char *>(out);
    while (bytes != 0) {
        const ssize_t got = pread(file, at, bytes, static_cast<off_t>(offset));
        if (got <= 0)
            return false;
        at += got;
        offset += static_cast<uint64_t>(got);
        bytes -= static_cast<size_t>(got);
    }
    return true;
}

// An array of so many elements lies in the file.
bool fits(uint64_t at, uint64_t room, uint64_t element, uint64_t file_bytes) {
    return at >= MC_SIM_HEADER_BYTES && at <= file_bytes && room <= (file_bytes - at) / element;
}

bool read_header(int file, mc_sim_recording *header) {
    struct stat status {};
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || !read_at(file, 0, header, sizeof *header))
        return false;
    const auto bytes = static_cast<uint64_t>(status.st_size);
    header->policy[sizeof header->policy - 1] = '\0';
    header->message[sizeof header->message - 1] = '\0';
    return std::memcmp(header->magic, MC_SIM_MAGIC, sizeof header->magic) == 0 &&
           header->header_bytes == MC_SIM_HEADER_BYTES &&
           fits(header->choices_at, header->choices_room, sizeof(mc_sim_choice), bytes) &&
           fits(header->events_at, header->events_room, sizeof(mc_sim_event), bytes);
}

template <class Element>
bool read_array(int file, uint64_t at, uint64_t count, uint64_t room, std::vector<Element> *out) {
    out->resize(std::min(count, room));
    return read_at(file, at, out->data(), out->size() * sizeof(Element));
}

// A FIFO is no recording, and would keep us.
int open_to_read(const std::string &path) { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }

} // namespace

std::optional<mc_sim_recording> read_header(const std::string &path) {
    const File file(open_to_read(path));
    mc_sim_recording header{};
    if (!file || !read_header(file.get(), &header))
        return std::nullopt;
    return header;
}

std::optional<Recording> read_recording(const std::string &path, std::string *why, Events events) {
    const File file(open_to_read(path));
    if (!file) {
        *why = path + ": " + std::strerror(errno);
        return std::nullopt;
    }
    Recording recording;
    mc_sim_recording &header = recording.header;
    if (!read_header(file.get(), &header) ||
        !read_array(file.get(), header.choices_at, header.choices, header.choices_room, &recording.choices) ||
        (events == Events::wanted &&
         !read_array(file.get(), header.events_at, header.events, header.events_room, &recording.events))) {
        *why = path + ": no recording of a simulated run (MCRT_RECORD makes them)";
        return std::nullopt;
    }
    for (mc_sim_event &event : recording.events)
        event.text[sizeof event.text - 1] = '\0';
    return recording;
}

} // namespace mc::mcrt
