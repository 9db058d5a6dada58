// The target bridge without libFuzzer.
#include "fuzz/bridge_fuzz.cpp"
#include "fuzz/replay.hpp"

int main(int argc, char **argv) { return replay::run(argc, argv, "bridge", 20'000, 2048); }
