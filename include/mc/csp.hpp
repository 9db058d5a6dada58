// mc/csp.hpp: microthreads, channels and combinators for C++17, over the C functions of mc/csp.h and nothing else. All inline.
//
// Programs written for headers <csp/X.h> of this interface find each as <mc/csp/X.hpp>.
//
//     #include <mc/csp.hpp>
//     int main() {
//         auto numbers = csp::spawn_count(0, 10);
//         auto odd = csp::spawn_where(std::move(numbers), [](int n) { return n % 2 != 0; });
//         for (int n : csp::spawn_map(std::move(odd), [](int n) { return n * n; }))
//             std::printf("%d\n", n);
//     }
#ifndef MC_CSP_HPP
#define MC_CSP_HPP

#include <mc/csp/action.hpp>
#include <mc/csp/blackhole.hpp>
#include <mc/csp/buffer.hpp>
#include <mc/csp/chain.hpp>
#include <mc/csp/count.hpp>
#include <mc/csp/deaf.hpp>
#include <mc/csp/endpoint.hpp>
#include <mc/csp/enumerate.hpp>
#include <mc/csp/fanout.hpp>
#include <mc/csp/killswitch.hpp>
#include <mc/csp/latch.hpp>
#include <mc/csp/map.hpp>
#include <mc/csp/microthread.hpp>
#include <mc/csp/mute.hpp>
#include <mc/csp/quantize.hpp>
#include <mc/csp/ringbuffer.hpp>
#include <mc/csp/rpc.hpp>
#include <mc/csp/sink.hpp>
#include <mc/csp/spawn.hpp>
#include <mc/csp/tee.hpp>
#include <mc/csp/timer.hpp>
#include <mc/csp/where.hpp>

#endif // MC_CSP_HPP
