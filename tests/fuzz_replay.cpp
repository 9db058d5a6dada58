// The target chanop without libFuzzer.
#include "fuzz/chanop_fuzz.cpp"
#include "fuzz/replay.hpp"

int main(int argc, char **argv) { return replay::run(argc, argv, "chanop", 20'000); }
