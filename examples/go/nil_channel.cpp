#include <mc/csp.hpp>

#include <cstdio>

int main() {
    auto left = csp::spawn_count(0, 3);
    auto right = csp::spawn_count(10, 15);
    int sum = 0;
    for (int n = 0; left || right;) {
        switch (csp::alt(left >> n, right >> n)) {
        case -1:
            left = {};
            break;
        case -2:
            right = {};
            break;
        default:
            sum += n;
        }
    }
    std::printf("sum %d\n", sum);
}
