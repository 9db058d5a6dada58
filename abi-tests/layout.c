/* The layouts hold in C, the macros yield what compiled programs contain, and the library is the headers'. */
#include "layout.h"

#include <string.h>

#include "check.h"

int main(void) {
    char channel[64];
    uintptr_t aligned = ((uintptr_t)channel + 15) & ~(uintptr_t)15;
    CHECK(layout_macros((csp_writer)aligned, (csp_reader)(aligned | 1)));

    /* An operation that is started is all zeros: memory that is zeroed serves as well. */
    mc_op op = MC_OP_INIT;
    static const mc_op zeroed;
    CHECK(memcmp(&op, &zeroed, sizeof op) == 0);

    CHECK_EQ(mc_abi_version(), MC_VERSION_MAJOR << 16 | MC_VERSION_MINOR);
    CHECK_EQ(mc_check_abi(MC_VERSION_MAJOR, MC_VERSION_MINOR), MC_OK);
    CHECK_EQ(mc_check_abi(MC_VERSION_MAJOR, MC_VERSION_MINOR + 1), MC_E_VERSION);
    CHECK_EQ(mc_check_abi(MC_VERSION_MAJOR + 1, MC_VERSION_MINOR), MC_E_VERSION);
    CHECK_EQ(mc_check_abi(UINT32_MAX, UINT32_MAX), MC_E_VERSION);

    /* Every code has its text and its name, none is the negative form of an arm, and nothing else has any. */
#define SAYS(name, code, text)                                                                                         \
    CHECK(strcmp(mc_strerror(MC_E_##name), text) == 0);                                                                \
    CHECK(strcmp(mc_status_name(code), "MC_E_" #name) == 0);                                                           \
    CHECK(code < -65536 - 1);
    MC_STATUS_TABLE(SAYS)
#undef SAYS
    CHECK(strcmp(mc_strerror(MC_OK), "ok") == 0);
    CHECK(strcmp(mc_status_name(MC_OK), "MC_OK") == 0);
    static const int32_t unknown[] = {1, -1, -100000, MC_STATUS_LAST_ - 1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        CHECK(strcmp(mc_strerror(unknown[i]), "unknown status") == 0);
        CHECK(mc_status_name(unknown[i]) == NULL);
    }
    return 0;
}
