#include "csp/transfer.hpp"

#include "base/guarded.hpp"

namespace mc::csp {

void run_transfer(sched::ThreadContext &thread, Transfer transfer, void *source, void *destination) noexcept {
    ++thread.no_switch; // whatever blocked in tx would block both parties for ever
    base::call_guarded("tx", [=] { transfer(source, destination); });
    --thread.no_switch;
}

} // namespace mc::csp
