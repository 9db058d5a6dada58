#include <mc/csp.hpp>

#include <cstdio>

int32_t load(void *) {
    std::puts("loaded");
    return MC_OK;
}

int main() {
    mc_once_t once = 0;
    mc_once_create(&once);
    csp::channel<> served;
    for (int i = 0; i < 3; ++i)
        csp::spawn([once, done = +served] {
            mc_once_call(once, load, nullptr, MC_FOREVER);
            done << csp::poke;
        });
    for (int i = 0; i < 3; ++i)
        -served >> nullptr;
    std::puts("3 served");
    mc_once_destroy(once);
}
