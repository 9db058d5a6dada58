#include <mc/csp.hpp>

#include <cstdio>

void powers(const csp::writer<int> &out, const csp::reader<> &quit) {
    int power = 1;
    for (;;) {
        switch (csp::alt(out << power, ~quit)) {
        case 1:
            power *= 3;
            break;
        case -2: // whoever could write to quit is gone
            std::puts("quit");
            return;
        }
    }
}

int main() {
    csp::channel<int> numbers;
    csp::channel<> quit;
    csp::spawn([in = +quit, from = -numbers] {
        for (int i = 0; i < 5; ++i)
            std::printf("%d\n", from.read());
    });
    (void)++quit; // main's own writer goes
    powers(+numbers, -quit);
}
