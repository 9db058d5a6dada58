#include "base/topology.hpp"

#include "base/alloc.hpp"
#include "base/prng.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <tuple>
#include <utility>

#include <dirent.h>
#include <pthread.h>
#include <sched.h>

namespace mc::base {
namespace {

constexpr int nowhere = -1; // the core of a processor that is not known to be online, the node of one in none

// --- files ----------------------------------------------------------------------------------------------------------

// root/sys/devices/system/ and what format makes.
class Path {
public:
    [[gnu::format(printf, 3, 4)]] Path(const char *root, const char *format, ...) noexcept {
        const auto length = static_cast<size_t>(std::snprintf(text_, sizeof text_, "%s/sys/devices/system/", root));
        va_list args;
        va_start(args, format);
        if (length >= sizeof text_ || static_cast<size_t>(std::vsnprintf(text_ + length, sizeof text_ - length, format,
                                                                         args)) >= sizeof text_ - length)
            text_[0] = '\0'; // too long; no file has this name
        va_end(args);
    }
    FILE *open() const noexcept { return std::fopen(text_, "re"); }
    DIR *open_directory() const noexcept { return opendir(text_); }

private:
    char text_[1024];
};

bool ends_line(int character) { return character == '\n' || character == EOF; }

// The number below `bound` that begins with *next, the character read last; -1 if there is none. *next is then what
// follows.
int read_number(FILE *file, int *next, int bound) {
    int number = -1;
    for (; *next >= '0' && *next <= '9'; *next = std::getc(file)) {
        number = std::max(number, 0) * 10 + (*next - '0');
        if (number >= bound)
            return -1;
    }
    return number;
}

// Visits each range of a list as the kernel writes it, "0-3,8", until one makes no sense: false. A list may be empty.
template <class Visit> bool visit_ranges(FILE *file, Visit visit) {
    int next = std::getc(file);
    if (ends_line(next))
        return true;
    for (;; next = std::getc(file)) {
        const int first = read_number(file, &next, most_cpu_numbers);
        int last = first;
        if (next == '-') {
            next = std::getc(file);
            last = read_number(file, &next, most_cpu_numbers);
        }
        if (first < 0 || last < first)
            return false;
        visit(first, last);
        if (next != ',')
            return ends_line(next);
    }
}

// The same, but a list that anywhere makes no sense is as good as none.
template <class Visit> void each_range(const Path &path, Visit visit) {
    FILE *file = path.open();
    if (file == nullptr)
        return;
    if (visit_ranges(file, [](int, int) {})) {
        std::rewind(file);
        visit_ranges(file, visit);
    }
    std::fclose(file);
}

int capacity_of(const char *root, int cpu) {
    FILE *file = Path(root, "cpu/cpu%d/cpu_capacity", cpu).open();
    if (file == nullptr)
        return Cpu::most_capacity;
    int next = std::getc(file);
    const int capacity = read_number(file, &next, Cpu::most_capacity + 1);
    std::fclose(file);
    return capacity > 0 && ends_line(next) ? capacity : Cpu::most_capacity;
}

// The second list is what older kernels have. A list without the processor itself is not its own.
int core_of(const char *root, int cpu) {
    for (const char *list : {"core_cpus_list", "thread_siblings_list"}) {
        int lowest = cpu;
        bool listed = false;
        each_range(Path(root, "cpu/cpu%d/topology/%s", cpu, list), [&](int first, int last) {
            lowest = std::min(lowest, first);
            listed = listed || (first <= cpu && cpu <= last);
        });
        if (listed)
            return lowest;
    }
    return cpu;
}

// -1 of a name that is no node's.
int node_of_name(std::string_view name) {
    constexpr std::string_view prefix = "node";
    if (!name.starts_with(prefix))
        return -1;
    name.remove_prefix(prefix.size());
    const char *end = name.data() + name.size();
    int node = -1;
    const auto [stop, error] = std::from_chars(name.data(), end, node);
    return error == std::errc() && stop == end && node < most_cpu_numbers ? node : -1;
}

// Those of a sorted array whose numbers lie in a range.
template <class Visit> void each_between(Cpu *cpus, Cpu *end, int first, int last, Visit visit) {
    Cpu *cpu = std::lower_bound(cpus, end, first, [](const Cpu &a, int number) { return a.number < number; });
    for (; cpu != end && cpu->number <= last; ++cpu)
        visit(*cpu);
}

// --- sets of processors ---------------------------------------------------------------------------------------------

// With room for numbers below what the caller says: a cpu_set_t's own end at 1,024.
class CpuSet {
public:
    explicit CpuSet(uint32_t numbers) noexcept
        : words_((numbers + word_bits - 1) / word_bits), bits_(allocate_array<unsigned long>(words_)) {
        if (bits_ != nullptr)
            std::memset(bits_, 0, size());
    }
    CpuSet(const CpuSet &) = delete;
    CpuSet &operator=(const CpuSet &) = delete;
    ~CpuSet() { deallocate_array(bits_, words_); }

