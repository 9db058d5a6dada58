#include <mc/csp.hpp>

#include <cstdio>

int main() {
    auto jobs = csp::spawn_count(1, 11);
    csp::channel<int> results;
    for (int i = 0; i < 3; ++i)
        csp::spawn([jobs, out = +results] {
            for (int job : jobs)
                out << job * job;
        });
    (void)++results; // only the workers can write now
    int sum = 0;
    for (int result : -results)
        sum += result;
    std::printf("sum of squares: %d\n", sum);
}
