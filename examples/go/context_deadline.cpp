#include <mc/csp.hpp>

#include <cstdio>

int main() {
    mc_scope_t scope = 0;
    mc_scope_create(mc_after(20 * MC_MS), &scope);
    mc_scope_enter(scope); // bounds every wait of this task until it leaves, those of functions that it calls too
    csp::channel<int> answers;
    int answer = 0;
    int32_t cause = 0;
    if (-answers >> answer)
        std::printf("answer %d\n", answer);
    else if (mc_scope_cause(scope, &cause) == MC_OK && cause == MC_E_TIMEDOUT)
        std::puts("deadline exceeded");
    mc_scope_leave();
    mc_scope_destroy(scope);
}
