#include <mc/csp.hpp>

#include <cstdio>

void tell(const char *what, bool done) { std::printf("%s: %s\n", what, done ? "yes" : "no"); }

int main() {
    auto numbers = csp::make_buffered<int>(2);
    const csp_writer handle = (+numbers).internal_writer();
    +numbers << 1;
    +numbers << 2;
    tell("close", csp_writer_close(handle) == 1);
    tell("send on a closed channel", bool(+numbers << 3));
    tell("close it again", csp_writer_close(handle) == 1);
    tell("close nil", csp_writer_close(nullptr) == 1);
    for (int n : -numbers)
        std::printf("still in it: %d\n", n);
    int n = 0;
    const bool ok = bool(-numbers >> n);
    std::printf("after that: %d %s\n", n, ok ? "true" : "false");
}
