#include <mc/csp.hpp>

#include <cstdio>

int main() {
    csp::channel<int> numbers;
    auto counter = csp::spawn([out = ++numbers] {
        int n = 0;
        while (out << n)
            ++n;
        std::printf("nobody reads: %d taken\n", n);
    });
    for (int n : -numbers)
        if (n == 2)
            break;
    numbers.release(); // the only reader
    csp::join(std::move(counter));
}
