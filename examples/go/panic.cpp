#include <mc/csp.hpp>

#include <cstdio>
#include <stdexcept>

void printer() { throw std::runtime_error("out of paper"); }

int main() {
    auto failure = csp::spawn(printer);
    try {
        csp::join(std::move(failure));
    } catch (const std::exception &what) {
        std::printf("recovered: %s\n", what.what());
    }
}
