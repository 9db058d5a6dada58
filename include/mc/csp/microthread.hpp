// mc/csp/microthread.hpp: microthreads, channels, and the choice between actions; all that is not a combinator. C++17.
#ifndef MC_CSP_MICROTHREAD_HPP
#define MC_CSP_MICROTHREAD_HPP

#include <mc/csp/action.hpp>
#include <mc/csp/endpoint.hpp>
#include <mc/csp/spawn.hpp>

// Programs written for this header get these from it.
#include <cassert>
#include <initializer_list>
#include <tuple>

#endif // MC_CSP_MICROTHREAD_HPP
