#include "pipeline.hpp"

#include <mc/csp.hpp>

#include <unistd.h>

#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

namespace pipeline {
namespace {

constexpr std::size_t block_bytes = 65536;

// Microthreads that work together. join() waits until all have ended, and throws what the first of them threw. It goes after they
// have ended, so what it was declared after may be used by them.
class Crew {
public:
    Crew() = default;
    Crew(const Crew &) = delete;
    Crew &operator=(const Crew &) = delete;
    ~Crew() {
        for (csp::reader<std::exception_ptr> &member : members_)
            (void)bool(member >> nullptr);
    }

    template <class Work> void add(Work &&work) { members_.push_back(csp::spawn(std::forward<Work>(work))); }

    void join() {
        std::exception_ptr failure;
        for (csp::reader<std::exception_ptr> &member : members_)
            try {
                csp::join(std::move(member));
            } catch (...) {
                if (failure == nullptr)
                    failure = std::current_exception();
            }
        if (failure != nullptr)
            std::rethrow_exception(failure);
    }

private:
    std::vector<csp::reader<std::exception_ptr>> members_;
};

// The reader waits for the disk where it runs: an executor is blocked for as long. For files that is short; for what comes over
// a network there is mc_blocking_call.
auto read_blocks(int file, csp::writer<BatchPointer> out) {
    return [file, out = std::move(out)]() mutable {
        const csp::writer<BatchPointer> batches = std::move(out);
        Blocks blocks(file);
        for (;;) {
            auto batch = std::make_shared<Batch>();
            if (!blocks.next(batch->text) || !(batches << std::move(batch)))
                return;
        }
    };
}

// What map calls. The lines that say nothing go elsewhere, as a number.
auto parse_batch(csp::writer<uint64_t> rejects) {
    return [rejects = std::move(rejects)](BatchPointer batch) {
        const std::string_view text = batch->text;
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            Request request;
            ++batch->lines;
            if (parse(text.substr(begin, end - begin), request))
                batch->requests.push_back(request);
            begin = end + 1;
        }
        if (batch->requests.size() < batch->lines)
            rejects << batch->lines - batch->requests.size();
        return batch;
    };
}

// What where calls: it takes the requests out that the report is not about, and the batch goes on if one is left.
auto keep(const Filter &filter, uint64_t &filtered) {
    return [&filter, &filtered](BatchPointer &batch) {
        std::vector<Request> &requests = batch->requests;
        const auto kept = std::remove_if(requests.begin(), requests.end(),
                                         [&filter](const Request &request) { return !filter.takes(request); });
        filtered += static_cast<uint64_t>(requests.end() - kept);
        requests.erase(kept, requests.end());
        return !requests.empty();
    };
}

// A sink that calls count(request) for each request.
template <class Count> auto each_request(csp::reader<BatchPointer> batches, Count count) {
    return csp::chan::sink(std::move(batches), [count](const BatchPointer &batch) {
        for (const Request &request : batch->requests)
            count(request);
    });
}

} // namespace

bool Blocks::next(std::string &block) {
    block = std::exchange(rest_, std::string());
    while (!ended_) {
        const std::size_t before = block.size();
        block.resize(before + block_bytes);
        ssize_t got = 0;
        while ((got = read(file_, &block[before], block_bytes)) < 0 && errno == EINTR) {
        }
        if (got < 0)
            throw std::system_error(errno, std::generic_category());
        block.resize(before + static_cast<std::size_t>(got));
        ended_ = got == 0;
        if (skipping_) {
            const std::size_t newline = block.find('\n');
            skipping_ = newline == std::string::npos;
            block.erase(0, skipping_ ? block.size() : newline + 1);
        }
        const std::size_t last = block.rfind('\n');
        if (last != std::string::npos) {
            rest_ = block.substr(last + 1);
            block.resize(last + 1);
            return true;
        }
        if (block.size() > longest_line) {
            block.resize(longest_line + 1);
            skipping_ = true;
            return true;
        }
    }
    return !block.empty();
}

Summary summarize(int file, const Filter &filter, unsigned parsers) {
    Summary summary;
    Crew crew;
    csp::channel<BatchPointer> blocks;
    csp::channel<BatchPointer> parsed;
    csp::channel<BatchPointer> wanted;
    csp::channel<BatchPointer> tee[3];
    csp::channel<BatchPointer> totals;
    csp::channel<BatchPointer> addresses;
    csp::channel<BatchPointer> paths;
    csp::channel<uint64_t> rejects;

    // From the last stage to the first: what can not be started ends those that were by the death of its channels.
    crew.add(each_request(--tee[2], [&times = summary.times](const Request &request) { times.add(request.micros); }));
    crew.add(each_request(--paths, [&summary](const Request &r) { summary.paths.add(r.path, r.bytes); }));
    crew.add(each_request(--addresses, [&summary](const Request &r) { summary.addresses.add(r.address, r.bytes); }));
    crew.add(each_request(--totals, [&summary](const Request &request) {
        ++summary.requests;
        summary.bytes += request.bytes;
        ++summary.statuses[request.status];
    }));
    crew.add(csp::chan::tee(--tee[1], ++tee[2], ++paths));
    crew.add(csp::chan::tee(--tee[0], ++tee[1], ++addresses));
    crew.add(csp::chan::tee(--wanted, ++tee[0], ++totals));
    crew.add(csp::chan::where(--parsed, ++wanted, keep(filter, summary.filtered)));
    crew.add(csp::chan::sink(--rejects, [&summary](uint64_t lines) { summary.rejected += lines; }));
    for (unsigned i = 0; i < parsers; ++i)
        crew.add(csp::chan::map(-blocks, +parsed, parse_batch(+rejects)));
    (void)--blocks; // only the parsers have these ends from here on
    (void)++parsed;
    (void)++rejects;
    crew.add(read_blocks(file, ++blocks));
    crew.join();
    return summary;
}

} // namespace pipeline
