#include "mcrt/scratch.hpp"

#include "mcrt/stop.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/statvfs.h>
#include <system_error>
#include <unistd.h>

namespace mc::mcrt {
namespace {

bool has_room(const char *path, uint64_t bytes) {
    struct statvfs status {};
    return access(path, W_OK | X_OK) == 0 && statvfs(path, &status) == 0 &&
           uint64_t{status.f_bavail} * status.f_frsize >= bytes;
}

std::string place_for(uint64_t bytes) {
    constexpr const char *memory = "/dev/shm";
    if (has_room(memory, 2 * bytes)) // others use it too
        return memory;
    const char *asked = std::getenv("TMPDIR");
    return asked == nullptr || *asked == '\0' ? "/tmp" : asked;
}

} // namespace

Scratch::Scratch(uint64_t bytes) : path_(place_for(bytes) + "/mcrt-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr)
        throw Stop{status_usage, "cannot make a directory " + path_ + ": " + std::strerror(errno)};
}

Scratch::~Scratch() {
    std::error_code ignored; // there is nobody left to tell
    std::filesystem::remove_all(path_, ignored);
}

} // namespace mc::mcrt
