#include "base/cpus.hpp"

#include "base/sync.hpp"
#include "testing/test.hpp"

#include <filesystem>
#include <fstream>
#include <string>

using namespace mc;
using namespace mc::base;

namespace {

// A machine's files below a directory of its own.
class Root {
public:
    Root() {
        std::string name = (std::filesystem::temp_directory_path() / "mcrt_cpus_XXXXXX").string();
        cr_assert_not_null(mkdtemp(name.data()));
        path_ = name;
    }
    Root(const Root &) = delete;
    Root &operator=(const Root &) = delete;
    ~Root() { std::filesystem::remove_all(path_); }

    Root &file(const std::string &name, const std::string &text) {
        const std::filesystem::path path = path_ + name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
        return *this;
    }
    uint32_t quota() const { return quota_cpus(path_.c_str()); }

private:
    std::string path_;
};

} // namespace

// Goal: without files, without quotas, and with files that make no sense there is none.
Test(Cpus, no_quota) {
    cr_assert_eq(Root().quota(), UINT32_MAX);
    cr_assert_eq(Root().file("/proc/self/cgroup", "").quota(), UINT32_MAX);
    cr_assert_eq(Root().file("/proc/self/cgroup", "nonsense\n::\n0::\n").quota(), UINT32_MAX);
    cr_assert_eq(Root().file("/proc/self/cgroup", "0::/a/b\n").quota(), UINT32_MAX);
    cr_assert_eq(Root().file("/proc/self/cgroup", "0::/a\n").file("/sys/fs/cgroup/a/cpu.max", "max 100000\n").quota(),
                 UINT32_MAX);
    cr_assert_eq(Root().file("/proc/self/cgroup", "0::/a\n").file("/sys/fs/cgroup/a/cpu.max", "7 0\n").quota(),
                 UINT32_MAX);
    cr_assert_eq(Root().file("/proc/self/cgroup", "0::/a\n").file("/sys/fs/cgroup/a/cpu.max", "").quota(), UINT32_MAX);
}

// Goal: the quota of a unified hierarchy, rounded up; the least of the group and those above it.
Test(Cpus, unified_quotas) {
    const auto quota = [](const std::string &text) {
        return Root().file("/proc/self/cgroup", "0::/\n").file("/sys/fs/cgroup/cpu.max", text).quota();
    };
    cr_assert_eq(quota("100000 100000\n"), 1u);
    cr_assert_eq(quota("100001 100000\n"), 2u);
    cr_assert_eq(quota("1000 100000\n"), 1u);
    cr_assert_eq(quota("250000 50000\n"), 5u);
    cr_assert_eq(quota("9223372036854775807 1\n"), UINT32_MAX);

    Root root;
    root.file("/proc/self/cgroup", "0::/outer/inner.scope\n")
        .file("/sys/fs/cgroup/outer/cpu.max", "300000 100000\n")
        .file("/sys/fs/cgroup/outer/inner.scope/cpu.max", "max 100000\n");
    cr_assert_eq(root.quota(), 3u);
    root.file("/sys/fs/cgroup/outer/inner.scope/cpu.max", "150000 100000\n");
    cr_assert_eq(root.quota(), 2u);
}

// Goal: the quota of the older hierarchy, whose controllers stand in a list.
Test(Cpus, legacy_quotas) {
    Root root;
    root.file("/proc/self/cgroup", "7:cpuset,cpuacct:/x\n4:cpu,cpuacct:/a/b\n0::/a/b\n")
        .file("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n")
        .file("/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
    cr_assert_eq(root.quota(), UINT32_MAX);
    root.file("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "400000\n")
        .file("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    cr_assert_eq(root.quota(), 4u);
}

// Goal: this machine's: at least one, and no more than the affinity allows.
Test(Cpus, usable) {
    cr_assert_geq(usable_cpus(), 1u);
    cr_assert_leq(usable_cpus(), sync::cpu_count());
    cr_assert_eq(usable_cpus(), usable_cpus());
}
