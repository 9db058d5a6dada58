// Topologies read from the files of machines that are not here, and the order in which executors get their processors.
#include "base/topology.hpp"

#include "base/alloc.hpp"
#include "base/prng.hpp"
#include "base/sync.hpp"
#include "base/test_root.hpp"
#include "testing/test.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <sched.h>

using namespace mc;
using namespace mc::base;
using mc::testing::Root;

using Numbers = std::vector<int>;
using Policy = PlacementPolicy;

namespace {

const std::string cpu_dir = "/sys/devices/system/cpu/";
const std::string node_dir = "/sys/devices/system/node/";

std::string file_of(int cpu, const std::string &name) { return cpu_dir + "cpu" + std::to_string(cpu) + "/" + name; }
std::string list_of(int node) { return node_dir + "node" + std::to_string(node) + "/cpulist"; }

// first, first + 1, ... last
Numbers range(int first, int last) {
    Numbers numbers(static_cast<size_t>(last - first + 1));
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
}

std::string text(const Numbers &numbers) {
    std::string text;
    for (int number : numbers)
        text += (text.empty() ? "" : ",") + std::to_string(number);
    return text;
}

struct Machine : Topology {
    Machine(const Root &root, const Numbers &allowed) {
        read_all = read(root.path(), allowed.data(), static_cast<uint32_t>(allowed.size()));
    }
    bool read_all;
};

template <class Field> Numbers each(const Topology &topology, Field field) {
    Numbers out;
    for (const Cpu &cpu : topology)
        out.push_back(cpu.*field);
    return out;
}
Numbers numbers(const Topology &topology) { return each(topology, &Cpu::number); }
Numbers nodes(const Topology &topology) { return each(topology, &Cpu::node); }
Numbers cores(const Topology &topology) { return each(topology, &Cpu::core); }
Numbers capacities(const Topology &topology) { return each(topology, &Cpu::capacity); }

// What the executors get, up to the first that gets nothing; none after it does.
Numbers order(const Topology &topology, Policy policy, CoreKind kind = CoreKind::any, int first_cpu = -1,
              uint64_t seed = 1) {
    Placement placement;
    cr_assert(placement.plan(topology, policy, kind, first_cpu, seed));
    Numbers out;
    for (uint32_t executor = 0; placement.cpu_of(executor) != -1; ++executor)
        out.push_back(placement.cpu_of(executor));
    cr_assert_eq(placement.count(), out.size());
    for (uint32_t executor = placement.count(); executor < topology.count() + 3; ++executor)
        cr_assert_eq(placement.cpu_of(executor), -1);
    cr_assert_eq(placement.cpu_of(UINT32_MAX), -1);
    return out;
}

Numbers sorted(Numbers numbers) {
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

#define assert_numbers(left, ...) cr_assert((left) == (Numbers{__VA_ARGS__}), "%s", text(left).c_str())

// Two sockets, each a node of two cores; the second threads of the cores are numbered after the first ones.
Root &server(Root &root) {
    root.file(cpu_dir + "online", "0-7\n");
    root.file(list_of(0), "0-1,4-5\n").file(list_of(1), "2-3,6-7\n");
    root.file(node_dir + "online", "0-1\n").file(node_dir + "has_cpu", "0-1\n").file(node_dir + "node", "x");
    for (int cpu = 0; cpu < 8; ++cpu)
        root.file(file_of(cpu, "topology/core_cpus_list"), text({cpu % 4, cpu % 4 + 4}) + "\n");
    return root;
}

// Little cores first, and no node in sight.
Root &phone(Root &root) {
    root.file(cpu_dir + "online", "0-7\n");
    for (int cpu = 0; cpu < 8; ++cpu)
        root.file(file_of(cpu, "cpu_capacity"), cpu < 4 ? "446\n" : "1024\n")
            .file(file_of(cpu, "topology/core_cpus_list"), std::to_string(cpu) + "\n");
    return root;
}

} // namespace

// Goal: nodes, cores and capacities of a server are what its files say, with no regard to the order of its list.
Test(Topology, server) {
    Root root;
    Machine machine(server(root), {7, 6, 5, 4, 3, 2, 1, 0});
    cr_assert(machine.read_all);
    assert_numbers(numbers(machine), 0, 1, 2, 3, 4, 5, 6, 7);
    assert_numbers(nodes(machine), 0, 0, 1, 1, 0, 0, 1, 1);
    assert_numbers(cores(machine), 0, 1, 2, 3, 0, 1, 2, 3);
    assert_numbers(capacities(machine), 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024);
    cr_assert_eq(machine.find(6)->number, 6);
    for (int absent : {-1, 8, INT32_MAX, INT32_MIN})
        cr_assert_null(machine.find(absent));
}

// Goal: depth first fills the node that it is told to begin at, and then the next; second threads of cores come last in
// their node. Of breadth first the nodes take turns.
Test(Placement, server) {
    Root root;
    Machine machine(server(root), range(0, 7));
    assert_numbers(order(machine, Policy::depth_first), 0, 1, 4, 5, 2, 3, 6, 7);
    assert_numbers(order(machine, Policy::depth_first, CoreKind::any, 5), 0, 1, 4, 5, 2, 3, 6, 7);
    assert_numbers(order(machine, Policy::depth_first, CoreKind::any, 6), 2, 3, 6, 7, 0, 1, 4, 5);
    assert_numbers(order(machine, Policy::depth_first, CoreKind::any, 8), 0, 1, 4, 5, 2, 3, 6, 7);
    assert_numbers(order(machine, Policy::breadth_first), 0, 2, 1, 3, 4, 6, 5, 7);
    assert_numbers(order(machine, Policy::breadth_first, CoreKind::any, 3), 2, 0, 3, 1, 6, 4, 7, 5);
    assert_numbers(order(machine, Policy::random, CoreKind::any, -1, 7), 6, 0, 2, 3, 4, 7, 1, 5);
    cr_assert(order(machine, Policy::none).empty());
    for (CoreKind kind : {CoreKind::big, CoreKind::little}) // all alike
        assert_numbers(order(machine, Policy::depth_first, kind), 0, 1, 4, 5, 2, 3, 6, 7);
}

// Goal: of a kind that is asked for the executors get all processors, and none of the other.
Test(Placement, phone) {
    Root root;
    Machine machine(phone(root), range(0, 7));
    assert_numbers(capacities(machine), 446, 446, 446, 446, 1024, 1024, 1024, 1024);
    assert_numbers(nodes(machine), 0, 0, 0, 0, 0, 0, 0, 0);
    for (Policy policy : {Policy::depth_first, Policy::breadth_first}) {
        assert_numbers(order(machine, policy, CoreKind::big), 4, 5, 6, 7);
        assert_numbers(order(machine, policy, CoreKind::little), 0, 1, 2, 3);
        assert_numbers(order(machine, policy, CoreKind::any), 0, 1, 2, 3, 4, 5, 6, 7);
    }
    assert_numbers(sorted(order(machine, Policy::random, CoreKind::big)), 4, 5, 6, 7);
    assert_numbers(sorted(order(machine, Policy::random, CoreKind::little)), 0, 1, 2, 3);
    cr_assert(order(machine, Policy::none, CoreKind::big).empty());
    assert_numbers(order(Machine(root, {1, 2}), Policy::depth_first, CoreKind::big), 1, 2); // alike among themselves
}

// Goal: of three capacities the greatest alone is big.
Test(Placement, three_capacities) {
    Root root;
    phone(root).file(file_of(2, "cpu_capacity"), "760\n").file(file_of(7, "cpu_capacity"), "1023\n");
    Machine machine(root, range(0, 7));
    assert_numbers(order(machine, Policy::depth_first, CoreKind::big), 4, 5, 6);
    assert_numbers(order(machine, Policy::depth_first, CoreKind::little), 0, 1, 2, 3, 7);
}

// Goal: a container that may use 2 of 64 processors gets those, with the core that they share with one that it may not.
Test(Topology, container) {
    Root root;
    root.file(cpu_dir + "online", "0-63\n").file(list_of(0), "0-31\n").file(list_of(1), "32-63\n");
    for (int cpu = 0; cpu < 64; ++cpu)
        root.file(file_of(cpu, "topology/core_cpus_list"), text({cpu & ~1, cpu | 1}) + "\n");
    Machine machine(root, {41, 17});
    assert_numbers(numbers(machine), 17, 41);
    assert_numbers(nodes(machine), 0, 1);
    assert_numbers(cores(machine), 16, 40);
    assert_numbers(order(machine, Policy::depth_first), 17, 41);
    assert_numbers(order(machine, Policy::breadth_first, CoreKind::any, 41), 41, 17);
    assert_numbers(order(machine, Policy::breadth_first, CoreKind::any, 40), 17, 41); // not ours: the lowest
}

// Goal: holes in the numbers of processors and nodes are none in the order; offline processors are left out. The list of
// an older kernel serves where the newer is missing.
Test(Topology, holes) {
    Root root;
    root.file(cpu_dir + "online", "3,8-9,300,5000-5001,65535");
    root.file(list_of(4), "3,300\n").file(list_of(65535), "65535\n").file(list_of(17), "8-9,5000-5001\n");
    root.file(list_of(200), "\n"); // memory alone
    for (int cpu : {8, 9})
        root.file(file_of(cpu, "topology/thread_siblings_list"), "7-10\n");
    root.file(file_of(300, "topology/core_cpus_list"), "3,300\n")
        .file(file_of(300, "topology/thread_siblings_list"), "300");
    Machine machine(root, {0, 3, 7, 8, 9, 10, 300, 5000, 65535});
    assert_numbers(numbers(machine), 3, 8, 9, 300, 5000, 65535);
    assert_numbers(nodes(machine), 4, 17, 17, 4, 17, 65535);
    assert_numbers(cores(machine), 3, 7, 7, 3, 5000, 65535);
    assert_numbers(order(machine, Policy::depth_first), 3, 300, 8, 5000, 9, 65535);
    assert_numbers(order(machine, Policy::depth_first, CoreKind::any, 5000), 8, 5000, 9, 65535, 3, 300);
    assert_numbers(order(machine, Policy::breadth_first, CoreKind::any, 65535), 65535, 3, 8, 300, 5000, 9);
}

// Goal: where first_cpu is of a kind that is not asked for, its node is still where the order begins.
Test(Placement, begins_at_a_node_without_the_kind) {
    Root root;
    root.file(list_of(0), "0-1\n").file(list_of(1), "2\n").file(list_of(2), "3-4\n");
    root.file(file_of(2, "cpu_capacity"), "100\n");
    Machine machine(root, range(0, 4));
    assert_numbers(order(machine, Policy::depth_first, CoreKind::big, 2), 3, 4, 0, 1);
    assert_numbers(order(machine, Policy::breadth_first, CoreKind::big, 2), 3, 0, 4, 1);
    assert_numbers(order(machine, Policy::depth_first, CoreKind::little, 4), 2);
}

// Goal: a core of four threads, two of which may be used, beside one that is whole: turn by turn.
Test(Placement, four_threads_a_core) {
    Root root;
    for (int cpu = 0; cpu < 8; ++cpu)
        root.file(file_of(cpu, "topology/core_cpus_list"), cpu < 4 ? "0-3\n" : "4-7\n");
    assert_numbers(order(Machine(root, {2, 3, 4, 5, 6, 7}), Policy::depth_first), 2, 4, 3, 5, 6, 7);
}

// Goal: a core that the files put into two nodes, which is wrong, counts in each by itself.
Test(Placement, core_of_two_nodes) {
    Root root;
    root.file(list_of(0), "0\n").file(list_of(1), "1-2\n");
    for (int cpu : {0, 1})
        root.file(file_of(cpu, "topology/core_cpus_list"), "0-1\n");
    assert_numbers(order(Machine(root, range(0, 2)), Policy::depth_first), 0, 1, 2);
}

// Goal: with no files at all there is still each processor that is allowed.
Test(Topology, no_files) {
    Root root;
    Machine machine(root, {5, 2, 5, 900});
    assert_numbers(numbers(machine), 2, 5, 900);
    assert_numbers(nodes(machine), 0, 0, 0);
    assert_numbers(cores(machine), 2, 5, 900);
    assert_numbers(capacities(machine), 1024, 1024, 1024);
    assert_numbers(order(machine, Policy::breadth_first), 2, 5, 900);
}

// Goal: one processor is an order of one.
Test(Topology, one_processor) {
    Root root;
    root.file(cpu_dir + "online", "0\n").file(list_of(0), "0\n").file(file_of(0, "topology/core_cpus_list"), "0\n");
    Machine machine(root, {0});
    for (Policy policy : {Policy::depth_first, Policy::breadth_first, Policy::random})
        for (CoreKind kind : {CoreKind::any, CoreKind::big, CoreKind::little})
            assert_numbers(order(machine, policy, kind), 0);
}

// Goal: a list that makes no sense anywhere is as good as none, and costs no processor.
Test(Topology, lists_without_sense) {
    for (const char *list : {"",
                             "\n",
                             "x\n",
                             "0-",
                             "0-\n",
                             "-1\n",
                             "2-1\n",
                             "0-1,\n",
                             ",0-1\n",
                             "0--1\n",
                             "0-1-2\n",
                             "0-1;\n",
                             "0 1\n",
                             " 0-1\n",
                             "0-65536\n",
                             "4294967296\n",
                             "0,99999999999999999999\n",
                             "0-1,z\n",
                             "0-1,2-1\n",
                             "1:2/3\n",
                             "0x1\n",
                             "\xff\xfe"}) {
        Root root;
        root.file(cpu_dir + "online", list).file(list_of(3), list);
        root.file(file_of(1, "topology/core_cpus_list"), list).file(file_of(1, "topology/thread_siblings_list"), list);
        Machine machine(root, range(0, 2));
        cr_assert(numbers(machine) == range(0, 2), "%s", list);
        cr_assert(nodes(machine) == Numbers({0, 0, 0}), "%s", list);
        cr_assert(cores(machine) == range(0, 2), "%s", list);
    }
    Root root; // a NUL, a directory in a file's place, the second list where the first makes no sense or is another's
    root.file(cpu_dir + "online", std::string("0\0", 2)).file(list_of(1) + "/below", "").file(list_of(2), "0-2\nx");
    root.file(file_of(1, "topology/core_cpus_list"), "y\n").file(file_of(1, "topology/thread_siblings_list"), "0-1\n");
    root.file(file_of(2, "topology/core_cpus_list"), "0-1\n")
        .file(file_of(2, "topology/thread_siblings_list"), "1-2\n");
    Machine machine(root, range(0, 2));
    assert_numbers(numbers(machine), 0, 1, 2);
    assert_numbers(nodes(machine), 2, 2, 2);
    assert_numbers(cores(machine), 0, 0, 1);
}

// Goal: capacities and names of nodes that make no sense are none; a processor of several nodes is in the lowest.
Test(Topology, numbers_without_sense) {
    for (const char *capacity : {"", "\n", "0\n", "-5\n", "1025\n", "99999999999999999999\n", "12x\n", "x", " 5\n"}) {
        Root root;
        root.file(file_of(0, "cpu_capacity"), capacity).file(file_of(1, "cpu_capacity"), "1\n");
        cr_assert(capacities(Machine(root, {0, 1})) == Numbers({1024, 1}), "%s", capacity);
    }
    for (const char *name :
         {"node", "node-1", "node65536", "node99999999999999999999", "node1x", "nod1", "nodes1", "Node1"})
        cr_assert(nodes(Machine(Root().file(node_dir + name + "/cpulist", "0\n"), {0})) == Numbers({0}), "%s", name);
    Root root;
    for (int node : {9, 5, 7})
        root.file(list_of(node), "0-3\n");
    assert_numbers(nodes(Machine(root.file(list_of(2), "3\n"), {0, 3})), 5, 2);
    cr_assert(Machine(Root().file(node_dir.substr(0, node_dir.size() - 1), "a file"), {1}).read_all);
}

// Goal: where nothing that is allowed is listed as online, the list is wrong, not the processors.
Test(Topology, none_online) {
    assert_numbers(numbers(Machine(Root().file(cpu_dir + "online", "8-9\n"), {1, 2})), 1, 2);
    assert_numbers(numbers(Machine(Root().file(cpu_dir + "online", "2-9,1\n"), {1, 2, 10})), 1, 2);
}

// Goal: nothing allowed, or nothing that is a processor's number, is no topology, and of none nobody is pinned. Numbers
// out of range do not harm the others.
Test(Topology, nothing_allowed) {
    for (const Numbers &allowed : {Numbers{}, Numbers{-1}, Numbers{65536, INT32_MAX, INT32_MIN}}) {
        Machine machine(Root(), allowed);
        cr_assert_not(machine.read_all);
        cr_assert_eq(machine.count(), 0u);
        cr_assert_null(machine.find(0));
        for (Policy policy : {Policy::none, Policy::depth_first, Policy::breadth_first, Policy::random})
            cr_assert(order(machine, policy, CoreKind::big, 0).empty());
    }
    assert_numbers(numbers(Machine(Root(), {-1, 65535, 0, 65536})), 0, 65535);
    cr_assert(Machine(Root(), range(0, 65535)).count() == 65536u);
}

// Goal: a root whose name leaves no space for a path is one without files.
Test(Topology, long_root) {
    Topology topology;
    const int cpu = 4;
    for (size_t length = 960; length < 1100; ++length) {
        cr_assert(topology.read(std::string(length, '/').c_str(), &cpu, 1));
        assert_numbers(numbers(topology), 4);
    }
}

// Goal: what is read or planned again forgets what was before; errno stays.
Test(Topology, read_again) {
    Root root;
    Topology topology;
    Placement placement;
    const int some[] = {1, 2, 3};
    server(root);
    errno = EXDEV;
    cr_assert(topology.read(root.path(), some, 3));
    cr_assert(placement.plan(topology, Policy::depth_first, CoreKind::any, -1, 0));
    cr_assert(topology.read(root.path(), some + 1, 1));
    cr_assert_eq(placement.cpu_of(2), 3); // a plan does not need its topology
    cr_assert(placement.plan(topology, Policy::depth_first, CoreKind::any, -1, 0));
    cr_assert_eq(placement.cpu_of(0), 2);
    cr_assert_eq(placement.cpu_of(1), -1);
    cr_assert_not(topology.read(root.path(), some, 0));
    cr_assert_eq(topology.count(), 0u);
    cr_assert(placement.plan(topology, Policy::depth_first, CoreKind::any, -1, 0));
    cr_assert_eq(placement.cpu_of(0), -1);
    cr_assert_eq(errno, EXDEV);
}

// Goal: without memory there is no topology, no plan and no pinning, and nothing else happens.
Test(Topology, no_memory) {
    static bool fails = false;
    mc_allocator allocator = MC_ALLOCATOR_INIT;
    allocator.alloc = [](void *, uint64_t size, uint64_t align) {
        return fails ? nullptr : std::aligned_alloc(align, (size + align - 1) / align * align);
    };
    allocator.free = [](void *, void *ptr, uint64_t, uint64_t) { std::free(ptr); };
    cr_assert_eq(set_allocator(allocator), MC_OK);

    Topology topology;
    Placement placement;
    const int cpu = 0;
    cr_assert(topology.read_machine());
    cr_assert(placement.plan(topology, Policy::random, CoreKind::any, -1, 1));
    const int mine = placement.cpu_of(0);
    fails = true;
    cr_assert_not(placement.plan(topology, Policy::depth_first, CoreKind::any, -1, 1));
    cr_assert_eq(placement.cpu_of(0), -1);
    cr_assert(placement.plan(topology, Policy::none, CoreKind::any, -1, 1));
    cr_assert_not(topology.read_machine());
    cr_assert_eq(topology.count(), 0u);
    cr_assert_not(topology.read("", &cpu, 1));
    cr_assert_not(pin_this_thread(mine));
    fails = false;
    cr_assert(pin_this_thread(mine));
}

namespace {

// A machine of random shape: up to 40 processors with holes between them, in up to 5 nodes, with cores of up to 4.
struct Shape {
    std::map<int, Cpu> cpus; // by number
    Numbers allowed;

