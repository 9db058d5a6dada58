// Lines of a web server's log: Common or Combined Log Format, and at the end the time that the answer took, in microseconds.
//
//     203.0.113.7 - ann [29/Nov/2026:12:00:01 +0000] "GET /index.html?a=1 HTTP/1.1" 200 5120 "https://a.example/" "agent" 1834
//     203.0.113.7 - - [29/Nov/2026:12:00:02 +0000] "POST /login HTTP/2.0" 302 - 92114
//
// No microthreads here, and no state: parse() is called by all parsers at once.
#ifndef PIPELINE_LOG_HPP
#define PIPELINE_LOG_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pipeline {

// A longer line is malformed, whatever it says, and only so much of it is ever in memory.
constexpr std::size_t longest_line = 65536;

// What a line says. The views are parts of the line.
struct Request {
    std::string_view address;
    std::string_view method;
    std::string_view path; // without the query
    unsigned status = 0;   // 100 to 599
    uint64_t bytes = 0;
    uint64_t micros = 0;
};

// False: the line is malformed, and the request is of no use. A CR at its end belongs to the line's end; other control
// characters, which a server writes as \x.., do not occur in a line.
bool parse(std::string_view line, Request &request);

} // namespace pipeline

#endif // PIPELINE_LOG_HPP