    cpu_set_t *get() const noexcept { return reinterpret_cast<cpu_set_t *>(bits_); } // null: no memory
    size_t size() const noexcept { return words_ * sizeof *bits_; }

private:
    static constexpr uint32_t word_bits = 8 * sizeof(unsigned long);
    static_assert(alignof(cpu_set_t) <= alignof(unsigned long));

    const size_t words_;
    unsigned long *const bits_;
};

} // namespace

// --- topology -------------------------------------------------------------------------------------------------------

bool Topology::read_machine() noexcept {
    const int saved = errno;
    clear();
    bool known = false;
    // The kernel refuses a set that is smaller than its own.
    for (uint32_t numbers = 1024; !known && numbers <= most_cpu_numbers; numbers *= 2)
        known = add_affinity(numbers);
    if (known)
        complete("");
    errno = saved;
    return known;
}

bool Topology::read(const char *root, const int *numbers, uint32_t count) noexcept {
    const int saved = errno;
    if (reserve(count))
        for (uint32_t i = 0; i < count; ++i)
            add(numbers[i]);
    if (count_ != 0)
        complete(root);
    errno = saved;
    return count_ != 0;
}

bool Topology::add_affinity(uint32_t numbers) noexcept {
    const CpuSet set(numbers);
    if (set.get() == nullptr || sched_getaffinity(0, set.size(), set.get()) != 0 ||
        !reserve(static_cast<uint32_t>(CPU_COUNT_S(set.size(), set.get()))))
        return false;
    for (uint32_t number = 0; number < numbers; ++number)
        if (CPU_ISSET_S(number, set.size(), set.get()))
            add(static_cast<int>(number));
    return true;
}

bool Topology::reserve(uint32_t count) noexcept {
    clear();
    if (count == 0)
        return false;
    cpus_ = allocate_array<Cpu>(count);
    reserved_ = count;
    return cpus_ != nullptr;
}

void Topology::clear() noexcept {
    deallocate_array(cpus_, reserved_);
    cpus_ = nullptr;
    count_ = 0;
    reserved_ = 0;
}

void Topology::add(int number) noexcept {
    if (number >= 0 && number < most_cpu_numbers)
        new (&cpus_[count_++]) Cpu{.number = number, .node = nowhere, .core = nowhere};
}

// Of what was added, at least one. Sorted first: the rest looks processors up by number.
void Topology::complete(const char *root) noexcept {
    std::sort(cpus_, cpus_ + count_, [](const Cpu &a, const Cpu &b) { return a.number < b.number; });
    const auto same = [](const Cpu &a, const Cpu &b) { return a.number == b.number; };
    count_ = static_cast<uint32_t>(std::unique(cpus_, cpus_ + count_, same) - cpus_);
    keep_online(root);
    read_nodes(root);
    least_capacity_ = Cpu::most_capacity;
    greatest_capacity_ = 0;
    for (Cpu *cpu = cpus_; cpu != cpus_ + count_; ++cpu) {
        cpu->core = core_of(root, cpu->number);
        cpu->capacity = capacity_of(root, cpu->number);
        least_capacity_ = std::min(least_capacity_, cpu->capacity);
        greatest_capacity_ = std::max(greatest_capacity_, cpu->capacity);
    }
}

// A list after which there is none is wrong, or of another moment: all stay.
void Topology::keep_online(const char *root) noexcept {
    each_range(Path(root, "cpu/online"), [this](int first, int last) {
        each_between(cpus_, cpus_ + count_, first, last, [](Cpu &cpu) { cpu.core = cpu.number; });
    });
    const auto offline = [](const Cpu &cpu) { return cpu.core == nowhere; };
    if (!std::all_of(cpus_, cpus_ + count_, offline))
        count_ = static_cast<uint32_t>(std::remove_if(cpus_, cpus_ + count_, offline) - cpus_);
}

// A processor that several nodes claim is in the lowest: the directory's order is no order. One that none claims is in 0.
void Topology::read_nodes(const char *root) noexcept {
    if (DIR *nodes = Path(root, "node").open_directory()) {
        while (const dirent *entry = readdir(nodes))
            if (const int node = node_of_name(entry->d_name); node >= 0)
                each_range(Path(root, "node/%s/cpulist", entry->d_name), [&](int first, int last) {
                    each_between(cpus_, cpus_ + count_, first, last, [node](Cpu &cpu) {
                        cpu.node = cpu.node == nowhere ? node : std::min(cpu.node, node);
                    });
                });
        closedir(nodes);
    }
    for (Cpu *cpu = cpus_; cpu != cpus_ + count_; ++cpu)
        cpu->node = std::max(cpu->node, 0);
}

const Cpu *Topology::find(int number) const noexcept {
    const Cpu *cpu = std::lower_bound(begin(), end(), number, [](const Cpu &a, int b) { return a.number < b; });
    return cpu != end() && cpu->number == number ? cpu : nullptr;
}

bool Topology::is(const Cpu &cpu, CoreKind kind) const noexcept {
    if (kind == CoreKind::any || least_capacity_ == greatest_capacity_)
        return true;
    return (cpu.capacity == greatest_capacity_) == (kind == CoreKind::big);
}

// --- placement ------------------------------------------------------------------------------------------------------

bool Placement::plan(const Topology &topology, PlacementPolicy policy, CoreKind kind, int first_cpu,
                     uint64_t seed) noexcept {
    clear();
    if (policy == PlacementPolicy::none || topology.count() == 0)
        return true;
    places_ = allocate_array<Place>(topology.count());
    if (places_ == nullptr)
        return false;
    reserved_ = topology.count();
    const Cpu *first = topology.find(first_cpu);
    collect(topology, kind, first == nullptr ? topology.begin()->node : first->node);
    if (policy == PlacementPolicy::random)
        shuffle(seed);
    else
        order_by_depth();
    if (policy == PlacementPolicy::breadth_first)
        order_by_breadth();
    return true;
}

void Placement::clear() noexcept {
    deallocate_array(places_, reserved_);
    places_ = nullptr;
    count_ = 0;
    reserved_ = 0;
}

void Placement::collect(const Topology &topology, CoreKind kind, int first_node) noexcept {
    for (const Cpu &cpu : topology) {
        const int steps = cpu.node - first_node + (cpu.node < first_node ? most_cpu_numbers : 0);
        if (topology.is(cpu, kind))
            new (&places_[count_++]) Place{.cpu = cpu.number, .core = cpu.core, .node = steps, .turn = 0};
    }
}

void Placement::shuffle(uint64_t seed) noexcept {
    Prng prng(seed);
    for (uint32_t left = count_; left > 1; --left)
        std::swap(places_[left - 1], places_[prng.below(left)]);
}

void Placement::order_by_depth() noexcept {
    std::sort(places_, places_ + count_, [](const Place &a, const Place &b) {
        return std::tie(a.node, a.core, a.cpu) < std::tie(b.node, b.core, b.cpu);
    });
    number_runs([](const Place &a, const Place &b) { return a.node == b.node && a.core == b.core; });
    std::sort(places_, places_ + count_, [](const Place &a, const Place &b) {
        return std::tie(a.node, a.turn, a.cpu) < std::tie(b.node, b.turn, b.cpu);
    });
}

// After order_by_depth: within a node that order stays.
void Placement::order_by_breadth() noexcept {
    number_runs([](const Place &a, const Place &b) { return a.node == b.node; });
    std::sort(places_, places_ + count_,
              [](const Place &a, const Place &b) { return std::tie(a.turn, a.node) < std::tie(b.turn, b.node); });
}

// Each run of places that are the same takes the turns 0, 1, 2...
template <class Same> void Placement::number_runs(Same same) noexcept {
    for (uint32_t i = 0; i < count_; ++i)
        places_[i].turn = i > 0 && same(places_[i - 1], places_[i]) ? places_[i - 1].turn + 1 : 0;
}

// --- pinning --------------------------------------------------------------------------------------------------------

#ifdef MC_SYS
bool pin_this_thread(int cpu) noexcept { return cpu >= 0 && cpu < most_cpu_numbers; }
#else
bool pin_this_thread(int cpu) noexcept {
    if (cpu < 0 || cpu >= most_cpu_numbers)
        return false;
    const CpuSet set(static_cast<uint32_t>(cpu) + 1);
    if (set.get() == nullptr)
        return false;
    CPU_SET_S(static_cast<size_t>(cpu), set.size(), set.get());
    return pthread_setaffinity_np(pthread_self(), set.size(), set.get()) == 0;
}
#endif

int current_cpu() noexcept { return sched_getcpu(); }

} // namespace mc::base
