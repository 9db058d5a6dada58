#include <mc/csp.hpp>

#include <chrono>
#include <cstdio>

using namespace std::chrono_literals;

int main() {
    auto ticker = csp::tick(5ms);
    for (int i = 1; i <= 3; ++i) {
        ticker.read();
        std::printf("tick %d\n", i);
    }
    ticker = {};
}
