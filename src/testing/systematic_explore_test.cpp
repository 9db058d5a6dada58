// The twin's own tests: what exploration finds with which budget, seeds, replay, reports.
#include "testing/systematic.hpp"

#include "testing/test.hpp"

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mc;
using testing::check;
using testing::expect_fail;
using testing::expect_pass;
using testing::Explored;
using testing::Search;
using testing::Thread;

// --- Structures -----------------------------------------------------------------------------------------------------

namespace {

// A stack of three nodes, by index + 1 in the low half of the head; the tag in the high half, or always 0 (planted).
class Stack {
public:
    explicit Stack(bool tagged) : tagged_(tagged) {
        testing::label(&head_, "head");
        for (uint32_t node = 3; node >= 1; --node)
            push(node);
    }
    void push(uint32_t node) {
        uint64_t head = head_.load(sync::relaxed);
        do
            next_[node].store(static_cast<uint32_t>(head), sync::relaxed);
        while (!head_.compare_exchange_strong(head, with_tag(head, node), sync::release, sync::relaxed));
    }
    uint32_t pop() {
        uint64_t head = head_.load(sync::acquire);
        for (;;) {
            const uint32_t node = static_cast<uint32_t>(head);
            if (node == 0)
                return 0;
            const uint32_t next = next_[node].load(sync::relaxed);
            if (head_.compare_exchange_strong(head, with_tag(head, next), sync::acq_rel, sync::acquire))
                return node;
        }
    }

private:
    uint64_t with_tag(uint64_t head, uint32_t node) const { return (tagged_ ? (head >> 32) + 1 : 0) << 32 | node; }

    const bool tagged_;
    sync::atomic<uint64_t> head_{0};
    sync::atomic<uint32_t> next_[4];
};

void reuse_of_nodes(bool tagged) {
    Stack stack(tagged);
    sync::atomic<uint32_t> owners[4];
    auto own = [&](uint32_t node) {
        check(node == 0 || owners[node].fetch_add(1, sync::acq_rel) == 0, "node %u has two owners", node);
    };
    Thread slow([&] { own(stack.pop()), own(stack.pop()); }, "slow");
    const uint32_t first = stack.pop();
    own(stack.pop());
    if (first != 0)
        stack.push(first);
}

// Fails only if the other thread comes between the two looks (one preemption) and is itself interrupted between its
// stores (two).
void two_preemptions() {
    sync::atomic<int> word{0};
    Thread other([&] {
        word.store(1, sync::seq_cst);
        word.store(2, sync::seq_cst);
    });
    const int before = word.load(sync::seq_cst), after = word.load(sync::seq_cst);
    check(before != 0 || after != 1, "half done");
}

} // namespace

// Goal: a pop that compares pointers alone takes a node that was away meanwhile; a tag tells the difference.
Test(Explore, aba_is_found) {
    const testing::Exploration exploration{.stale = 0};
    expect_fail(exploration, "has two owners", [] { reuse_of_nodes(false); });
    const Explored explored = expect_pass(exploration, [] { reuse_of_nodes(true); });
    cr_assert(explored.complete);
    expect_fail({.search = Search::seeds}, "has two owners", [] { reuse_of_nodes(false); });
    expect_pass({.search = Search::seeds}, [] { reuse_of_nodes(true); });
}

// Goal: a bug that needs two preemptions is found with a budget of two, and not with one.
Test(Explore, the_budget_of_preemptions_bounds) {
    expect_fail({.preemptions = 2, .stale = 0}, "half done", two_preemptions);
    if (!testing::systematic)
        return;
    cr_assert_not(expect_pass({.preemptions = 1, .stale = 0}, two_preemptions).failed);
}

// Goal: code that takes a weak compare-exchange for a strong one is found.
Test(Explore, weak_exchanges_fail_spuriously) {
    auto body = [](bool weak) {
        sync::atomic<int> word{0};
        int expected = 0;
        const bool done = weak ? word.compare_exchange_weak(expected, 1, sync::relaxed, sync::relaxed)
                               : word.compare_exchange_strong(expected, 1, sync::relaxed, sync::relaxed);
        check(done, "not exchanged");
    };
    expect_fail({}, "not exchanged", [&] { body(true); });
    expect_pass({}, [&] { body(false); });
}

