#include "base/status.hpp"

#include <mc/base.h>

namespace mc::base {

const char *status_text(int32_t code) noexcept {
    switch (code) {
    case MC_OK:
        return "ok";
#define MC_STATUS_TEXT(name, value, text)                                                                              \
    case value:                                                                                                        \
        return text;
        MC_STATUS_TABLE(MC_STATUS_TEXT)
#undef MC_STATUS_TEXT
    default:
        return "unknown status";
    }
}

const char *status_name(int32_t code) noexcept {
    switch (code) {
    case MC_OK:
        return "MC_OK";
#define MC_STATUS_NAME(name, value, text)                                                                              \
    case value:                                                                                                        \
        return "MC_E_" #name;
        MC_STATUS_TABLE(MC_STATUS_NAME)
#undef MC_STATUS_NAME
    default:
        return nullptr;
    }
}

} // namespace mc::base
