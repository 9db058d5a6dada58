// Requests that wait for their replies. A row is a request; its id is its reply's capability too.
//
//   reserved   an id that a running handler, or a commit on its way, has taken: nobody can reply to it
//   active     sent; ends by a reply, a timeout, or the end or fault of its requester
//
// Rows are found by id through pages of 64 ids, pages through a hash of their numbers: ids are minted one after another, so
// those in use share pages, and a million old requests in other pages cost the new ones nothing. Active rows are also in a
// list by age, whose head is the next to time out, and in their requester's list: each end costs the same whatever
// else is pending.
//
// Guarded as the runtime is; rows by their requester's lock. Nothing fails but reserve. Removed rows are recycled, so a
// request and its reply allocate nothing once there has been one.
//
// Rejected: hashing ids (each request in a line of its own, cold once there are many); a heap by deadline (all have the
// same age at their end).
#pragma once

#include "base/list.hpp"
#include "machine/word_map.hpp"

#include <mc/machine.h>

#include <cstdint>

namespace mc::machine {

struct OfMachine;
struct ByAge;

struct Row : base::ListNode<Row, OfMachine>, base::ListNode<Row, ByAge> {
    uint64_t id = 0;
    uint32_t requester = 0;
    uint32_t dst = 0;
    uint64_t site = 0;
    uint64_t payload0 = 0; // the row holds the box
    uint64_t payload1 = 0;
    uint64_t position = 0; // of the request in dst's mailbox
    uint64_t created = 0;  // tick
    bool active = false;
    bool claimed = false; // by a reply of the commit that is being checked
    Row *next = nullptr;  // free, or in a list of those that have just ended
};

class Pending {
public:
    Pending() noexcept = default;
    Pending(const Pending &) = delete;
    Pending &operator=(const Pending &) = delete;
    ~Pending();

    // A reserved row with this id, or, for 0, the next that is free. Null: the id is taken, or no memory.
    [[nodiscard]] Row *reserve(uint64_t id) noexcept;

    Row *find(uint64_t id) const noexcept {
        const uint64_t *page = pages_.find(key_of(id));
        return page == nullptr ? nullptr : reinterpret_cast<Page *>(*page)->rows[id % page_ids];
    }
    Row *find_active(uint64_t id) const noexcept {
        Row *row = find(id);
        return row != nullptr && row->active ? row : nullptr;
    }

    void activate(Row *row, uint64_t tick) noexcept;
    // Nobody finds it any more: by id, age or requester. It stays a row until it is recycled.
    void remove(Row *row) noexcept;
    void recycle(Row *row) noexcept;

    // The active row that is the oldest; null: none is.
    Row *oldest() const noexcept { return by_age_.front(); }

    // Of the next request that names none, unless it is pending. mint_from: as it was, when the ones since are given up.
    uint64_t next_id() const noexcept { return next_id_; }
    void mint_from(uint64_t id) noexcept { next_id_ = id; }

    uint64_t active() const noexcept { return active_; }
    uint64_t created() const noexcept { return created_; }

private:
    static constexpr uint64_t page_ids = 64;
    static constexpr uint32_t most_free = 1024; // rows kept for reuse

    struct Page {
        Row *rows[page_ids] = {};
        uint32_t used = 0;
    };
    static uint64_t key_of(uint64_t id) noexcept { return id / page_ids + 1; }

    Page *page_for(uint64_t id) noexcept;
    void leave_page(uint64_t key, Page *page) noexcept;
    Row *take_row() noexcept;

    WordMap pages_; // key_of(id) -> Page
    // The page that ids are minted from stays while it does, or one request at a time would make and end it each time.
    uint64_t minting_ = 0; // its key
    Page *spare_ = nullptr;
    Row *free_ = nullptr;
    uint32_t free_count_ = 0;
    base::List<Row, ByAge> by_age_;
    uint64_t next_id_ = 1;
    uint64_t active_ = 0;
    uint64_t created_ = 0;
};

} // namespace mc::machine