// --- Seeds and replay -----------------------------------------------------------------------------------------------

namespace {

void many_additions() {
    sync::atomic<int> sum{0};
    auto add = [&] {
        for (int i = 0; i < 8; ++i)
            sum.fetch_add(1, sync::relaxed);
    };
    {
        Thread one(add), two(add);
        add();
    }
    check(sum.load(sync::relaxed) == 24, "lost");
}

// A replay is of the exploration with the same number in its process; here, of the next one.
std::string next_replay(const Explored &failed, int number) {
    return std::to_string(number) + failed.replay.substr(failed.replay.find('/'));
}

void lost_update() {
    sync::atomic<int> sum{0};
    auto add = [&] { sum.store(sum.load(sync::relaxed) + 1, sync::relaxed); };
    {
        Thread one(add, "one");
        add();
    }
    check(sum.load(sync::relaxed) == 2, "an update is lost");
}

Explored without_output(const std::function<Explored()> &explores) {
    const int kept = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    Explored explored = explores();
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(null);
    return explored;
}

std::string this_program() {
    char path[512] = "";
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    return std::string(path, length < 0 ? 0 : static_cast<size_t>(length));
}

// What a command prints, both outputs.
std::string output_of(const std::string &command, int &status) {
    std::string text;
    FILE *pipe = popen((command + " 2>&1").c_str(), "r");
    cr_assert_not_null(pipe);
    char line[1024];
    while (std::fgets(line, sizeof line, pipe) != nullptr)
        text += line;
    status = pclose(pipe);
    return text;
}

bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

} // namespace

// Goal: one seed, one order of operations; many seeds, many orders.
Test(Explore, seeds_decide_the_order) {
    if (!testing::systematic)
        cr_skip_test("needs the systematic twin");
    std::set<uint64_t> orders;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
        const testing::Exploration one{.search = Search::seeds, .seeds = 1, .first_seed = seed};
        const Explored first = expect_pass(one, many_additions), second = expect_pass(one, many_additions);
        cr_assert_eq(first.signature, second.signature);
        orders.insert(first.signature);
    }
    cr_assert_gt(orders.size(), 80u);
    const Explored all = expect_pass({.search = Search::seeds, .seeds = 100}, many_additions);
    cr_assert_eq(all.runs, 100u);
    cr_assert_eq(all.distinct, orders.size());
}

// Goal: what a failing run prints as MC_SYS_REPLAY makes exactly that run again.
Test(Explore, a_failing_run_can_be_repeated) {
    if (!testing::systematic)
        cr_skip_test("needs the systematic twin");
    int number = 0;
    for (Search search : {Search::exhaustive, Search::seeds}) {
        unsetenv("MC_SYS_REPLAY");
        const Explored failed = expect_fail({.search = search}, "an update is lost", lost_update);
        cr_assert_eq(failed.replay.substr(0, 2), std::to_string(++number) + "/");
        setenv("MC_SYS_REPLAY", next_replay(failed, ++number).c_str(), 1);
        const Explored again = without_output([&] { return testing::explore({.search = search}, lost_update); });
        cr_assert(again.failed);
        cr_assert_eq(again.runs, 1u);
        cr_assert_eq(again.signature, failed.signature);
        cr_assert_str_eq(again.what.c_str(), failed.what.c_str());
    }
}

// The planted failure that the next test runs as a user would; alone it passes.
Test(Explore, planted_for_the_command) {
    if (getenv("MC_TWIN_PLANTED") == nullptr)
        return;
    expect_pass({.stale = 0}, many_additions);
    expect_pass({.stale = 0}, lost_update);
}

