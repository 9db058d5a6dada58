// The target descriptor without libFuzzer.
#include "fuzz/descriptor_fuzz.cpp"
#include "fuzz/replay.hpp"

int main(int argc, char **argv) { return replay::run(argc, argv, "descriptor", 20'000); }
