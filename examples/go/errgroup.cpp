#include <mc/csp.hpp>

#include <cstdio>
#include <string>

int32_t fetch(void *page) {
    if (*static_cast<const std::string *>(page) == "lost")
        return MC_E_NOENT;
    return mc_sleep(60 * MC_SEC); // ends at once with MC_E_CANCELED when one has failed
}

int main() {
    mc_group_t group = 0;
    mc_group_create(0, MC_FOREVER, &group);
    std::string pages[] = {"news", "shop", "lost"};
    for (std::string &page : pages)
        mc_group_spawn(group, fetch, &page, nullptr);
    int32_t first_error = MC_OK;
    mc_group_wait(group, MC_FOREVER, &first_error);
    std::printf("first error: %s\n", mc_strerror(first_error));
    mc_group_destroy(group);
}
