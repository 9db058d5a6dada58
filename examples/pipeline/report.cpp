#include "pipeline.hpp"

#include <cinttypes>
#include <cstdio>

namespace pipeline {
namespace {

void print(const char *what, const Talkers &talkers, std::size_t top) {
    for (const Talkers::Talker *talker : talkers.top(top))
        std::printf("%s %s %" PRIu64 " %" PRIu64 "\n", what, talker->name.c_str(), talker->requests, talker->bytes);
}

} // namespace

void print(const Summary &summary, std::size_t top) {
    std::printf("lines %" PRIu64 "\n", summary.rejected + summary.filtered + summary.requests);
    std::printf("rejected %" PRIu64 "\n", summary.rejected);
    std::printf("filtered %" PRIu64 "\n", summary.filtered);
    std::printf("requests %" PRIu64 "\n", summary.requests);
    std::printf("bytes %" PRIu64 "\n", summary.bytes);
    for (const auto &[status, requests] : summary.statuses)
        std::printf("status %u %" PRIu64 "\n", status, requests);
    if (summary.times.count() != 0) {
        for (const unsigned percent : {50U, 90U, 99U})
            std::printf("micros p%u %" PRIu64 "\n", percent, summary.times.percentile(percent));
        std::printf("micros max %" PRIu64 "\n", summary.times.percentile(100));
    }
    print("address", summary.addresses, top);
    print("path", summary.paths, top);
}

} // namespace pipeline
