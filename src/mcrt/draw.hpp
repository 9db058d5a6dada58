// mcrt draw: any recording, as text or as a picture.
#pragma once

#include <string>

namespace mc::mcrt {

struct DrawOptions {
    std::string recording;
    std::string svg;   // a file, "-" is standard output; empty: no picture
    bool text = false; // also when there is a picture
};

// The exit status. Throws Stop.
int draw(const DrawOptions &options);

} // namespace mc::mcrt
