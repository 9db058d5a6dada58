#include <mc/csp.hpp>

#include <cstdio>

int main() {
    csp::init_runtime(2);
    csp::channel<int> sums;
    for (int part = 0; part < 4; ++part)
        csp::spawn([part, out = +sums] {
            int sum = 0;
            for (int n = part; n < 1000; n += 4)
                sum += n;
            out << sum;
        });
    (void)++sums;
    int all = 0;
    for (int sum : -sums)
        all += sum;
    std::printf("%d\n", all);
    csp::shutdown_runtime();
}
