#include "sim/simulation.hpp"

#include "base/log.hpp"
#include "sched/report.hpp"
#include "sched/run_queue.hpp"
#include "sched/runtime.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <pthread.h>

namespace mc::sim {
namespace {

using sched::Phase;
using sched::SimEvent;
using sched::Task;
using sched::TaskWord;
using sched::Turn;
using sched::WaitKind;

constexpr int64_t step_ns = 1'000;
constexpr int64_t clock_read_ns = 100;
constexpr int64_t start_ns = MC_SEC;
constexpr int64_t latest_ns = INT64_MAX - MC_SEC; // then the clock stands still
constexpr uint64_t most_passed_over = 100'000;    // steps
constexpr uint32_t most_yields = 1'000;           // in a row, with nobody waiting in between: then time jumps

Simulation *the_simulation = nullptr; // set once, before the process has used the library

// Random numbers of different purposes come from generators of their own.
enum Purpose : uint64_t { for_schedule = 1, for_program = 2 };
uint64_t stream(uint64_t seed, Purpose purpose) noexcept {
    uint64_t state = seed ^ (purpose * 0x9e3779b97f4a7c15u);
    return base::Prng::splitmix(state);
}

uint64_t id_of(const Task *task) noexcept { return task == nullptr ? MC_SIM_CLOCK : task->id; }

// --- the driver ---

class SimulationDriver final : public sched::Driver {
public:
    explicit SimulationDriver(Simulation &simulation, uint64_t seed) noexcept : simulation_(simulation), prng_(seed) {}

