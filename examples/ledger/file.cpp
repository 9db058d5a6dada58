// Files of transfers: a header, then a line for each. Numbers are decimal digits and nothing else. A line may end in CR LF, and
// the last one without either.
#include "ledger.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace ledger {
namespace {

constexpr std::string_view header = "from,to,amount";

std::optional<std::string> read_all(const char *path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return std::nullopt;
    std::string text;
    std::size_t size = 0;
    ssize_t n = 0;
    do {
        if (text.size() - size < 65536)
            text.resize(std::max<std::size_t>(2 * text.size(), 1 << 20));
        n = read(file, text.data() + size, text.size() - size);
        size += n > 0 ? static_cast<std::size_t>(n) : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));
    const int error = errno;
    close(file);
    errno = error;
    if (n < 0)
        return std::nullopt;
    text.resize(size);
    return text;
}

// What is left of a line.
class Fields {
public:
    explicit Fields(std::string_view line) : at_(line.data()), end_(line.data() + line.size()) {}

    // Digits up to a comma, or to the end of the line. Null, or what is wrong.
    const char *number(bool last, uint64_t *value) {
        uint64_t sum = 0;
        const char *const first = at_;
        for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
            const auto digit = static_cast<uint64_t>(*at_ - '0');
            if (sum > (UINT64_MAX - digit) / 10)
                return "a number above 2^64 - 1";
            sum = 10 * sum + digit;
        }
        if (at_ == first || (last ? at_ != end_ : at_ == end_ || *at_ != ','))
            return "no line of the form FROM,TO,AMOUNT, with numbers from 0 on";
        at_ += last ? 0 : 1;
        *value = sum;
        return nullptr;
    }

private:
    const char *at_, *end_;
};

const char *read_line(std::string_view text, Line *line) {
    uint64_t from = 0, to = 0, amount = 0;
    Fields fields(text);
    const char *wrong = fields.number(false, &from);
    if (wrong == nullptr)
        wrong = fields.number(false, &to);
    if (wrong == nullptr)
        wrong = fields.number(true, &amount);
    if (wrong == nullptr && (from >= accounts || to >= accounts))
        wrong = "an account above 999";
    *line = {static_cast<uint32_t>(std::min<uint64_t>(amount, most_amount)), static_cast<uint16_t>(from),
             static_cast<uint16_t>(to)};
    return wrong;
}

} // namespace

std::optional<std::vector<Line>> read_file(const char *path, std::string *error) {
    const std::optional<std::string> text = read_all(path);
    if (!text) {
        *error = std::string(path) + ": " + std::strerror(errno);
        return std::nullopt;
    }
    std::vector<Line> lines;
    lines.reserve(static_cast<std::size_t>(std::count(text->begin(), text->end(), '\n')));
    std::string_view rest = *text;
    uint64_t number = 0;
    const char *wrong = nullptr;
    do {
        const std::size_t length = std::min(rest.find('\n'), rest.size());
        std::string_view line = rest.substr(0, length);
        rest.remove_prefix(std::min(length + 1, rest.size()));
        if (!line.empty() && line.back() == '\r')
            line.remove_suffix(1);
        if (number++ == 0)
            wrong = line == header ? nullptr : "the header is not from,to,amount";
        else if (lines.size() == most_lines)
            wrong = "too many lines";
        else
            wrong = read_line(line, &lines.emplace_back());
    } while (wrong == nullptr && !rest.empty());
    if (wrong == nullptr)
        return lines;
    *error = std::string(path) + ":" + std::to_string(number) + ": " + wrong;
    return std::nullopt;
}

bool write_file(const char *path, uint64_t lines, uint64_t seed) {
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return false;
    const Faults random{true, seed}; // as good for this
    std::string text(header);
    text += '\n';
    bool good = true;
    for (uint64_t line = 0; good && (line < lines || !text.empty()); ++line) {
        if (line < lines) {
            const uint64_t drawn = random.random(line);
            const uint64_t most = (drawn >> 20) % 50 == 0 ? 40000 : 1000;
            text += std::to_string(drawn % 1000) + ',' + std::to_string((drawn >> 10) % 1000) + ',' +
                    std::to_string((drawn >> 32) % most) + '\n';
        }
        if (text.size() < 65536 && line < lines)
            continue;
        for (std::size_t written = 0; good && written < text.size();) {
            const ssize_t n = write(file, text.data() + written, text.size() - written);
            good = n >= 0 || errno == EINTR;
            written += n > 0 ? static_cast<std::size_t>(n) : 0;
        }
        text.clear();
    }
    const int error = errno;
    const bool closed = close(file) == 0;
    if (!good)
        errno = error;
    return good && closed;
}

} // namespace ledger
