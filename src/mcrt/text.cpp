#include "mcrt/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace mc::mcrt {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd"; // U+FFFD

bool continues(unsigned char byte) { return (byte & 0xc0) == 0x80; }

// The length of the sequence that text begins with, or 0: it is none that RFC 3629 allows.
size_t utf8_sequence(std::string_view text) {
    const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned first = at(0);
    const size_t length = first < 0x80   ? 1
                          : first < 0xc2 ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf5 ? 4
                                         : 0;
    if (length > text.size())
        return 0;
    for (size_t i = 1; i < length; ++i)
        if (!continues(at(i)))
            return 0;
    if (length < 3)
        return length;
    const unsigned second = at(1);
    const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool outside = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
    return overlong || outside ? 0 : length;
}

// The same; 0 also for what is not to be shown.
size_t sequence(std::string_view text) {
    const size_t length = utf8_sequence(text);
    const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned first = at(0);
    const bool control = first < 0x20 || first == 0x7f;
    const bool further = length == 2 && first == 0xc2 && at(1) < 0xa0; // C1, which XML discourages and terminals obey
    const bool nothing =
        length == 3 && first == 0xef && at(1) == 0xbf && at(2) >= 0xbe; // U+FFFE, U+FFFF: XML forbids them
    return control || further || nothing ? 0 : length;
}

// As bash, ksh and zsh read it, and POSIX since 2024.
std::string quoted_bytes(std::string_view word) {
    std::string out = "$'";
    while (!word.empty()) {
        const size_t length = sequence(word);
        char byte[8];
        std::snprintf(byte, sizeof byte, "\\x%02x", static_cast<unsigned char>(word[0]));
        if (length == 0)
            out += byte;
        else
            out += (word[0] == '\'' || word[0] == '\\' ? "\\" : "") + std::string(word.substr(0, length));
        word.remove_prefix(std::max<size_t>(length, 1));
    }
    return out + "'";
}

bool is_plain(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./:,@%+=").find(c) != std::string_view::npos;
}

} // namespace

std::string utf8(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const size_t length = utf8_sequence(text);
        out += length == 0 ? replacement : text.substr(0, length);
        text.remove_prefix(std::max<size_t>(length, 1));
    }
    return out;
}

std::string clean(std::string_view text, Lines lines) {
    std::string out;
    while (!text.empty()) {
        const bool kept = lines == Lines::keep && (text[0] == '\n' || text[0] == '\t');
        const size_t length = kept ? 1 : sequence(text);
        out += length == 0 ? replacement : text.substr(0, length);
        text.remove_prefix(std::max<size_t>(length, 1));
    }
    return out;
}

size_t width_of(std::string_view text) {
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return !continues(static_cast<unsigned char>(c)); }));
}

namespace {

constexpr const char *ellipsis = "\xe2\x80\xa6";

// How many bytes so many characters from `begin` on take.
size_t bytes_of(const std::string &text, size_t begin, size_t characters) {
    size_t end = begin;
    while (end < text.size() && (continues(static_cast<unsigned char>(text[end])) || characters-- > 0))
        ++end;
    return end - begin;
}

} // namespace

std::string shortened(const std::string &text, size_t most) {
    if (width_of(text) <= most)
        return text;
    return most == 0 ? "" : text.substr(0, bytes_of(text, 0, most - 1)) + ellipsis;
}

std::string shortened_inside(const std::string &text, size_t most) {
    const size_t width = width_of(text);
    if (width <= most)
        return text;
    if (most == 0)
        return "";
    const size_t first = most / 2; // and the ellipsis, and what is left at the end
    const size_t left_out = width - (most - 1 - first);
    return text.substr(0, bytes_of(text, 0, first)) + ellipsis + text.substr(bytes_of(text, 0, left_out));
}

std::vector<std::string> wrapped(const std::string &text, size_t most) {
    std::vector<std::string> lines;
    size_t begin = 0;
    for (;;) {
        size_t bytes = bytes_of(text, begin, most);
        if (begin + bytes == text.size())
            break;
        const size_t blank = text.rfind(' ', begin + bytes); // may be the one behind the line
        const bool breaks = blank != std::string::npos && blank > begin;
        if (breaks)
            bytes = blank - begin;
        lines.push_back(text.substr(begin, bytes));
        begin += bytes + (breaks ? 1 : 0);
    }
    lines.push_back(text.substr(begin));
    return lines;
}

std::string quoted(const std::string &word) {
    if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain))
        return word;
    if (clean(word) != word)
        return quoted_bytes(word);
    std::string out = "'";
    for (const char c : word)
        out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

std::string quoted(const std::vector<std::string> &words) {
    std::string out;
    for (const std::string &word : words)
        out += (out.empty() ? "" : " ") + quoted(word);
    return out;
}

std::string without_numbers(std::string_view text) {
    const auto digit = [&](size_t i) {
        return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    };
    const auto hex = [&](size_t i) {
        return i < text.size() && std::isxdigit(static_cast<unsigned char>(text[i])) != 0;
    };
    std::string out;
    for (size_t i = 0; i < text.size();) {
        if (!digit(i)) {
            out += text[i++];
            continue;
        }
        out += '#';
        if (text[i] == '0' && i + 1 < text.size() && text[i + 1] == 'x' && hex(i + 2))
            for (i += 2; hex(i);)
                ++i;
        else
            while (digit(i))
                ++i;
    }
    return out;
}

std::string grouped(uint64_t number) {
    std::string text = std::to_string(number);
    for (size_t at = text.size(); at > 3;)
        text.insert(at -= 3, ",");
    return text;
}

std::string counted(uint64_t number, std::string_view noun) {
    return grouped(number) + " " + std::string(noun) + (number == 1 ? "" : "s");
}

std::string seconds(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", value);
    return text;
}

} // namespace mc::mcrt
