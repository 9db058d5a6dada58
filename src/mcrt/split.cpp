#include "mcrt/arguments.hpp"

namespace mc::mcrt {
namespace {

bool looks_like_option(const std::string &argument) { return argument.size() > 1 && argument[0] == '-'; }

} // namespace

// Before the program, what is no option of ours is left to the parser, which complains. After it only long options are looked at:
// programs have short ones of their own.
Split split(const std::vector<std::string> &arguments, const std::function<int(const std::string &name)> &values) {
    Split parts;
    for (size_t i = 0; i < arguments.size(); ++i) {
        const std::string &argument = arguments[i];
        if (argument == "--") {
            parts.program.insert(parts.program.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                 arguments.end());
            break;
        }
        const size_t equals = argument.find('=');
        const bool may_be_own = parts.program.empty() ? looks_like_option(argument) : argument.starts_with("--");
        const int takes = may_be_own ? values(argument.substr(0, equals)) : -1;
        if (takes < 0 && !(may_be_own && parts.program.empty())) {
            parts.program.push_back(argument);
            continue;
        }
        parts.own.push_back(argument);
        if (takes == 1 && equals == std::string::npos && i + 1 < arguments.size())
            parts.own.push_back(arguments[++i]);
    }
    return parts;
}

} // namespace mc::mcrt
