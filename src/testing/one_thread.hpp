// A test's body in a process with one thread: Criterion's test processes have two, and there no world is closed.
#pragma once

#include "testing/test.hpp"

#include <sys/wait.h>
#include <unistd.h>

namespace mc::testing {

// Runs the body in a forked child. To be called before the library is used.
template <class Body> void in_process_with_one_thread(Body body) {
    const pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        body();
        _exit(0);
    }
    int status = -1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child's status is %x", static_cast<unsigned>(status));
}

} // namespace mc::testing
