#include <mc/csp.hpp>

#include <cstdio>

int main() {
    auto done = csp::spawn([] { std::puts("beside main"); });
    csp::join(std::move(done));
    std::puts("main, after it");
}
