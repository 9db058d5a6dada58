#include <mc/csp.hpp>

#include <chrono>
#include <cstdio>

using namespace std::chrono_literals;

int main() {
    csp::channel<int> answers;
    int answer = 0;
    if (csp::alt(-answers >> answer, csp::after(20ms) >> nullptr) == 1)
        std::printf("answer %d\n", answer);
    else
        std::puts("too late");
}
