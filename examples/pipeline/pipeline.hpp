// The pipeline: what goes from stage to stage, and what comes out in the end.
//
//     reader ──batches──▶ parsers ──batches──▶ where ──batches──▶ tee ──▶ tee ──▶ tee ──▶ sink: times
//                            │                                     │       │       │
//                            ╰──rejects──▶ sink            sinks: totals  addresses  paths
//
// Each stage is a microthread, but for the parsers, which are as many as can run at a time: they take from one reader and
// write to one writer. Every channel is without a buffer, so that in memory there is about a batch for each microthread, however
// long the log is, and beside them what the sinks count: an entry for each address, each path and each duration that is unlike
// the others.
//
// Stages end by the death of channels: at the end of the file from the left to the right; and when one fails, in both
// directions from there.
#ifndef PIPELINE_PIPELINE_HPP
#define PIPELINE_PIPELINE_HPP

#include "log.hpp"
#include "tally.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline {

// Some lines of the log, and what they say. Filled by one stage after another; from the first tee on several look at it at a
// time, and nobody changes it any more.
struct Batch {
    std::string text; // whole lines; the last of the log may lack its newline
    uint64_t lines = 0;
    std::vector<Request> requests; // they point into text
};
using BatchPointer = std::shared_ptr<Batch>;

// Which requests the report is about.
struct Filter {
    unsigned status_class = 0; // 1 to 5; 0: all
    std::string method;        // empty: all

    bool takes(const Request &request) const {
        return (status_class == 0 || request.status / 100 == status_class) &&
               (method.empty() || request.method == method);
    }
};

// Each member is written by one microthread, and read when all have ended.
struct Summary {
    uint64_t rejected = 0;
    uint64_t filtered = 0;
    uint64_t requests = 0;
    uint64_t bytes = 0;
    std::map<unsigned, uint64_t> statuses;
    Talkers addresses;
    Talkers paths;
    Histogram times;
};

// Runs the log in the open file through the pipeline. Throws what a stage threw: std::system_error for a file that can not be
// read, std::bad_alloc, csp::microthread_error.
Summary summarize(int file, const Filter &filter, unsigned parsers);

void print(const Summary &summary, std::size_t top);

// The blocks of whole lines in a file, one after another.
class Blocks {
public:
    explicit Blocks(int file) : file_(file) {}
    // False at the end. Of a line that is longer than longest_line only that and one byte more is given, as a block.
    bool next(std::string &block);

private:
    int file_;
    bool ended_ = false;
    bool skipping_ = false; // the rest of a line that was too long
    std::string rest_;      // the beginning of the next block
};

// Writes that many lines to the file, drawn from the seed, of which about so many percent are malformed. False: errno says why
// not.
bool generate(int file, uint64_t lines, uint64_t seed, unsigned malformed_percent);

} // namespace pipeline

#endif // PIPELINE_PIPELINE_HPP
