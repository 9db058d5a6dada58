// A machine's files below a directory of its own, for what reads /proc and /sys: tests alone. Its user's thread.
#pragma once

#include "testing/test.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace mc::testing {

class Root {
public:
    Root() {
        std::string name = (std::filesystem::temp_directory_path() / "mcrt_root_XXXXXX").string();
        cr_assert_not_null(mkdtemp(name.data()));
        path_ = name;
    }
    Root(const Root &) = delete;
    Root &operator=(const Root &) = delete;
    ~Root() { std::filesystem::remove_all(path_); }

    // Replaces one of that name.
    Root &file(const std::string &name, const std::string &text) {
        const std::filesystem::path path = path_ + name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
        return *this;
    }
    const char *path() const { return path_.c_str(); }

private:
    std::string path_;
};

} // namespace mc::testing
