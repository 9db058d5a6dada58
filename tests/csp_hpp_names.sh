#!/usr/bin/env bash
# A program written for headers <csp/X.h> compiles as C++17 when each of those says #include <mc/csp/X.hpp>, and does what it did.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/csp"
for name in microthread timer ringbuffer blackhole buffer chain count deaf enumerate fanout killswitch latch map mute quantize rpc sink tee where; do
    echo "#include <mc/csp/$name.hpp>" >"$work/csp/$name.h"
done

cat >"$work/program.cpp" <<'TEXT'
#include <csp/blackhole.h>
#include <csp/buffer.h>
#include <csp/chain.h>
#include <csp/count.h>
#include <csp/deaf.h>
#include <csp/enumerate.h>
#include <csp/fanout.h>
#include <csp/killswitch.h>
#include <csp/latch.h>
#include <csp/map.h>
#include <csp/microthread.h>
#include <csp/mute.h>
#include <csp/quantize.h>
#include <csp/ringbuffer.h>
#include <csp/rpc.h>
#include <csp/sink.h>
#include <csp/tee.h>
#include <csp/timer.h>
#include <csp/where.h>

#include <chrono>
#include <string>

using namespace csp;
using namespace csp::chan;

int csp__internal__channel_count(int endpt); // as programs declare it

// The handler is a writer; it is put back by who borrowed it.
class Borrowed {
public:
    explicit Borrowed(writer<std::exception_ptr> w) : former_(std::move(w)) { std::swap(csp::global_exception_handler, former_); }
    ~Borrowed() { std::swap(csp::global_exception_handler, former_); }

private:
    writer<std::exception_ptr> former_;
};

// What a test's harness does with what it is given.
template <class F> void run(F && f) {
    csp::spawn([f = std::move(f)] { f(); });
}

static void one_processor() {
    reader<std::exception_ptr> thrown;
    {
        Borrowed borrowed(++thrown);
        run([] { throw 5; });
        std::exception_ptr ex;
        assert(thrown >> ex);
    }
    assert(!(thrown >> nullptr));
    thrown = {};
    csp::global_exception_handler = ++csp::channel<std::exception_ptr>{};

    channel<int> source, out, side;
    run(count(++source, 1, 6));
    run(tee(-source, +out, +side));
    source.release();
    int total = 0;
    run([r = --side, &total] { for (int n; r >> n;) total += n; });
    side.release();
    run((-out).stream_to(spawn_sink<int>([&](int n) { total += n; })));
    out.release();
    while (csp_run()) { }
    assert(total == 30);

    channel<std::pair<std::tuple<int, int>, writer<int>>> calls;
    run(rpc_server(--calls, [](int a, int b) { return a * b; }));
    auto multiply = rpc_client(++calls);
    assert(multiply(std::make_tuple(6, 7)) == 42);

    channel<int> quiet;
    int n = 0;
    auto timeout = csp::after(std::chrono::milliseconds(1));
    assert(alt(-quiet >> n, timeout >> csp::poke) == 2);
    reader<> alarm = csp::after(csp::clock::duration(1));
    assert(alarm >> poke);
    auto ticker = csp::tick(std::chrono::milliseconds(1));
    csp::clock::time_point when = ticker.read();
    assert(when <= csp::clock::now());
    ticker = {};
    quiet.release();

    auto producer = spawn_producer<int>([](auto & w) { w << 8; });
    assert(producer.read() == 8);
    std::array<reader<int>, 1> one{{producer}};
    reader<int> chained;
    run(chain<int>(one, ++chained));
    reader<int> letters;
    run(enumerate<int>(std::string("a"), ++letters));
    assert(letters.read() == 'a');
    letters = {};
    assert(!(chained >> n));
    detail::RingBuffer<int> ring = 2;
    ring.push(1);
    assert(*detail::RingBuffer<int>::iterator(&ring, 0) == 1);

    channel<int> raw;
    csp::spawn([r = --raw, &n] { r >> n; });
    int message = 9;
    { action a(csp_chanop{csp_wait((+raw).internal_writer()), &message}, nullptr); }
    assert(n == 9);
    raw = {};
    csp::global_exception_handler = {};
}

int main() {
    one_processor();
    csp::schedule();
    assert(csp__internal__channel_count(0) == 0 && csp__internal__channel_count(1) == 0);
    csp::init_runtime(2);
    global_exception_handler = spawn_consumer<std::exception_ptr>([](auto &&r) {
        for (std::exception_ptr ex; r >> ex;) {
        }
    });

    channel<int> ch;
    writer<int> w = ++ch;
    reader<int> r = --ch;
    spawn([w = std::move(w)] {
        for (int i = 0; i < 20 && w << i; ++i) {
        }
    });
    r = spawn_where(std::move(r), [](int n) { return n % 2 == 0; });
    r = spawn_map<int>(std::move(r), [](int n) { return n / 2; });
    r = spawn_buffer(std::move(r), 4);
    int sum = 0;
    for (int n; r >> n;)
        sum += n;
    assert(sum == 45);

    auto [a, b] = std::make_pair(spawn_count(0, 3), spawn_enumerate<int>({7, 8}));
    std::vector<reader<int>> readers{a, b};
    a = {};
    b = {};
    std::string text;
    for (auto n : spawn_chain<int>(std::move(readers)))
        text += std::to_string(n);
    assert(text == "01278");

    reader<> never;
    writer<> hold = ++never;
    channel<std::string> words;
    action actions[] = {-words >> text, ~never};
    spawn([hold = std::move(hold)] { csp::sleep(std::chrono::milliseconds(1)); });
    assert(alt(actions) == -2);
    std::vector<action> list = action_list(-words >> text, ~skip);
    assert(prialt(list) == -2);
    global_exception_handler = {};
    never = {};
    r = {};
    schedule();
    shutdown_runtime();
    assert(csp__internal__channel_count(0) == 1 && csp__internal__channel_count(1) == 1); // words
    return 0;
}
TEXT

for standard in c++17 c++20 c++2b; do
    g++ -std=$standard -Wall -Wextra -Wpedantic -Wshadow -Werror -O1 -I "$work" -I "$MCRT_SOURCE_DIR/include" "$work/program.cpp" \
        "$MCRT_LIBRARY" -Wl,-rpath,"$(dirname "$MCRT_LIBRARY")" -o "$work/program"
    "$work/program"
    echo "ok   $standard"
done
