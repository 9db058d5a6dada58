#include <mc/csp.hpp>

#include <cstdio>

int main() {
    auto numbers = csp::make_buffered<int>(2);
    +numbers << 1;
    +numbers << 2;
    if (csp::try_alt(+numbers << 3) == 0)
        std::puts("full");
    std::printf("%d\n", (-numbers).read());
    std::printf("%d\n", (-numbers).read());
}
