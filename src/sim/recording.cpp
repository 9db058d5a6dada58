#include "sim/recording.hpp"

#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace mc::sim {
namespace {

// The file has holes: what is not written takes no room on the disk.
constexpr uint64_t choices_room = uint64_t{1} << 22;
constexpr uint64_t events_room = uint64_t{1} << 20;
constexpr uint64_t choices_at = MC_SIM_HEADER_BYTES;
constexpr uint64_t events_at = choices_at + choices_room * sizeof(mc_sim_choice);
constexpr uint64_t file_bytes = events_at + events_room * sizeof(mc_sim_event);

static_assert(sizeof(mc_sim_recording) <= MC_SIM_HEADER_BYTES);
static_assert(sizeof(mc_sim_choice) == 8 && sizeof(mc_sim_event) == 88);

} // namespace

bool Recording::open(const char *path) noexcept {
    const int file = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0)
        return false;
    void *memory = MAP_FAILED;
    rlimit limit{};
    const bool allowed = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= file_bytes; // else a signal ends us
    if (allowed && flock(file, LOCK_EX | LOCK_NB) == 0 && ftruncate(file, 0) == 0 &&
        ftruncate(file, static_cast<off_t>(file_bytes)) == 0)
        memory = mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        close(file);
        return false;
    }
    file_ = file;
    auto *bytes = static_cast<char *>(memory);
    header_ = static_cast<mc_sim_recording *>(memory);
    choices_ = reinterpret_cast<mc_sim_choice *>(bytes + choices_at);
    events_ = reinterpret_cast<mc_sim_event *>(bytes + events_at);
    header_->header_bytes = MC_SIM_HEADER_BYTES;
    header_->choices_room = choices_room;
    header_->events_room = events_room;
    header_->choices_at = choices_at;
    header_->events_at = events_at;
    std::memcpy(header_->magic, MC_SIM_MAGIC, sizeof header_->magic);
    return true;
}

void Recording::forget() noexcept {
    header_ = nullptr;
    if (file_ >= 0)
        close(file_); // the lock stays with the parent
    file_ = -1;
}

} // namespace mc::sim
