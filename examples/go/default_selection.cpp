#include <mc/csp.hpp>

#include <cstdio>

void look(const csp::reader<int> &letters) {
    int letter = 0;
    if (csp::try_alt(letters >> letter) == 1)
        std::printf("letter %d\n", letter);
    else
        std::puts("nothing");
}

int main() {
    auto letters = csp::make_buffered<int>(1);
    look(-letters);
    +letters << 7;
    look(-letters);
    look(-letters);
}
