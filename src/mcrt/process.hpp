// One process of the program's, in a session of its own, so that a signal for its group reaches what it has started too and none of
// the terminal's reaches it. Started, watched and ended by the one thread.
#pragma once

#include "mcrt/file.hpp"
#include "mcrt/output.hpp"
#include "mcrt/program.hpp"
#include "mcrt/verdict.hpp"

#include <csignal>
#include <sys/types.h>

namespace mc::mcrt {

class Process {
public:
    // Its standard input is empty; what it prints is kept. Throws Stop when there are no resources; when the program can not be
    // executed, the process says so and ends with status 127.
    Process(const Program &program, const std::vector<std::string> &environment, const sigset_t &mask);
    // Kills it if it runs.
    ~Process();
    Process(const Process &) = delete;
    Process &operator=(const Process &) = delete;

    int ended_file() const { return ended_.get(); }     // readable: it has ended
    int printed_file() const { return printed_.get(); } // readable: it has printed something; -1: there will be no more
    pid_t pid() const { return pid_; }

    void read_printed();
    void kill_group() const;
    // When it has ended: so does all of its group, and the rest of what it printed is read.
    Ending finish();
    std::string printed() const { return output_.text(); }

private:
    File ended_;
    File printed_;
    pid_t pid_ = -1; // -1: it is gone
    Output output_;
};

// What a program has started and left behind becomes the command's child, because it says so here, once.
void adopt_orphans();
// Ends those of them whose environment has this variable, "NAME=value"; others than `running` are all that there are.
void end_orphans(const std::string &variable, const std::vector<pid_t> &running);

} // namespace mc::mcrt
