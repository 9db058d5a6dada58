// Random networks of combinators, built from sources to one output, against a sequential model of each: what comes out is what
// the model says, or, when the reader closes early, a beginning of it; what passes a tee arrives at its side; in the end nothing
// is left.
//
// A failure prints the seed; MC_TEST_SEED=n in the environment runs that one alone. MC_TEST_SCALE runs more of them.
#include "base/prng.hpp"
#include "hpp/test_hpp.hpp"

#include <mc/sim.h>

#include <cstdlib>
#include <memory>
#include <numeric>

using namespace mc::hpp::testing;

namespace {

uint64_t running_seed;

#define expect(condition) cr_assert(condition, "MC_TEST_SEED=%llu", static_cast<unsigned long long>(running_seed))

// Messages stand for numbers.
template <class T> struct Coded;
template <> struct Coded<long> {
    static long encode(long n) { return n; }
    static long decode(long n) { return n; }
};
template <> struct Coded<std::string> {
    static std::string encode(long n) { return std::to_string(n) + " is long enough to be allocated"; }
    static long decode(const std::string &s) { return std::strtol(s.c_str(), nullptr, 10); }
};

using Numbers = std::vector<long>;

bool begins(const Numbers &whole, const Numbers &part) {
    return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

template <class T> class Network {
public:
    explicit Network(uint64_t seed) : random_(seed) {}

    void run() {
        Flow flow = make(3);
        const bool whole = random_.below(3) != 0;
        const size_t wanted = whole ? SIZE_MAX : random_.below(static_cast<uint32_t>(flow.expected.size()) + 2);
        Numbers got;
        while (got.size() < wanted) {
            T message = Coded<T>::encode(-1);
            if (!(flow.reader >> message))
                break;
            got.push_back(Coded<T>::decode(message));
        }
        expect(whole ? got == flow.expected : begins(flow.expected, got));
        expect(whole || got.size() == std::min(wanted, flow.expected.size()));
        flow.reader = {};
        guards_.clear();
        csp::schedule();
        for (const Side &side : sides_)
            expect(whole && side.complete ? *side.got == side.expected : begins(side.expected, *side.got));
    }

private:
    struct Flow {
        csp::reader<T> reader;
        Numbers expected;
    };
    struct Side {
        std::shared_ptr<Numbers> got = std::make_shared<Numbers>();
        Numbers expected;
        bool complete = true;
    };

    mc::base::Prng random_;
    std::vector<Side> sides_;
    std::vector<writer<>> guards_; // of killswitches

    size_t below(uint32_t n) { return random_.below(n); }

    Flow make(int depth) {
        if (depth == 0 || below(8) == 0)
            return source();
        switch (below(5)) {
        case 0:
            return chained(depth);
        case 1:
            return fanned(depth);
        default:
            return stage(make(depth - 1));
        }
    }

    Flow source() {
        const auto n = static_cast<long>(below(12));
        Numbers numbers(static_cast<size_t>(n));
        std::iota(numbers.begin(), numbers.end(), static_cast<long>(below(50)));
        switch (below(4)) {
        case 0:
            if constexpr (std::is_same_v<T, long>)
                return {
                    csp::spawn_count(numbers.empty() ? 0L : numbers.front(), numbers.empty() ? 0L : numbers.back() + 1),
                    numbers};
            [[fallthrough]];
        case 1: {
            std::vector<T> values;
            for (const long number : numbers)
                values.push_back(Coded<T>::encode(number));
            return {csp::spawn_enumerate<T>(values), numbers};
        }
        case 2: {
            auto ch = csp::spawn_buffer<T>(below(5));
            csp::spawn([w = ++ch, numbers] { send(w, numbers); });
            return {--ch, numbers};
        }
        default:
            return {csp::spawn_producer<T>([numbers](const writer<T> &w) { send(w, numbers); }), numbers};
        }
    }
    static void send(const writer<T> &w, const Numbers &numbers) {
        for (const long number : numbers)
            if (!(w << Coded<T>::encode(number)))
                return;
    }

    // Puts a stage behind a flow: by its reader, by its writer, or as a channel.
    template <class ByReader, class ByWriter, class AsChannel>
    csp::reader<T> behind(csp::reader<T> from, ByReader by_reader, ByWriter by_writer, AsChannel as_channel) {
        switch (below(3)) {
        case 0:
            return by_reader(std::move(from));
        case 1: {
            csp::reader<T> r;
            csp::spawn(from.stream_to(by_writer(++r)));
            return r;
        }
        default: {
            auto ch = as_channel();
            csp::spawn(from.stream_to(++ch));
            return --ch;
        }
        }
    }

    Flow stage(Flow flow) {
        switch (below(7)) {
        case 0: {
            const auto f = [k = static_cast<long>(below(9))](const T &m) {
                return Coded<T>::encode(Coded<T>::decode(m) + k);
            };
            for (long &n : flow.expected)
                n = Coded<T>::decode(f(Coded<T>::encode(n)));
            flow.reader = behind(
                std::move(flow.reader), [&](auto r) { return csp::spawn_map(r, f); },
                [&](auto w) { return csp::spawn_map(w, f); }, [&] { return csp::spawn_map<T>(f); });
            return flow;
        }
        case 1: {
            const auto p = [k = static_cast<long>(below(4)) + 1](const T &m) { return Coded<T>::decode(m) % k == 0; };
            Numbers left;
            for (const long n : flow.expected)
                if (p(Coded<T>::encode(n)))
                    left.push_back(n);
            flow.expected = left;
            flow.reader = behind(
                std::move(flow.reader), [&](auto r) { return csp::spawn_where(r, p); },
                [&](auto w) { return csp::spawn_where(w, p); }, [&] { return csp::spawn_where<T>(p); });
            return flow;
        }
        case 2: {
            const size_t capacity = below(6) == 0 ? SIZE_MAX : below(5);
            flow.reader = behind(
                std::move(flow.reader), [&](auto r) { return csp::spawn_buffer(r, capacity); },
                [&](auto w) { return csp::spawn_buffer(w, capacity); }, [&] { return csp::spawn_buffer<T>(capacity); });
            return flow;
        }
        case 3:
            return teed(std::move(flow));
        case 4: {
            csp::reader<> guard;
            guards_.push_back(++guard);
            flow.reader = behind(
                std::move(flow.reader), [&](auto r) { return csp::spawn_killswitch(r, guard); },
                [&](auto w) { return csp::spawn_killswitch(w, guard); },
                [&] { return csp::spawn_killswitch<T>(guard); });
            return flow;
        }
        case 5: {
            channel<std::tuple<T>> requests;
            channel<T> replies;
            csp::spawn(chan::rpc_server(--requests, ++replies,
                                        [](const T &m) { return Coded<T>::encode(Coded<T>::decode(m) * 2); }));
            for (long &n : flow.expected)
                n *= 2;
            flow.reader = csp::spawn_map(std::move(flow.reader), chan::rpc_client(++requests, --replies));
            return flow;
        }
        default:
            return quantized(std::move(flow));
        }
    }

    Flow teed(Flow flow) {
        Side side;
        side.expected = flow.expected;
        const size_t takes = below(3) == 0 ? below(4) : SIZE_MAX; // then its end closes
        side.complete = takes == SIZE_MAX;
        auto to_side = csp::spawn_consumer<T>([got = side.got, takes](const csp::reader<T> &r) {
            T message = Coded<T>::encode(0);
            while (got->size() < takes && r >> message)
                got->push_back(Coded<T>::decode(message));
        });
        sides_.push_back(side);
        if (below(2) == 0) {
            flow.reader = csp::spawn_tee(std::move(flow.reader), std::move(to_side));
        } else {
            csp::reader<T> r;
            csp::spawn(flow.reader.stream_to(csp::spawn_tee(++r, std::move(to_side))));
            flow.reader = r;
        }
        return flow;
    }

    Flow quantized(Flow flow) {
        if constexpr (std::is_same_v<T, long>) {
            const long quantum = static_cast<long>(below(20)) + 5;
            long sum = 0;
            Numbers portions;
            for (const long n : flow.expected)
                for (sum += n; sum >= quantum; sum -= quantum)
                    portions.push_back(quantum);
            flow.expected = portions;
            if (below(2) == 0) {
                flow.reader = csp::spawn_quantize(std::move(flow.reader), quantum);
            } else {
                csp::reader<T> r;
                csp::spawn(flow.reader.stream_to(csp::spawn_quantize(quantum, ++r)));
                flow.reader = r;
            }
        }
        return flow;
    }

    Flow chained(int depth) {
        std::vector<csp::reader<T>> readers;
        Flow whole;
        for (size_t i = below(3) + 1; i > 0; --i) {
            Flow part = make(depth - 1);
            readers.push_back(std::move(part.reader));
            whole.expected.insert(whole.expected.end(), part.expected.begin(), part.expected.end());
        }
        whole.reader = csp::spawn_chain<T>(std::move(readers));
        return whole;
    }

    // A flow twice, one after the other: the fan's outputs must not wait for each other.
    Flow fanned(int depth) {
        Flow flow = make(depth - 1);
        channel<writer<T>> inputs;
        channel<writer<T>> outputs;
        csp::spawn(chan::fanout(--outputs, ++inputs));
        std::vector<csp::reader<T>> copies;
        for (int i = 0; i < 2; ++i) {
            csp::reader<T> copy;
            +outputs << csp::spawn_buffer(++copy);
            copies.push_back(std::move(copy));
        }
        csp::spawn(flow.reader.stream_to((-inputs).read()));
        const Numbers once = flow.expected;
        flow.expected.insert(flow.expected.end(), once.begin(), once.end());
        flow.reader = csp::spawn_chain(std::move(copies));
        return flow;
    }
};

template <class T> void networks(uint64_t count, int executors) {
    const auto one = [executors](uint64_t seed) {
        running_seed = seed;
        World world;
        if (executors > 0)
            cr_assert(csp::init_runtime(executors));
        Network<T>(seed).run();
        csp::shutdown_runtime();
    };
    if (const char *text = std::getenv("MC_TEST_SEED"))
        return one(std::strtoull(text, nullptr, 10));
    if (mc_sim_active() != 0) // one, for each seed another
        return one(mc_sim_seed() + 1);
    for (uint64_t seed = 1; seed <= count * mc::testing::scale(); ++seed)
        one(seed);
}

constexpr uint64_t many = mc::testing::under_valgrind ? 20 : mc::testing::under_tsan ? 60 : 400;

} // namespace

// Goal: in single-processor mode, the model's messages in the model's order.
Test(HppNetwork, is_what_its_model_is, .timeout = 120) { networks<long>(many, 0); }
Test(HppNetwork, of_strings_is_what_its_model_is, .timeout = 120) { networks<std::string>(many, 0); }

// Goal: the same on executors, whatever their number.
Test(HppNetwork, on_one_executor, .timeout = 120) { networks<long>(many / 2, 1); }
Test(HppNetwork, on_two_executors, .timeout = 120) { networks<std::string>(many / 2, 2); }
Test(HppNetwork, on_eight_executors, .timeout = 120) { networks<long>(many / 2, 8); }
