// mc/inspect.h
#include <mc/inspect.h>

#include "abi/call.hpp"
#include "base/guarded.hpp"
#include "fiber/overflow.hpp"
#include "inspect/snapshot.hpp"

namespace {

using mc::sched::Pool;
using mc::sched::ThreadContext;

// act(pool): null for all runtimes.
template <class Act> int32_t inspect(mc_runtime_t rt, Act act) noexcept {
    return mc::abi::with_runtime(rt, [&](ThreadContext &, Pool &pool) {
        act(rt == 0 ? nullptr : &pool);
        return MC_OK;
    });
}

} // namespace

int32_t mc_inspect_tasks(mc_runtime_t rt, int64_t min_waited_ns, mc_task_info_fn visit, void *user) noexcept {
    if (visit == nullptr || min_waited_ns < 0)
        return MC_E_INVAL;
    return inspect(rt, [&](const Pool *pool) {
        mc::inspect::for_each_task_info(pool, min_waited_ns, [&](const mc_task_info &info) {
            (void)mc::base::call_guarded("a visitor of tasks", [&] { visit(user, &info); });
        });
    });
}

int32_t mc_inspect_json(mc_runtime_t rt, int64_t min_waited_ns, mc_write_fn write, void *user) noexcept {
    if (write == nullptr || min_waited_ns < 0)
        return MC_E_INVAL;
    return inspect(rt, [&](Pool *pool) { mc::inspect::write_json(pool, min_waited_ns, write, user); });
}

int32_t mc_fault_describe(const void *addr, char *buf) noexcept { return mc::fiber::fault_describe(addr, buf); }
