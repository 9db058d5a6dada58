#include "log.hpp"

#include <algorithm>

namespace pipeline {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

// The part of a line that has not been read. Each step takes something off its front, or says that it is not there.
class Rest {
public:
    explicit Rest(std::string_view text) : text_(text) {}

    bool at_end() const { return text_.empty(); }

    bool skip(char c) {
        if (text_.empty() || text_.front() != c)
            return false;
        text_.remove_prefix(1);
        return true;
    }

    // Up to the next blank, and not nothing.
    bool word(std::string_view &result) {
        result = text_.substr(0, text_.find(' '));
        text_.remove_prefix(result.size());
        return !result.empty();
    }

    // At most 15 digits: sums of such numbers stay exact for a long time, also in programs that compute in doubles.
    bool number(uint64_t &result) {
        std::size_t digits = 0;
        result = 0;
        for (; digits < text_.size() && is_digit(text_[digits]); ++digits) {
            if (digits == 15)
                return false;
            result = result * 10 + static_cast<uint64_t>(text_[digits] - '0');
        }
        text_.remove_prefix(digits);
        return digits != 0;
    }

    // What stands between quotes, in which a backslash keeps its meaning from the next character.
    bool quoted(std::string_view &result) {
        if (text_.empty() || text_.front() != '"')
            return false;
        for (std::size_t i = 1; i < text_.size(); ++i) {
            if (text_[i] == '"') {
                result = text_.substr(1, i - 1);
                text_.remove_prefix(i + 1);
                return true;
            }
            if (text_[i] == '\\')
                ++i;
        }
        return false;
    }

    // [day/month/year:hour:minute:second zone], by its shape.
    bool time() {
        static constexpr std::string_view shape = "[00/Aaa/0000:00:00:00 +0000]";
        if (text_.size() < shape.size())
            return false;
        for (std::size_t i = 0; i < shape.size(); ++i) {
            const char c = text_[i];
            const bool fits = shape[i] == '0'   ? is_digit(c)
                              : shape[i] == 'A' ? c >= 'A' && c <= 'Z'
                              : shape[i] == 'a' ? c >= 'a' && c <= 'z'
                              : shape[i] == '+' ? c == '+' || c == '-'
                                                : c == shape[i];
            if (!fits)
                return false;
        }
        text_.remove_prefix(shape.size());
        return true;
    }

private:
    std::string_view text_;
};

// Three digits, from 100 to 599.
bool parse_status(std::string_view text, unsigned &status) {
    if (text.size() != 3 || text[0] < '1' || text[0] > '5' || !is_digit(text[1]) || !is_digit(text[2]))
        return false;
    status = static_cast<unsigned>((text[0] - '0') * 100 + (text[1] - '0') * 10 + (text[2] - '0'));
    return true;
}

// METHOD TARGET HTTP/0.0
bool parse_what(std::string_view text, Request &request) {
    Rest rest(text);
    std::string_view target;
    std::string_view protocol;
    if (!rest.word(request.method) || !rest.skip(' ') || !rest.word(target) || !rest.skip(' ') ||
        !rest.word(protocol) || !rest.at_end())
        return false;
    request.path = target.substr(0, target.find('?'));
    return std::all_of(request.method.begin(), request.method.end(), [](char c) { return c >= 'A' && c <= 'Z'; }) &&
           !request.path.empty() && protocol.size() == 8 && protocol.substr(0, 5) == "HTTP/" && is_digit(protocol[5]) &&
           protocol[6] == '.' && is_digit(protocol[7]);
}

} // namespace

bool parse(std::string_view line, Request &request) {
    if (line.size() > longest_line)
        return false;
    if (!line.empty() && line.back() == '\r')
        line.remove_suffix(1);
    if (std::any_of(line.begin(), line.end(), is_control))
        return false;
    Rest rest(line);
    std::string_view ignored;
    std::string_view what;
    std::string_view status;
    if (!rest.word(request.address) || !rest.skip(' ') || !rest.word(ignored) || !rest.skip(' ') ||
        !rest.word(ignored) || !rest.skip(' ') || !rest.time() || !rest.skip(' ') || !rest.quoted(what) ||
        !rest.skip(' ') || !rest.word(status) || !rest.skip(' '))
        return false;
    request.bytes = 0; // "-" says that there were none
    if (!(rest.skip('-') || rest.number(request.bytes)) || !rest.skip(' '))
        return false;
    if (rest.quoted(ignored) && (!rest.skip(' ') || !rest.quoted(ignored) || !rest.skip(' ')))
        return false;
    return rest.number(request.micros) && rest.at_end() && parse_status(status, request.status) &&
           parse_what(what, request);
}

} // namespace pipeline
