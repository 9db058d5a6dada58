#include <mc/csp.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

int main() {
    mc_mutex_t mutex = 0;
    mc_mutex_create(0, &mutex);
    std::vector<csp::reader<std::exception_ptr>> all;
    std::map<std::string, int> visits;
    for (int i = 0; i < 100; ++i)
        all.push_back(csp::spawn([&visits, mutex] {
            mc_mutex_lock(mutex);
            ++visits["home"];
            mc_mutex_unlock(mutex);
        }));
    for (auto &one : all)
        csp::join(std::move(one));
    std::printf("%d\n", visits["home"]);
    mc_mutex_destroy(mutex);
}
