#include <mc/csp.hpp>

#include <cstdio>
#include <numeric>
#include <vector>

int main() {
    csp::channel<int> sums;
    for (const auto &part : std::vector<std::vector<int>>{{3, 1, 4, 1}, {5, 9, 2, 6}})
        csp::spawn([part, out = +sums] { out << std::accumulate(part.begin(), part.end(), 0); });
    int a = 0;
    -sums >> a;
    int b = (-sums).read();
    std::printf("the sum is %d\n", a + b);
}
