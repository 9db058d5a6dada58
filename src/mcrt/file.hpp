// A file descriptor that is closed when nobody needs it any more.
#pragma once

#include <unistd.h>
#include <utility>

namespace mc::mcrt {

class File {
public:
    File() = default;
    explicit File(int descriptor) : descriptor_(descriptor) {}
    File(File &&other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    File &operator=(File &&other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    File(const File &) = delete;
    File &operator=(const File &) = delete;
    ~File() {
        if (descriptor_ >= 0)
            close(descriptor_);
    }

    explicit operator bool() const { return descriptor_ >= 0; }
    int get() const { return descriptor_; }

private:
    int descriptor_ = -1;
};

} // namespace mc::mcrt