    void park(int64_t deadline_ns) noexcept override { simulation_.sleep_until(deadline_ns); }
    void poll() noexcept override {}
    void wake() noexcept override {}
    int64_t now() noexcept override { return sync::now_ns(); }
    uint64_t random() noexcept override { return prng_.next(); }

private:
    Simulation &simulation_;
    base::Prng prng_;
};

sched::Driver *make_driver(void *user, uint32_t index, uint64_t) noexcept {
    auto &simulation = *static_cast<Simulation *>(user);
    return new (std::nothrow) SimulationDriver(simulation, stream(simulation.seed() + index, for_program));
}

void destroy_driver(void *, sched::Driver *driver) noexcept { delete static_cast<SimulationDriver *>(driver); }

std::unique_ptr<Policy> make_policy(const Settings &settings) {
    if (settings.replays)
        return replay_policy(settings.schedule);
    // The seed's own parity says which of a mix it is; what that draws is the stream's.
    const uint64_t drawn = stream(settings.seed, for_schedule);
    return policy_by_name(settings.policy.c_str(), (drawn & ~uint64_t{1}) | (settings.seed & 1));
}

} // namespace

Simulation::Simulation(const Settings &settings)
    : settings_(settings), policy_(make_policy(settings)), drivers_{make_driver, destroy_driver, this} {}

// From here on the process is simulated; before, nothing of it has been touched.
void Simulation::start() noexcept {
    if (!settings_.record.empty() && !recording_.open(settings_.record.c_str()))
        std::fprintf(stderr, "libmcrt: cannot record the simulation in %s\n", settings_.record.c_str());
    if (mc_sim_recording *header = recording_.header()) {
        header->version = (MC_VERSION_MAJOR << 16) | MC_VERSION_MINOR;
        header->seed = settings_.seed;
        std::snprintf(header->policy, sizeof header->policy, "%s",
                      settings_.replays ? "schedule" : settings_.policy.c_str());
    }
    mix((MC_VERSION_MAJOR << 16) | MC_VERSION_MINOR);
    sync::set_virtual_now(start_ns);
}

// --- time ---

int64_t Simulation::advance(int64_t ns) noexcept {
    const int64_t now = sync::now_ns();
    if (now >= latest_ns)
        return now;
    sync::set_virtual_now(now + ns);
    return now + ns;
}

int64_t Simulation::step() noexcept { return advance(step_ns); }

// Before there is an owner any thread may; it is the only thing of ours that such a one touches.
int64_t Simulation::read_clock() noexcept { return advance(clock_read_ns); }

void Simulation::pass_time(int64_t until_ns, bool passes_others) noexcept {
    if (until_ns == INT64_MAX || until_ns <= sync::now_ns())
        return;
    sync::set_virtual_now(until_ns); // beyond the latest too: a deadline is a deadline
    record(SimEvent::time, MC_SIM_CLOCK, 0, 0, passes_others ? 1 : 0);
}

// --- turns ---

void Simulation::count_step() noexcept {
    const uint64_t steps = this->steps() + 1;
    steps_.store(steps, sync::relaxed);
    note_progress();
}

void Simulation::note_progress() noexcept {
    if (mc_sim_recording *header = recording_.header()) {
        header->steps = steps();
        header->now_ns = sync::now_ns();
    }
}

void Simulation::gather(Candidates &candidates, const sched::RunQueue &queue, Task *running, Turn turn) noexcept {
    const auto add_queued = [&](bool in_schedule) {
        Task *task = queue.head();
        do {
            if (task != running && task->in_schedule == in_schedule && candidates.count < most_candidates)
                candidates.add(task, &task->for_simulator);
            task = task->next;
        } while (task != queue.head());
    };
    candidates.running = turn == Turn::call;
    if (candidates.running)
        candidates.add(running, &running->for_simulator);
    add_queued(false);
    if (candidates.count == 0)
        add_queued(true); // they wait until nothing else is runnable
    if (candidates.count == 0)
        candidates.add(running, &running->for_simulator);
}

void Simulation::add_time(Candidates &candidates, int64_t next_timer_ns) noexcept {
    candidates.time = next_timer_ns != INT64_MAX && next_timer_ns - sync::now_ns() <= settings_.delay_ns;
    if (candidates.time)
        candidates.add(nullptr, &time_word_);
}

// Tasks that do nothing but yield wait for time to go by, or for ever.
bool Simulation::only_yields(Turn turn, int64_t next_timer_ns) noexcept {
    if (turn == Turn::leaves)
        yields_ = 0;
    else if (turn == Turn::yields)
        ++yields_;
    if (yields_ < most_yields || next_timer_ns == INT64_MAX)
        return false;
    yields_ = 0;
    return true;
}

Task *Simulation::choose(const sched::RunQueue &queue, Task *running, Turn turn, int64_t next_timer_ns) noexcept {
    count_step();
    if (turn == Turn::leaves)
        (void)step(); // else a chain of steps, which call nothing, would take no time
    if (turn == Turn::leaves && running != nullptr)
        note_wait(*running);
    Task *late = passed_over_for_long(queue, running);
    if (checks(MC_SIM_BOUNDED_WAIT)) {
        check_waits(turn == Turn::leaves ? running : nullptr);
        late = overdue(queue);
    }
    if (queue.empty())
        return nullptr;
    Candidates candidates;
    gather(candidates, queue, running, turn);
    passes_others_ = !candidates.tasks[0]->in_schedule; // else all of them wait until the others have ended
    if (only_yields(turn, next_timer_ns))
        return nullptr;
    if (late != nullptr) {
        note_turn(*late, turn);
        return late;
    }
    add_time(candidates, next_timer_ns);
    uint32_t taken = 0;
    if (candidates.count > 1) {
        uint64_t *word = running == nullptr ? nullptr : &running->for_simulator;
        taken = policy_->turn(Turns{choices_, candidates.count, candidates.running, candidates.time,
                                    turn == Turn::yields, candidates.words, word});
        const auto flags =
            (candidates.running ? MC_SIM_CHOICE_RUNNING : 0) | (candidates.time ? MC_SIM_CHOICE_TIME : 0);
        record_choice(candidates.count, taken, MC_SIM_CHOICE_TASK, static_cast<uint16_t>(flags));
    }
    Task *next = candidates.tasks[taken];
    if (next != nullptr)
        note_turn(*next, turn);
    return next;
}

uint32_t Simulation::pick(uint32_t n, uint16_t kind) noexcept {
    if (n <= 1)
        return 0;
    const uint32_t count = std::min<uint32_t>(n, UINT16_MAX);
    const uint32_t taken = policy_->pick(choices_, count);
    record_choice(count, taken, kind, 0);
    return taken;
}

void Simulation::record_choice(uint32_t count, uint32_t taken, uint16_t kind, uint16_t flags) noexcept {
    recording_.add(mc_sim_choice{static_cast<uint16_t>(count), static_cast<uint16_t>(taken), kind, flags});
    ++choices_;
    mix(uint64_t{count} << 32 | taken);
}

void Simulation::note_turn(const Task &next, Turn turn) noexcept {
    if (last_ != next.id || last_waits_) // steps of the library's own are not told apart from the owner
        record(SimEvent::run, next.id, 0, last_, turn == Turn::call ? 1 : 0);
    last_ = next.id;
    last_waits_ = false;
    if (&next == oldest_)
        oldest_ = nullptr;
    waiting_.ends(&next);
    runnable_.ends(&next);
}

void Simulation::note_wait(const Task &task) noexcept {
    if (TaskWord::phase_of(task.word.look()) != Phase::parking)
        return; // it has ended, or is a step
    const sched::WaitsFor waits_for = task.waits_for.load(sync::relaxed);
    const auto *object = reinterpret_cast<const void *>(waits_for.object());
    uint64_t number = 0;
    uint64_t peer = 0;
    switch (waits_for.kind()) {
    case WaitKind::send:
    case WaitKind::receive:
    case WaitKind::mutex:
        number = number_of(object);
        break;
    case WaitKind::join:
        peer = static_cast<const Task *>(object)->id;
        break;
    default:
        break;
    }
    record(SimEvent::wait, task.id, number, peer, static_cast<int64_t>(waits_for.kind()));
    last_waits_ = true;
}

// --- the record ---

// A multiplication spreads what came in over the upper half; the rotation brings that down again.
void Simulation::mix(uint64_t value) noexcept {
    uint64_t signature = (this->signature() ^ value) * 0x9e3779b97f4a7c15u;
    signature = signature << 31 | signature >> 33;
    signature_.store(signature, sync::relaxed);
    if (mc_sim_recording *header = recording_.header())
        header->signature = signature;
}

void Simulation::record(SimEvent event, uint64_t task, uint64_t object, uint64_t peer, int64_t value,
                        const char *text) noexcept {
    mix(static_cast<uint64_t>(event));
    mix(task);
    mix(object);
    mix(peer);
    mix(static_cast<uint64_t>(value));
    if (recording_.header() == nullptr)
        return;
    mc_sim_event one{static_cast<uint32_t>(event), 0, choices_, sync::now_ns(), task, object, peer, value, {}};
    if (text != nullptr)
        std::snprintf(one.text, sizeof one.text, "%s", text);
    recording_.add(one);
}

// Numbers count up in the order in which objects are first told of; a slot that serves again is told of again.
Ledger &Simulation::ledger_of(const void *channel) noexcept {
    auto found = channels_.find(channel);
    if (found == channels_.end())
        found = channels_.emplace(channel, Ledger(++numbers_)).first;
    return found->second;
}

uint64_t Simulation::number_of(const void *object) noexcept {
    if (const auto channel = channels_.find(object); channel != channels_.end())
        return channel->second.number();
    if (object == nullptr)
        return 0;
    const auto [found, fresh] = others_.try_emplace(object, numbers_ + 1);
    numbers_ += fresh ? 1 : 0;
    return found->second;
}

void Simulation::told(SimEvent event, const Task *task, const void *object, const Task *peer, int64_t value) noexcept {
    yields_ = 0; // somebody gets on
    if (event == SimEvent::channel) {
        channels_.erase(object);
        (void)ledger_of(object);
    }
    record(event, id_of(task), number_of(object), peer == nullptr ? 0 : peer->id, value);
}

void Simulation::told_spawn(const Task *parent, Task &child) noexcept {
    yields_ = 0;
    child.for_simulator = 0;
    record(SimEvent::spawn, id_of(parent), 0, child.id, 0, name_of(child));
}

void Simulation::told_text(SimEvent event, const Task *task, const void *object, const char *text) noexcept {
    if (event == SimEvent::name_channel)
        ledger_of(object).set_name(text);
    record(event, id_of(task), number_of(object), 0, 0, text);
}

void Simulation::buffered(SimEvent event, const Task *task, const void *channel, const void *element,
                          uint32_t bytes) noexcept {
    yields_ = 0;
    Ledger &ledger = ledger_of(channel);
    const uint64_t digest = digest_of(element, bytes);
    std::optional<std::string> wrong;
    const uint64_t ordinal = event == SimEvent::put ? ledger.put(digest, task == nullptr) : ledger.take(digest, &wrong);
    record(event, id_of(task), ledger.number(), 0, static_cast<int64_t>(ordinal));
    if (wrong && checks(MC_SIM_FIFO))
        fail(MC_SIM_ORACLE, wrong->c_str());
}

void Simulation::channel_gone(const void *channel, uint32_t held, bool dropped) noexcept {
    const std::optional<std::string> wrong = ledger_of(channel).gone(held, dropped);
    if (wrong && checks(MC_SIM_LEDGER))
        fail(MC_SIM_ORACLE, wrong->c_str());
}

// --- oracles ---

void Simulation::add_oracles(uint32_t oracles, uint64_t bound) noexcept {
    settings_.oracles |= oracles;
    if ((oracles & MC_SIM_BOUNDED_WAIT) != 0)
        settings_.bound = bound != 0 ? bound : usual_bound;
}

namespace {

// A wait that others could end and do not, since they pass it over. To wait for a message, an answer or the time is no complaint.
bool is_passed_over(const Task &task) noexcept {
    switch (task.waits_for.load(sync::relaxed).kind()) {
    case WaitKind::send:
    case WaitKind::mailbox:
    case WaitKind::mutex:
    case WaitKind::semaphore:
    case WaitKind::read_lock:
    case WaitKind::write_lock:
        return true;
    default:
        return false;
    }
}

std::string called(const Task &task) {
    if (task.kind != sched::Kind::fiber)
        return "the owner's thread";
    return "microthread " + std::to_string(task.id) + " \"" + name_of(task) + "\"";
}

} // namespace

void Simulation::check_waits(const Task *leaves) noexcept {
    if (leaves != nullptr && TaskWord::phase_of(leaves->word.look()) == Phase::parking && is_passed_over(*leaves))
        (void)waiting_.begins(leaves, steps());
    const Task *late = nullptr;
    while ((late = static_cast<const Task *>(waiting_.overdue(steps(), settings_.bound))) != nullptr) {
        if (TaskWord::is_parked_unclaimed(late->word.look()))
            break;
        waiting_.ends(late); // it has been served, and waits for its turn
    }
    if (late == nullptr)
        return;
    const std::string what = sched::wait_text(late->waits_for.load(sync::relaxed).kind());
    fail(MC_SIM_ORACLE,
         (called(*late) + " waits " + what + " for more than " + std::to_string(settings_.bound) + " steps").c_str());
}

// A policy may pass a task over for ever where others never yield (steps that start steps). The first in line is the one that has been
// runnable for longest: those that gave way are behind it.
Task *Simulation::passed_over_for_long(const sched::RunQueue &queue, const Task *running) noexcept {
    Task *first = queue.head();
    if (first == nullptr || first == running || first->in_schedule) {
        oldest_ = nullptr;
    } else if (first != oldest_) {
        oldest_ = first;
        oldest_since_ = steps();
    } else if (steps() - oldest_since_ > most_passed_over) {
        return first;
    }
    return nullptr;
}

// Where waits are bounded, so must be what the policy does to a runnable task: that would be no fault of the program's.
Task *Simulation::overdue(const sched::RunQueue &queue) noexcept {
    constexpr uint64_t turns_within_bound = 16;
    Task *late = nullptr;
    uint64_t earliest = UINT64_MAX;
    Task *task = queue.head();
    if (task == nullptr)
        return nullptr;
    do {
        if (!task->in_schedule && TaskWord::phase_of(task->word.look()) != Phase::running) {
            const uint64_t since = runnable_.begins(task, steps());
            if (since < earliest && steps() - since > settings_.bound / turns_within_bound) {
                earliest = since;
                late = task;
            }
        }
        task = task->next;
    } while (task != queue.head());
    return late;
}

void Simulation::check_at_exit() noexcept {
    if (checks(MC_SIM_LEDGER)) {
        uint64_t first = UINT64_MAX;
        std::string wrong;
        for (const auto &[channel, ledger] : channels_)
            if (const std::optional<std::string> left = ledger.left(); left && ledger.number() < first) {
                first = ledger.number();
                wrong = *left;
            }
        if (first != UINT64_MAX)
            fail(MC_SIM_ORACLE, wrong.c_str());
    }
    if (!checks(MC_SIM_NO_TASK_LEFT))
        return;
    const Task *left = nullptr;
    sched::for_each_task([&](const Task &task) {
        const Phase phase = TaskWord::phase_of(task.word.look());
        const bool lives = phase != Phase::idle && phase != Phase::running; // who calls exit() runs
        if (lives && task.kind == sched::Kind::fiber && (left == nullptr || task.id < left->id))
            left = &task;
    });
    if (left != nullptr)
        fail(MC_SIM_ORACLE, (called(*left) + " is left at exit, and waits " +
                             sched::wait_text(left->waits_for.load(sync::relaxed).kind()))
                                .c_str());
}

// --- what the program says, and the end ---

uint32_t Simulation::choose_for_program(const Task *task, uint32_t n) noexcept {
    const uint32_t taken = pick(n, MC_SIM_CHOICE_PROGRAM);
    record_for_program(MC_SIM_CHOSE, task, taken, nullptr);
    return taken;
}

void Simulation::note(const Task *task, const char *text) noexcept { record_for_program(MC_SIM_NOTE, task, 0, text); }

void Simulation::record_for_program(uint32_t event, const Task *task, uint32_t value, const char *text) noexcept {
    record(static_cast<SimEvent>(event), task == nullptr ? 0 : task->id, 0, 0, value, text);
}

void Simulation::write_failure(uint32_t failure, const char *text) noexcept {
    mc_sim_recording *header = recording_.header();
    if (header == nullptr)
        return;
    if (failure == MC_SIM_DEADLOCK && header->failure == MC_SIM_DEADLOCK) { // a further line of the report
        const size_t length = std::strlen(header->message);
        std::snprintf(header->message + length, sizeof header->message - length, "\n%s", text);
        return;
    }
    header->failure = failure;
    std::snprintf(header->message, sizeof header->message, "%s", text);
}

// The first report is the one that counts: a program that goes on may come to others, which follow from it.
void Simulation::deadlocked(bool first, const char *line) noexcept {
    deadlocks_ += first ? 1 : 0;
    if (deadlocks_ > 1)
        return;
    write_failure(MC_SIM_DEADLOCK, line);
}

void Simulation::fail(uint32_t failure, const char *text) noexcept {
    write_failure(failure, text);
    std::fprintf(stderr, "libmcrt: simulation of seed %" PRIu64 " failed at step %" PRIu64 ": %s\n", seed(), steps(),
                 text);
    std::abort();
}

void Simulation::end() noexcept {
    if (ended_)
        return;
    ended_ = true;
    if (!sched::owner_is_elsewhere())
        check_at_exit();
    note_progress();
    if (mc_sim_recording *header = recording_.header())
        header->state = MC_SIM_ENDED;
}

void Simulation::leave_behind() noexcept {
    recording_.forget();
    ended_ = true;
    oldest_ = nullptr;
    waiting_ = {};
    runnable_ = {};
    channels_.clear();
    others_.clear();
}

// --- the process ---

Simulation *simulation() noexcept { return the_simulation; }

bool begin(const Settings &settings) noexcept {
    auto *made = new (std::nothrow) Simulation(settings);
    if (made == nullptr || sched::set_driver_source(made->drivers()) != MC_OK) {
        delete made;
        return false;
    }
    made->start();
    the_simulation = made;
    sched::set_simulator(made);
    std::atexit([] { the_simulation->end(); });
    pthread_atfork(nullptr, nullptr, [] { the_simulation->leave_behind(); });
    return true;
}

} // namespace mc::sim
