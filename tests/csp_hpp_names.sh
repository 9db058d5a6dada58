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

#include <cassert>
#include <chrono>
#include <string>

using namespace csp;
using namespace csp::chan;

int main() {
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
