// Functions of mc/machine.h and mc/bridge.h have two names each: mc_machine_runtime_X, and __mc_machine_runtime_X for compiled
// code. A file that defines the first says MC_SECOND_NAME(X) behind it.
#pragma once

#define MC_SECOND_NAME(name)                                                                                           \
    extern "C" MC_API decltype(mc_machine_runtime_##name) __mc_machine_runtime_##name                                  \
        __attribute__((alias("mc_machine_runtime_" #name)));
