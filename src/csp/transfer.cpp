#include "csp/transfer.hpp"

#include "base/log.hpp"

#include <exception>

namespace mc::csp {

void run_transfer(sched::ThreadContext &thread, Transfer transfer, void *source, void *destination) noexcept {
    ++thread.no_switch; // whatever blocked in tx would block both parties for ever
    try {
        transfer(source, destination);
    } catch (const std::exception &error) {
        base::log(MC_LOG_ERROR, MC_E_CRASHED, "tx threw an exception: %s", error.what());
    } catch (...) {
        base::log(MC_LOG_ERROR, MC_E_CRASHED, "tx threw an exception");
    }
    --thread.no_switch;
}

} // namespace mc::csp