    Shape(Prng &prng, Root &root) {
        draw(prng);
        write(prng, root);
        for (const auto &[number, cpu] : cpus)
            if (prng.below(4) != 0 || allowed.empty())
                allowed.push_back(number);
        for (size_t left = allowed.size(); left > 1; --left)
            std::swap(allowed[left - 1], allowed[prng.below(static_cast<uint32_t>(left))]);
    }
    const Cpu &operator[](int number) const { return cpus.at(number); }

    Numbers of_kind(CoreKind kind) const {
        int least = Cpu::most_capacity;
        int greatest = 0;
        for (int number : allowed) {
            least = std::min(least, cpus.at(number).capacity);
            greatest = std::max(greatest, cpus.at(number).capacity);
        }
        Numbers out;
        for (int number : allowed)
            if (kind == CoreKind::any || least == greatest ||
                (cpus.at(number).capacity == greatest) == (kind == CoreKind::big))
                out.push_back(number);
        return sorted(out);
    }

private:
    // Processors of a core are of one node, and not neighbours by number.
    void draw(Prng &prng) {
        const int count = 1 + static_cast<int>(prng.below(40));
        const bool alike = prng.below(2) == 0;
        const uint32_t gap = 1 + prng.below(20);
        Numbers names;
        for (uint32_t node = 0, n = 1 + prng.below(5); node < n; ++node)
            names.push_back(
                static_cast<int>((node == 0 ? 0 : static_cast<uint32_t>(names.back()) + 1) + prng.below(3)));
        Numbers free;
        for (int number = static_cast<int>(prng.below(3)); static_cast<int>(free.size()) < count;
             number += 1 + static_cast<int>(prng.below(gap)))
            free.push_back(number);
        while (!free.empty()) {
            Cpu cpu;
            cpu.node = names[prng.below(static_cast<uint32_t>(names.size()))];
            cpu.capacity = alike || prng.below(2) == 0 ? 1024 : 446;
            Numbers members;
            for (uint32_t n = 1 + prng.below(4); n > 0 && !free.empty(); --n) {
                const auto at = free.begin() + prng.below(static_cast<uint32_t>(free.size()));
                members.push_back(*at);
                free.erase(at);
            }
            cpu.core = *std::min_element(members.begin(), members.end());
            for (int number : members) {
                cpu.number = number;
                cpus[number] = cpu;
            }
        }
    }
    void write(Prng &prng, Root &root) const {
        std::map<int, Numbers> in_node;
        std::map<int, Numbers> in_core;
        for (const auto &[number, cpu] : cpus) {
            in_node[cpu.node].push_back(number);
            in_core[cpu.core].push_back(number);
        }
        for (const auto &[node, members] : in_node)
            root.file(list_of(node), text(members) + "\n");
        const std::string list = prng.below(2) == 0 ? "core_cpus_list" : "thread_siblings_list";
        for (const auto &[number, cpu] : cpus) {
            root.file(file_of(number, "topology/" + list), text(in_core[cpu.core]) + "\n");
            if (cpu.capacity != Cpu::most_capacity || prng.below(2) == 0)
                root.file(file_of(number, "cpu_capacity"), std::to_string(cpu.capacity) + "\n");
        }
    }
};

// In each node: nobody gets a core's processor number n + 1 while some core's number n is left.
void check_cores(const Shape &shape, const Numbers &given) {
    std::map<int, int> of_core;
    std::map<int, int> least; // by node: how many of its core the last one found taken
    for (int number : given) {
        const int before = of_core[shape[number].core]++;
        int &reached = least[shape[number].node];
        cr_assert_geq(before, reached);
        reached = before;
    }
}

// The nodes in the order in which they may come: from the first on upwards, and around.
Numbers nodes_from(const Shape &shape, const Numbers &given, int first_node) {
    std::set<int> below;
    std::set<int> above;
    for (int number : given)
        (shape[number].node < first_node ? below : above).insert(shape[number].node);
    Numbers out(above.begin(), above.end());
    out.insert(out.end(), below.begin(), below.end());
    return out;
}

void check_depth(const Shape &shape, const Numbers &given, int first_node) {
    Numbers seen;
    for (int number : given)
        if (seen.empty() || seen.back() != shape[number].node)
            seen.push_back(shape[number].node);
    cr_assert(seen == nodes_from(shape, given, first_node), "%s", text(seen).c_str());
    check_cores(shape, given);
}

void check_breadth(const Shape &shape, const Numbers &given, int first_node) {
    std::map<int, size_t> left;
    for (int number : given)
        ++left[shape[number].node];
    const Numbers turns = nodes_from(shape, given, first_node);
    Numbers expected;
    while (expected.size() < given.size())
        for (int node : turns)
            if (left[node] > 0) {
                --left[node];
                expected.push_back(node);
            }
    for (size_t i = 0; i < given.size(); ++i)
        cr_assert_eq(shape[given[i]].node, expected[i], "%s", text(given).c_str());
    check_cores(shape, given);
}

} // namespace

// Goal: whatever the machine, it is read as it is; each policy gives each processor of the kind once, in an order that
// keeps what the policy promises.
Test(Placement, any_machine) {
    const unsigned rounds = 20 * testing::scale();
    for (uint64_t seed = 0; seed < rounds; ++seed) {
        Prng prng(seed);
        Root root;
        const Shape shape(prng, root);
        Machine machine(root, shape.allowed);
        cr_assert(numbers(machine) == sorted(shape.allowed), "seed %u", static_cast<unsigned>(seed));
        for (const Cpu &cpu : machine) {
            cr_assert_eq(cpu.node, shape[cpu.number].node);
            cr_assert_eq(cpu.core, shape[cpu.number].core);
            cr_assert_eq(cpu.capacity, shape[cpu.number].capacity);
        }
        const int lowest = machine.begin()->number;
        for (CoreKind kind : {CoreKind::any, CoreKind::big, CoreKind::little}) {
            const Numbers expected = shape.of_kind(kind);
            for (int first : {-1, shape.allowed.front(), shape.allowed.back()}) {
                const int first_node = shape[first == -1 ? lowest : first].node;
                const Numbers depth = order(machine, Policy::depth_first, kind, first);
                const Numbers breadth = order(machine, Policy::breadth_first, kind, first);
                cr_assert(sorted(depth) == expected && sorted(breadth) == expected);
                check_depth(shape, depth, first_node);
                check_breadth(shape, breadth, first_node);
                cr_assert(sorted(order(machine, Policy::random, kind, first, seed)) == expected);
            }
        }
    }
}

// Goal: random is the same for the same seed, wherever it begins, and each order is about as likely as any other: of
// the 24 of four processors each comes up, none four times as often as it should.
Test(Placement, random_is_even) {
    Root root;
    Machine machine(root, range(0, 3));
    std::map<Numbers, int> seen;
    const int rounds = 2400;
    for (int seed = 0; seed < rounds; ++seed)
        ++seen[order(machine, Policy::random, CoreKind::any, -1, static_cast<uint64_t>(seed))];
    cr_assert_eq(seen.size(), 24u);
    for (const auto &[numbers, times] : seen)
        cr_assert(times > 25 && times < 400, "%s: %d", text(numbers).c_str(), times);
    cr_assert(order(machine, Policy::random, CoreKind::any, 3, 9) ==
              order(machine, Policy::random, CoreKind::any, -1, 9));
}

// Goal: this machine has a processor, and none that the affinity does not allow.
Test(Topology, this_machine) {
    Topology topology;
    cr_assert(topology.read_machine());
    cr_assert_geq(topology.count(), 1u);
    cr_assert_leq(topology.count(), sync::cpu_count());
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        cr_skip_test("more than 1,024 processors");
    for (const Cpu &cpu : topology)
        cr_assert(CPU_ISSET(cpu.number, &set), "%d", cpu.number);
    cr_assert_not(order(topology, Policy::depth_first).empty());
}

namespace {

// On a thread of its own: pins it to each processor in turn, and tries those that there are not.
void pin_to_each(void *arg) {
    const auto &topology = *static_cast<const Topology *>(arg);
    for (const Cpu &cpu : topology) {
        cr_assert(pin_this_thread(cpu.number));
        for (int absent : {-1, most_cpu_numbers - 1, most_cpu_numbers, INT32_MAX, INT32_MIN})
            cr_assert_not(pin_this_thread(absent));
        Topology alone;
        cr_assert(alone.read_machine());
        cr_assert(numbers(alone) == Numbers{cpu.number});
        cr_assert_eq(sched_getcpu(), cpu.number);
    }
}

} // namespace

// Goal: a thread that pins itself runs there and nowhere else, and others run where they did.
Test(Topology, pins_this_thread_alone) {
    Topology topology;
    cr_assert(topology.read_machine());
    sync::thread thread;
    cr_assert(thread.start(pin_to_each, &topology));
    thread.join();
    Topology after;
    cr_assert(after.read_machine());
    cr_assert(numbers(after) == numbers(topology));
}
