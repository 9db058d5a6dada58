#include "mcrt/process.hpp"

#include "mcrt/stop.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mc::mcrt {
namespace {

constexpr int most_reads =
    16; // at a time, so that one that prints for ever does not keep us from all else; a pipe holds less

std::vector<char *> pointers(const std::vector<std::string> &texts) {
    std::vector<char *> out;
    out.reserve(texts.size() + 1);
    for (const std::string &text : texts)
        out.push_back(const_cast<char *>(text.c_str()));
    out.push_back(nullptr);
    return out;
}

[[noreturn]] void fail(const char *what) {
    throw Stop{status_usage, std::string("cannot start a process: ") + what + ": " + std::strerror(errno)};
}

// In the child, of which nothing is left but this. It dies with the command, however that ends. No core files: each seed that fails
// would leave one, and `mcrt replay` makes one when it is wanted.
void become(const Program &program, char *const *arguments, char *const *environment, int output, const sigset_t &mask,
            pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127); // it has ended before that
    setsid();
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    std::signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    execve(program.path.c_str(), arguments, environment);
    dprintf(STDERR_FILENO, "mcrt: cannot run %s: %s\n", program.path.c_str(), std::strerror(errno));
    _exit(127);
}

} // namespace

Process::Process(const Program &program, const std::vector<std::string> &environment, const sigset_t &mask) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        fail("pipe");
    printed_ = File(ends[0]);
    const File output(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    const std::vector<char *> argument_pointers = pointers(program.arguments);
    const std::vector<char *> environment_pointers = pointers(environment);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0)
        become(program, argument_pointers.data(), environment_pointers.data(), output.get(), mask, parent);
    pid_ = pid;
    ended_ =
        File(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); // <sys/pidfd.h> of glibc 2.36 is no header for C++
    if (!ended_) {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
        pid_ = -1;
        fail("pidfd_open");
    }
}

Process::~Process() {
    if (pid_ < 0)
        return;
    kill(pid_, SIGKILL); // it may not have its group yet
    kill_group();
    waitpid(pid_, nullptr, 0);
}

void Process::kill_group() const { kill(-pid_, SIGKILL); }

void Process::read_printed() {
    char buffer[16384];
    for (int i = 0; i < most_reads; ++i) {
        const ssize_t got = read(printed_.get(), buffer, sizeof buffer);
        if (got == 0)
            printed_ = File();
        if (got <= 0)
            return; // the end, or nothing for now
        output_.add({buffer, static_cast<size_t>(got)});
    }
}

// The group first: while its leader has not been waited for, nobody else can have that number.
Ending Process::finish() {
    kill_group();
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    if (printed_)
        read_printed();
    Ending ending;
    ending.signalled = WIFSIGNALED(status);
    ending.code = ending.signalled ? WTERMSIG(status) : WEXITSTATUS(status);
    return ending;
}

// --- orphans ---

namespace {

std::vector<pid_t> children() {
    std::ifstream list("/proc/thread-self/children");
    return {std::istream_iterator<pid_t>(list), std::istream_iterator<pid_t>()};
}

bool has_variable(pid_t pid, const std::string &variable) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
    for (std::string one; std::getline(file, one, '\0');)
        if (one == variable)
            return true;
    return false;
}

bool has_ended(pid_t pid) {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

} // namespace

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

// Whoever is killed may leave more of them, until none is left. One of another run that goes on is left to it, unless it has ended.
void end_orphans(const std::string &variable, const std::vector<pid_t> &running) {
    for (bool found = true; found;) {
        found = false;
        for (const pid_t child : children()) {
            if (std::find(running.begin(), running.end(), child) != running.end())
                continue;
            if (!has_ended(child) && !has_variable(child, variable))
                continue;
            kill(child, SIGKILL);
            waitpid(child, nullptr, 0);
            found = true;
        }
    }
}

} // namespace mc::mcrt
