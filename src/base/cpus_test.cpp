#include "base/cpus.hpp"

#include "base/sync.hpp"
#include "base/test_root.hpp"
#include "testing/test.hpp"

#include <string>

using namespace mc;
using namespace mc::base;
using mc::testing::Root;

namespace {

uint32_t quota_of(const Root &root) { return quota_cpus(root.path()); }

} // namespace

// Goal: without files, without quotas, and with files that make no sense there is none.
Test(Cpus, no_quota) {
    cr_assert_eq(quota_of(Root()), UINT32_MAX);
    cr_assert_eq(quota_of(Root().file("/proc/self/cgroup", "")), UINT32_MAX);
    cr_assert_eq(quota_of(Root().file("/proc/self/cgroup", "nonsense\n::\n0::\n")), UINT32_MAX);
    cr_assert_eq(quota_of(Root().file("/proc/self/cgroup", "0::/a/b\n")), UINT32_MAX);
    cr_assert_eq(quota_of(Root().file("/proc/self/cgroup", "0::/a\n").file("/sys/fs/cgroup/a/cpu.max", "max 100000\n")),
                 UINT32_MAX);
    cr_assert_eq(quota_of(Root().file("/proc/self/cgroup", "0::/a\n").file("/sys/fs/cgroup/a/cpu.max", "7 0\n")),
                 UINT32_MAX);
    cr_assert_eq(quota_of(Root().file("/proc/self/cgroup", "0::/a\n").file("/sys/fs/cgroup/a/cpu.max", "")),
                 UINT32_MAX);
}

// Goal: the quota of a unified hierarchy, rounded up; the least of the group and those above it.
Test(Cpus, unified_quotas) {
    const auto quota = [](const std::string &text) {
        return quota_of(Root().file("/proc/self/cgroup", "0::/\n").file("/sys/fs/cgroup/cpu.max", text));
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
    cr_assert_eq(quota_of(root), 3u);
    root.file("/sys/fs/cgroup/outer/inner.scope/cpu.max", "150000 100000\n");
    cr_assert_eq(quota_of(root), 2u);
}

// Goal: the quota of the older hierarchy, whose controllers stand in a list.
Test(Cpus, legacy_quotas) {
    Root root;
    root.file("/proc/self/cgroup", "7:cpuset,cpuacct:/x\n4:cpu,cpuacct:/a/b\n0::/a/b\n")
        .file("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n")
        .file("/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
    cr_assert_eq(quota_of(root), UINT32_MAX);
    root.file("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "400000\n")
        .file("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    cr_assert_eq(quota_of(root), 4u);
}

// Goal: this machine's: at least one, and no more than the affinity allows.
Test(Cpus, usable) {
    cr_assert_geq(usable_cpus(), 1u);
    cr_assert_leq(usable_cpus(), sync::cpu_count());
    cr_assert_eq(usable_cpus(), usable_cpus());
}
