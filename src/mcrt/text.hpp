// Small things with text. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mc::mcrt {

// What any reader takes, of JSON, of XML and a terminal: UTF-8 without control characters. What is neither becomes U+FFFD.
// With lines: new lines and tabs stay.
enum class Lines { none, keep };
std::string clean(std::string_view text, Lines lines = Lines::none);

// What JSON takes: only what is no UTF-8 becomes U+FFFD.
std::string utf8(std::string_view text);

// Not more than so many characters, the last of them an ellipsis when something was cut off. text is clean.
std::string shortened(const std::string &text, size_t most);
// The same, with the ellipsis in the middle: names that begin alike differ at their ends.
std::string shortened_inside(const std::string &text, size_t most);
// Lines of at most so many characters, above 0, broken at blanks where there are any. text is clean and one line.
std::vector<std::string> wrapped(const std::string &text, size_t most);
// How many characters a terminal shows.
size_t width_of(std::string_view text);

// As a word of a shell's.
std::string quoted(const std::string &word);
std::string quoted(const std::vector<std::string> &words);

// Each number, also a hexadecimal one, is "#": what two runs of one fault say alike.
std::string without_numbers(std::string_view text);

// "1 choice", "2 choices", "1,000 choices".
std::string counted(uint64_t number, std::string_view noun);
std::string grouped(uint64_t number);

std::string seconds(double value); // "1.2 s"

} // namespace mc::mcrt
