// Linked with every program of this directory, so that the same source runs in both modes: with GO_EXECUTORS=n in the environment
// the runtime has n executors before main begins. After main it complains of channels that are left, and ends the process with 3.
#include <mc/csp.h>

#include <cstdio>
#include <cstdlib>

namespace {

class Executors {
public:
    Executors() {
        if (const char *number = std::getenv("GO_EXECUTORS"))
            if (csp_init_runtime(std::atoi(number)) == 0)
                std::abort();
    }
    Executors(const Executors &) = delete;
    Executors &operator=(const Executors &) = delete;
    ~Executors() {
        csp_schedule();
        csp_shutdown_runtime();
        const int writers = csp__internal__channel_count(0);
        const int readers = csp__internal__channel_count(1);
        if (writers == 0 && readers == 0)
            return;
        std::fprintf(stderr, "%d writers and %d readers are left\n", writers, readers);
        std::fflush(nullptr);
        std::_Exit(3);
    }
};

const Executors executors;

} // namespace
