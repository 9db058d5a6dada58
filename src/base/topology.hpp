// The processors that the process may use, how they hang together, and which of them each executor gets.
//
// Topology reads, Placement decides: the second is pure, so that its tests are tables. Who starts executors reads the one,
// plans the other, on any thread, and each executor pins its own thread. An object has one user at a time; once it is
// read or planned, any number may look at it. No call may run on a small stack.
//
// What the system does not tell, or tells in a way that makes no sense, costs no processor: it stays, with defaults:
// in node 0, alone on its core, of full capacity.
//
// Rejected:
//  - hwloc: a dependency for three files a processor;
//  - the node of a processor from the link cpuN/nodeM: a directory to read for each processor, in place of a file a
//    node;
//  - bits in place of lists: there are systems of 65,536 numbers and two processors.
#pragma once

#include <cstdint>

namespace mc::base {

inline constexpr int most_cpu_numbers = 65'536; // processors are numbered below it, and so are nodes

struct Cpu {
    static constexpr int most_capacity = 1024; // by the kernel's scale

    int number = 0;
    int node = 0; // NUMA node; 0 where the system does not tell
    int core = 0; // the lowest number of all that share its core, whether the process may use that one or not
    int capacity = most_capacity;
};

enum class CoreKind : uint8_t {
    any,
    big,    // of the greatest capacity that the process may use
    little, // of a lesser one
};

class Topology {
public:
    Topology() = default;
    Topology(const Topology &) = delete;
    Topology &operator=(const Topology &) = delete;
    ~Topology() { clear(); }

    // The machine's, as far as the calling thread's affinity allows. False: the system does not tell the affinity, or
    // there is no memory; the topology is empty then.
    bool read_machine() noexcept;

    // The same for the processors listed: what is listed twice counts once, what is no processor's number is left out.
    // root stands before /sys, "" for the machine's own: for tests. False: nothing is left, or no memory.
    bool read(const char *root, const int *numbers, uint32_t count) noexcept;

    // Ascending by number; each online, unless the system has all of them offline.
    const Cpu *begin() const noexcept { return cpus_; }
    const Cpu *end() const noexcept { return cpus_ + count_; }
    uint32_t count() const noexcept { return count_; }
    const Cpu *find(int number) const noexcept; // or null

    // Where all are alike, each is of every kind.
    bool is(const Cpu &cpu, CoreKind kind) const noexcept;

private:
    bool add_affinity(uint32_t numbers) noexcept;
    bool reserve(uint32_t count) noexcept;
    void add(int number) noexcept;
    void complete(const char *root) noexcept;
    void keep_online(const char *root) noexcept;
    void read_nodes(const char *root) noexcept;
    void clear() noexcept;

    // immutable once it is read
    Cpu *cpus_ = nullptr;
    uint32_t count_ = 0;
    uint32_t reserved_ = 0;
    int least_capacity_ = 0;
    int greatest_capacity_ = 0;
};

enum class PlacementPolicy : uint8_t {
    none,          // no executor is pinned
    depth_first,   // a node is filled before the next one is begun
    breadth_first, // one of each node in turn; full ones are passed over
    random,        // each order is as likely as any other
};

// Depth first and breadth first begin at the node of `first_cpu`, usually where the thread that starts the executors runs,
// go on to the next higher node, and from the highest to the lowest. Of a node, they take as many different cores as
// there are before they take a second processor of any core, and then the lower number.
class Placement {
public:
    Placement() = default;
    Placement(const Placement &) = delete;
    Placement &operator=(const Placement &) = delete;
    ~Placement() { clear(); }

    // Each processor of the kind is given once. A first_cpu that is not in the topology, such as -1: the lowest there
    // is. The seed is for random alone. False: no memory; nobody is pinned then.
    bool plan(const Topology &topology, PlacementPolicy policy, CoreKind kind, int first_cpu, uint64_t seed) noexcept;

    // -1: not pinned; so are all executors that are more than the processors of the kind.
    int cpu_of(uint32_t executor) const noexcept { return executor < count_ ? places_[executor].cpu : -1; }
    uint32_t count() const noexcept { return count_; } // how many are pinned

private:
    struct Place {
        int cpu;
        int core;
        int node; // steps from the first node
        int turn; // how many of its core come before it; then, breadth first, how many of its node
    };

    void collect(const Topology &topology, CoreKind kind, int first_node) noexcept;
    void shuffle(uint64_t seed) noexcept;
    void order_by_depth() noexcept;
    void order_by_breadth() noexcept;
    template <class Same> void number_runs(Same same) noexcept;
    void clear() noexcept;

    // immutable once it is planned; in the order of executors
    Place *places_ = nullptr;
    uint32_t count_ = 0;
    uint32_t reserved_ = 0;
};

// The calling thread runs on this processor alone from now on. False: there is none of that number, the process may not
// use it, or no memory; nothing has changed then. In the systematic twin, whose threads are one, it does nothing.
bool pin_this_thread(int cpu) noexcept;

// The processor that the calling thread runs on now, or -1 where the system does not tell.
int current_cpu() noexcept;

} // namespace mc::base
