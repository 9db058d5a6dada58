#include <mc/csp.hpp>

#include <atomic>
#include <cstdio>

int main() {
    mc_waitgroup_t all = 0;
    mc_waitgroup_create(0, &all);
    std::atomic<int> done{0};
    for (int i = 0; i < 10; ++i) {
        mc_waitgroup_add(all, 1);
        csp::spawn([&done, all] {
            ++done;
            mc_waitgroup_done(all);
        });
    }
    mc_waitgroup_wait(all, MC_FOREVER);
    std::printf("%d done\n", done.load());
    mc_waitgroup_destroy(all);
}
