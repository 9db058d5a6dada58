#include <mc/csp.hpp>

#include <cstdio>

int main() {
    auto squares = csp::spawn_producer<int>([](csp::writer<int> out) {
        for (int i = 1; i <= 4; ++i)
            out << i * i;
    });
    for (int square : squares)
        std::printf("%d\n", square);
    int square = 0;
    if (!(squares >> square))
        std::puts("no more");
}
