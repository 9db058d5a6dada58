#include "sim/oracles.hpp"

namespace mc::sim {

std::string Ledger::called() const {
    std::string text = "channel " + std::to_string(number_);
    return name_.empty() ? text : text + " \"" + name_ + "\"";
}

uint64_t Ledger::put(uint64_t digest, bool by_clock) {
    digests_.push_back(digest);
    clock_ |= by_clock;
    return ++puts_;
}

uint64_t Ledger::take(uint64_t digest, std::optional<std::string> *wrong) {
    ++takes_;
    if (digests_.empty()) {
        *wrong = called() + " gave a message that was never put into it";
        return takes_;
    }
    if (digests_.front() != digest)
        *wrong = called() + " gave another message than the one that was put in as number " + std::to_string(takes_);
    digests_.pop_front();
    return takes_;
}

std::optional<std::string> Ledger::gone(uint32_t held, bool dropped) {
    digests_.clear();
    if (held == 0 || dropped || clock_)
        return std::nullopt;
    return called() + " was closed for reading with " + std::to_string(held) + " messages that nobody received";
}

std::optional<std::string> Ledger::left() const {
    if (digests_.empty() || clock_)
        return std::nullopt;
    return called() + " still has " + std::to_string(digests_.size()) + " messages that nobody received";
}

const void *Patience::overdue(uint64_t step, uint64_t bound) const noexcept {
    const void *found = nullptr;
    uint64_t earliest = UINT64_MAX;
    for (const auto &[task, since] : since_)
        if (step - since > bound && since < earliest) {
            earliest = since;
            found = task;
        }
    return found;
}

uint64_t digest_of(const void *bytes, uint32_t size) noexcept {
    uint64_t digest = 0xcbf29ce484222325u ^ size; // FNV-1a, 64 bits
    const auto *at = static_cast<const unsigned char *>(bytes);
    for (uint32_t i = 0; i < size; ++i)
        digest = (digest ^ (at == nullptr ? 0 : at[i])) * 0x100000001b3u;
    return digest;
}

} // namespace mc::sim
