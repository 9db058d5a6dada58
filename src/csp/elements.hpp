// The buffer of a channel of elements, and how elements move and die. The channel's lock guards it, but for
// drop_elements and free_elements, which work on what has been taken out.
#pragma once

#include "csp/channel.hpp"

#include <cstdint>

namespace mc::csp {

// Null without memory. drop and user as in mc_chan_create.
Elements *make_elements(uint32_t size, uint32_t capacity, mc_chan_drop_fn drop, void *user) noexcept;
void free_elements(Elements *elements) noexcept; // its slots too; null is nothing

// Empties the buffer; what it held (with the slots) is in the result.
Elements take_elements(Elements &elements) noexcept;
// Calls drop for each, and frees the slots. No lock held.
void drop_elements(Elements &taken) noexcept;
// Calls drop for one, when there is one to call. No lock held.
void drop_element(const Elements &elements, void *element) noexcept;

// One element from a sender to a receiver. Null source: zeros. Null destination: nobody wants it, and it needs no drop.
void hand_element(const Elements &elements, void *source, void *destination) noexcept;

} // namespace mc::csp
