#include <mc/csp.hpp>

#include <cstdio>

int main() {
    csp::channel<int> merged;
    for (int start = 0; start < 30; start += 10)
        csp::spawn([start, out = +merged] {
            for (int i = 1; i <= 3; ++i)
                out << start + i;
        });
    (void)++merged; // the last source to end closes it
    int count = 0;
    int sum = 0;
    for (int n : -merged) {
        ++count;
        sum += n;
    }
    std::printf("%d numbers, sum %d\n", count, sum);
}
