// What is said: a line that goes on while transfers run, on a terminal only, and the report at the end.
#pragma once

#include "ledger.hpp"

namespace ledger {

// False: money was made or lost, or a transfer has not the outcome that was counted.
bool run_and_report(Bank &bank, bool with_faults);

} // namespace ledger
