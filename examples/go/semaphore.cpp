#include <mc/csp.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <vector>

using namespace std::chrono_literals;

int main() {
    auto slots = csp::make_buffered<csp::poke_t>(2);
    std::vector<csp::reader<std::exception_ptr>> all;
    std::atomic<int> inside{0};
    std::atomic<int> most{0};
    for (int i = 0; i < 6; ++i)
        all.push_back(csp::spawn([&inside, &most, slots] {
            +slots << csp::poke;
            const int now = ++inside;
            for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
            }
            csp::sleep(1ms);
            --inside;
            -slots >> nullptr;
        }));
    for (auto &one : all)
        csp::join(std::move(one));
    if (most <= 2)
        std::puts("never more than 2 at a time");
}
