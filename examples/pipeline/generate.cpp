// Lines of a log that look real: few addresses and paths that occur often and many that are rare (Zipf's law), and durations that
// are about log-normal. Everything is drawn from the seed with whole numbers, so that the same seed gives the same bytes on any
// machine.
#include "pipeline.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace pipeline {
namespace {

// SplitMix64 (Steele, Lea and Flood, 2014).
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t next() {
        uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    unsigned below(unsigned n) { return static_cast<unsigned>(((next() >> 32) * n) >> 32); }
    bool percent(unsigned n) { return below(100) < n; }

private:
    uint64_t state_;
};

// Ranks from 0, each with a probability of 1 / (rank + 1), scaled.
class Zipf {
public:
    explicit Zipf(unsigned ranks) {
        for (unsigned rank = 1; rank <= ranks; ++rank)
            sums_.push_back((sums_.empty() ? 0 : sums_.back()) + (1U << 24) / rank);
    }
    unsigned draw(Random &random) const {
        const uint64_t point = random.next() % sums_.back();
        return static_cast<unsigned>(std::upper_bound(sums_.begin(), sums_.end(), point) - sums_.begin());
    }

private:
    std::vector<uint64_t> sums_;
};

// 2 to the power of a sum of twelve draws, which is about normal: half are below 2^11, about 2 ms.
uint64_t duration(Random &random) {
    constexpr unsigned one = 1U << 16;
    uint64_t sum = 0;
    for (int i = 0; i < 12; ++i)
        sum += random.below(one);
    const uint64_t exponent = sum * 22 / 12; // 0 to 22, times 2^16
    return (uint64_t{one} + exponent % one) << (exponent / one) >> 16;
}

template <std::size_t N> const char *one_of(const std::array<const char *, N> &choices, Random &random) {
    return choices[random.below(N)];
}

constexpr std::array<const char *, 10> methods = {"GET", "GET", "GET",  "GET",  "GET",
                                                  "GET", "GET", "POST", "HEAD", "PUT"};
constexpr std::array<const char *, 12> statuses = {"200", "200", "200", "200", "200", "200",
                                                   "204", "301", "304", "404", "404", "500"};
constexpr std::array<const char *, 6> sections = {"/", "/articles/", "/img/", "/api/v1/items/", "/user/", "/static/"};
constexpr std::array<const char *, 4> agents = {
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "curl/7.88.1",
    "Mozilla/5.0 (compatible; \\\"quoted\\\" robot/2.1; +https://robot.example/)", "-"};
constexpr std::array<const char *, 6> referrers = {
    "-", "-", "https://a.example/", "https://b.example/search?q=words", "https://c.example/x\\\\y", "-"};

// The fields of one line, as text, so that any can be spoiled.
struct Line {
    std::string address, time, what, status, bytes, strings, micros;

    std::string text() const {
        return address + " - - " + time + " " + what + " " + status + " " + bytes + " " + strings + micros;
    }
};

std::string spoiled(Line line, Random &random) {
    switch (random.below(9)) {
    case 0:
        return {};
    case 1:
        line.status = "2OO";
        break;
    case 2:
        line.bytes += "k";
        break;
    case 3:
        line.micros.clear();
        break;
    case 4:
        line.what.pop_back(); // the quote is not closed, or closed by another field's
        break;
    case 5:
        line.time = line.time.substr(1);
        break;
    case 6:
        line.micros += " 1";
        break;
    case 7:
        line.what = "\"-\"";
        break;
    default:
        return line.text().substr(0, line.address.size() + random.below(40));
    }
    return line.text();
}

class Generator {
public:
    Generator(uint64_t seed, unsigned malformed_percent)
        : random_(seed), addresses_(5000), paths_(2000), malformed_percent_(malformed_percent) {}

    std::string next() {
        Line line;
        const unsigned address = (addresses_.draw(random_) + 1) * 2654435761U; // spread over the network
        line.address = "10." + std::to_string(address >> 24) + "." + std::to_string(address >> 16 & 255) + "." +
                       std::to_string(address >> 8 & 255);
        line.time = time();
        const unsigned path = paths_.draw(random_);
        line.what = std::string("\"") + one_of(methods, random_) + " " + sections[path % sections.size()] +
                    std::to_string(path) + (random_.percent(20) ? "?page=" + std::to_string(random_.below(50)) : "") +
                    " HTTP/1.1\"";
        line.status = one_of(statuses, random_);
        line.bytes = line.status == "204" || line.status == "304" ? "-" : std::to_string(duration(random_) * 4);
        if (random_.percent(80)) // Combined
            line.strings = std::string("\"") + one_of(referrers, random_) + "\" \"" + one_of(agents, random_) + "\" ";
        line.micros = std::to_string(duration(random_));
        return random_.percent(malformed_percent_) ? spoiled(line, random_) : line.text();
    }

private:
    // A second goes by with every eighth line or so, and the days of November are over and over.
    std::string time() {
        seconds_ += random_.below(8) == 0 ? 1 : 0;
        char text[64];
        std::snprintf(text, sizeof text, "[%02u/Nov/2026:%02u:%02u:%02u +0000]",
                      static_cast<unsigned>(seconds_ / 86400 % 30 + 1), static_cast<unsigned>(seconds_ / 3600 % 24),
                      static_cast<unsigned>(seconds_ / 60 % 60), static_cast<unsigned>(seconds_ % 60));
        return text;
    }

    Random random_;
    Zipf addresses_;
    Zipf paths_;
    unsigned malformed_percent_;
    uint64_t seconds_ = 0;
};

bool write_all(int file, const std::string &text) {
    for (std::size_t written = 0; written < text.size();) {
        const ssize_t n = write(file, text.data() + written, text.size() - written);
        if (n < 0 && errno != EINTR)
            return false;
        written += n < 0 ? 0 : static_cast<std::size_t>(n);
    }
    return true;
}

} // namespace

bool generate(int file, uint64_t lines, uint64_t seed, unsigned malformed_percent) {
    Generator generator(seed, malformed_percent);
    std::string text;
    for (uint64_t line = 0; line < lines; ++line) {
        text += generator.next();
        text += '\n';
        if (text.size() > 65536 || line + 1 == lines) {
            if (!write_all(file, text))
                return false;
            text.clear();
        }
    }
    return true;
}

} // namespace pipeline