// Goal: the printed command, given to a shell, fails in the same way and shows the run.
Test(Explore, the_printed_command_repeats_the_run) {
    if (!testing::systematic)
        cr_skip_test("needs the systematic twin");
    setenv("MC_TWIN_PLANTED", "1", 1);
    unsetenv("BXFI_MAP"); // or a Criterion program thinks that it is one of our runner's workers
    const std::string program = this_program(), name = program.substr(program.rfind('/') + 1);
    int status = 0;
    const std::string first = output_of(program + " --filter Explore/planted_for_the_command", status);
    cr_assert_neq(status, 0);
    cr_assert(contains(first, "an update is lost"), "%s", first.c_str());
    cr_assert(contains(first, "thread 1 'one'"), "%s", first.c_str());

    const size_t at = first.find("MC_SYS_REPLAY=2/");
    cr_assert_neq(at, std::string::npos, "%s", first.c_str());
    std::string command = first.substr(at, first.find('\n', at) - at);
    const std::string form = " ./build/sys/" + name + " --filter Explore/planted_for_the_command";
    cr_assert(contains(command, form), "%s", command.c_str());

    const size_t path = command.find("./build/sys/" + name);
    command.replace(path, ("./build/sys/" + name).size(), program); // wherever this build stands
    const std::string second = output_of(command, status);
    cr_assert_neq(status, 0);
    cr_assert(contains(second, "FAILED in run 1: an update is lost"), "%s", second.c_str());
}

// Goal: a process that dies inside a run says how to repeat the run, and so does a failed assertion.
Test(Explore, a_crash_says_how_to_repeat_the_run) {
    if (!testing::systematic)
        cr_skip_test("needs the systematic twin");
    auto dies = [](const char *way, void (*end)()) {
        int pipe_ends[2];
        cr_assert_eq(pipe(pipe_ends), 0);
        const pid_t child = fork();
        if (child == 0) {
            dup2(pipe_ends[1], STDERR_FILENO);
            signal(SIGABRT, SIG_DFL), signal(SIGSEGV, SIG_DFL);
            testing::explore({.stale = 0}, [&] {
                sync::atomic<int> word{0};
                Thread other([&] { word.store(1, sync::release); }, "other");
                if (word.load(sync::acquire) == 1)
                    end();
            });
            _exit(0);
        }
        close(pipe_ends[1]);
        std::string text(20'000, '\0');
        ssize_t length = 0, got;
        while ((got = read(pipe_ends[0], &text[static_cast<size_t>(length)],
                           text.size() - static_cast<size_t>(length))) > 0)
            length += got;
        close(pipe_ends[0]);
        int status = 0;
        waitpid(child, &status, 0);
        cr_assert_neq(status, 0);
        cr_assert(contains(text, way) && contains(text, "'other'") && contains(text, "MC_SYS_REPLAY=1/p1:"), "%s",
                  text.c_str());
    };
    dies("signal 6", [] { std::abort(); });
    dies("signal 11", [] { raise(SIGSEGV); });
    dies("an assertion failed", [] { cr_assert(false); });
}

// Goal: state that survives a run is noticed, and a process for each run keeps it out.
Test(Explore, isolated_runs_share_nothing) {
    static int survivors = 0;
    auto body = [] {
        sync::atomic<int> word{0};
        Thread other([&] { word.store(1, sync::relaxed); });
        if (survivors++ % 2 == 0) // as a cache that is empty now and then
            word.fetch_add(1, sync::relaxed);
        for (int i = 0; i < 3; ++i)
            word.fetch_add(1, sync::relaxed);
    };
    if (testing::systematic)
        expect_fail({}, "not deterministic", body);
    survivors = 0;
    const Explored explored = expect_pass({.preemptions = 1, .stale = 0, .isolate = true, .real_runs = 2}, body);
    cr_assert(explored.complete);
    cr_assert(!testing::systematic || survivors == 0);
    expect_fail({.isolate = true}, "signal 6", [] {
        sync::atomic<int> word{0};
        Thread other([&] { word.store(1, sync::relaxed); });
        if (word.load(sync::relaxed) == 1)
            std::abort();
    });
}
