#include "base/cpus.hpp"

#include "base/sync.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace mc::base {
namespace {

constexpr size_t most_path = 4096;

// The first line of root + directory + group + name, or false.
bool read_line(const char *root, const char *directory, const char *group, const char *name, char *line, int size) {
    char path[most_path];
    if (std::snprintf(path, sizeof path, "%s%s%s%s", root, directory, group, name) >= static_cast<int>(sizeof path))
        return false;
    FILE *file = std::fopen(path, "re");
    if (file == nullptr)
        return false;
    const bool read = std::fgets(line, size, file) != nullptr;
    std::fclose(file);
    return read;
}

uint32_t rounded_up(long long quota, long long period) {
    if (quota <= 0 || period <= 0)
        return UINT32_MAX;
    return static_cast<uint32_t>(std::clamp<long long>((quota - 1) / period + 1, 1, UINT32_MAX));
}

// Version 2: "max 100000", or "150000 100000".
uint32_t unified_quota(const char *root, const char *group) {
    char line[128];
    long long quota = 0;
    long long period = 0;
    if (!read_line(root, "/sys/fs/cgroup", group, "/cpu.max", line, sizeof line) ||
        std::sscanf(line, "%lld %lld", &quota, &period) != 2)
        return UINT32_MAX;
    return rounded_up(quota, period);
}

// Version 1: two files; -1 is no quota.
uint32_t legacy_quota(const char *root, const char *group) {
    char line[128];
    long long quota = 0;
    long long period = 0;
    if (!read_line(root, "/sys/fs/cgroup/cpu", group, "/cpu.cfs_quota_us", line, sizeof line) ||
        std::sscanf(line, "%lld", &quota) != 1 ||
        !read_line(root, "/sys/fs/cgroup/cpu", group, "/cpu.cfs_period_us", line, sizeof line) ||
        std::sscanf(line, "%lld", &period) != 1)
        return UINT32_MAX;
    return rounded_up(quota, period);
}

// Of the group and all above it: the least. group is used up.
template <class Quota> uint32_t least_upwards(const char *root, char *group, Quota quota) {
    uint32_t least = UINT32_MAX;
    for (;;) {
        if (std::strcmp(group, "/") == 0)
            *group = '\0';
        least = std::min(least, quota(root, group));
        char *last = std::strrchr(group, '/');
        if (last == nullptr)
            return least;
        *last = '\0';
    }
}

bool lists_cpu(const char *controllers, size_t length) {
    for (const char *at = controllers, *end = controllers + length; at < end;) {
        const char *comma = static_cast<const char *>(std::memchr(at, ',', static_cast<size_t>(end - at)));
        const char *stop = comma == nullptr ? end : comma;
        if (stop - at == 3 && std::strncmp(at, "cpu", 3) == 0)
            return true;
        at = stop + 1;
    }
    return false;
}

// A line of /proc/self/cgroup: hierarchy:controllers:group.
uint32_t quota_of_line(const char *root, char *line) {
    line[std::strcspn(line, "\n")] = '\0';
    char *controllers = std::strchr(line, ':');
    char *group = controllers == nullptr ? nullptr : std::strchr(++controllers, ':');
    if (group == nullptr)
        return UINT32_MAX;
    const auto length = static_cast<size_t>(group - controllers);
    ++group;
    if (length == 0)
        return least_upwards(root, group, unified_quota);
    return lists_cpu(controllers, length) ? least_upwards(root, group, legacy_quota) : UINT32_MAX;
}

} // namespace

uint32_t quota_cpus(const char *root) noexcept {
    const int saved = errno;
    uint32_t least = UINT32_MAX;
    char line[most_path];
    std::snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    if (FILE *file = std::fopen(line, "re")) {
        while (std::fgets(line, sizeof line, file) != nullptr)
            least = std::min(least, quota_of_line(root, line));
        std::fclose(file);
    }
    errno = saved;
    return least;
}

#ifdef MC_SYS
uint32_t usable_cpus() noexcept { return sync::cpu_count(); }
uint32_t known_cpus() noexcept { return sync::cpu_count(); }
#else
namespace {
sync::atomic<uint32_t> usable{0};
}

uint32_t usable_cpus() noexcept {
    uint32_t count = usable.load(sync::relaxed);
    if (count == 0) {
        count = std::min(sync::cpu_count(), quota_cpus(""));
        usable.store(count, sync::relaxed); // whoever stores stores the same
    }
    return count;
}

uint32_t known_cpus() noexcept { return std::max<uint32_t>(usable.load(sync::relaxed), 1); }
#endif

} // namespace mc::base
