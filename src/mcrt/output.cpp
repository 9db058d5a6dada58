#include "mcrt/output.hpp"

#include "mcrt/text.hpp"

#include <algorithm>

namespace mc::mcrt {

void Output::add(std::string_view text) {
    const size_t to_head = std::min(text.size(), most_head - head_.size());
    head_ += text.substr(0, to_head);
    tail_ += text.substr(to_head);
    if (tail_.size() <= 2 * most_tail)
        return;
    left_out_ += tail_.size() - most_tail;
    tail_.erase(0, tail_.size() - most_tail);
}

std::string Output::text() const {
    if (left_out_ == 0)
        return head_ + tail_;
    return head_ + "\n[... " + counted(left_out_, "byte") + " left out ...]\n" + tail_;
}

} // namespace mc::mcrt
