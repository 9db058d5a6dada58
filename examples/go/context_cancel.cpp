#include <mc/csp.hpp>

#include <cstdio>

void count(mc_scope_t scope, const csp::writer<int> &out) {
    mc_scope_enter(scope);
    for (int n = 1; out << n; ++n) { // until there is no reader, or the scope is cancelled
    }
    mc_scope_leave();
}

int main() {
    mc_scope_t scope = 0;
    mc_scope_create(MC_FOREVER, &scope);
    csp::channel<int> numbers;
    auto counter = csp::spawn([scope, out = +numbers] { count(scope, out); });
    std::printf("%d\n", (-numbers).read());
    std::printf("%d\n", (-numbers).read());
    mc_scope_cancel(scope, 0);
    csp::join(std::move(counter));
    int32_t cause = 0;
    mc_scope_cause(scope, &cause);
    if (cause == MC_E_CANCELED)
        std::puts("canceled");
    mc_scope_destroy(scope);
}
