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
// Threads: rows are guarded by their requester's lock (whom a row belongs to never changes while it is active), the index, the
// lists by age and the counts by those of parts, which these functions take. So a row that was found may be used by who
// holds the requester's lock; who does not may only ask for whom it belongs to, with owner_of. Attached, ids are minted in
// blocks: each caller has one to itself, which is a page.
//
// Each part remembers the page that was found last, since most requests that end are among the newest.
//
// Nothing fails but reserve. Removed rows are recycled, so a request and its reply allocate nothing once there has been one.
//
// Rejected: hashing ids (each request in a line of its own, cold once there are many); a heap by deadline (all have the
// same age at their end).
#pragma once

#include "base/alloc.hpp"
#include "base/list.hpp"
#include "base/sync.hpp"
#include "machine/asker.hpp"
#include "machine/parts.hpp"
#include "machine/policy.hpp"
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
    Asker *asker = nullptr; // instead of a machine
    Waker waker;            // whom to wake, once it has its answer
    uint64_t site = 0;
    uint64_t payload0 = 0; // the row holds the box
    uint64_t payload1 = 0;
    uint64_t position = 0;  // of the request in dst's mailbox
    uint64_t created = 0;   // tick
    int64_t created_ns = 0; // attached
    bool active = false;
    bool claimed = false; // by a reply of the commit that is being checked
    Row *next = nullptr;  // free, or in a list of those that have just ended

    // As a new one, but for what is written when it is used: it is in no list.
    void reset() noexcept {
        requester = 0; // of an asker it stays that
        if (asker != nullptr) [[unlikely]] {
            asker = nullptr;
            waker = {};
        }
        active = claimed = false;
    }
};

class Pending {
    static constexpr uint64_t page_ids = 64;

public:
    // Ids that one caller mints from.
    struct Block {
        uint64_t next = 0;
        uint64_t end = 0;
    };
    // Whom an active row belongs to.
    struct Owner {
        uint32_t requester = 0;
        Asker *asker = nullptr;

        bool operator==(const Owner &) const noexcept = default;
    };

    Pending() noexcept = default;
    Pending(const Pending &) = delete;
    Pending &operator=(const Pending &) = delete;
    ~Pending();

    // For an attached runtime. False: no memory.
    [[nodiscard]] bool make_many() noexcept { return parts_.make_many(); }
    // Of a new one: room for what `from` has. False: no memory. Then: takes it all. Nobody else is about.
    [[nodiscard]] bool prepare_for(const Pending &from) noexcept;
    void take_from(Pending &from) noexcept;

    // A reserved row with this id, or, for 0, with the next that is free; block: the caller's, when the runtime is attached.
    // Null: the id is taken, or no memory.
    [[nodiscard]] Row *reserve(uint64_t id, Block *block) noexcept;
    // What is left of a block is not used.
    void leave(Block *block) noexcept;

    Row *find(uint64_t id) const noexcept {
        const Part &part = part_of(id);
        const PartGuard guard(part.lock, parts_.shared());
        return find_in(part, id);
    }
    Row *find_active(uint64_t id) const noexcept;
    // False: no active row has the id. site may be null.
    bool owner_of(uint64_t id, Owner *owner, uint64_t *site) const noexcept;

    // By who holds the requester's lock.
    void activate(Row *row, uint64_t tick, int64_t now_ns) noexcept;
    // Nobody finds it any more: by id, age or requester. It stays a row until it is recycled. Reason 0 is not counted.
    void remove(Row *row, uint32_t reason) noexcept;
    void recycle(Row *row) noexcept;

    // As reserve(0, nullptr), stepped: most ids follow one in the same page, and a row is free.
    __attribute__((always_inline)) Row *reserve_next() noexcept {
        Part &part = parts_.at(0);
        const uint64_t id = next_id_.load(sync::relaxed);
        Row *row = part.free;
        if (row == nullptr || minting_ != key_of(id) || part.near_key != minting_ || id == 0 ||
            part.near->rows[id % page_ids] != nullptr) [[unlikely]]
            return reserve(0, nullptr);
        part.free = row->next;
        --part.free_count;
        row->reset();
        row->id = id;
        part.near->rows[id % page_ids] = row;
        ++part.near->used;
        next_id_.store(id + 1, sync::relaxed);
        return row;
    }

    // find_active, activate, remove and recycle where they are often called, and it is known whether there are several parts: Sync is
    // the runtime's.
    template <class Sync> __attribute__((always_inline)) Row *find_active_by(uint64_t id) const noexcept {
        const Part &part = part_by<Sync>(id);
        const typename Sync::Guard guard(part.lock);
        Row *row = find_in(part, id);
        return row != nullptr && row->active ? row : nullptr;
    }
    template <class Sync>
    __attribute__((always_inline)) void activate_by(Row *row, uint64_t tick, int64_t now_ns) noexcept {
        Part &part = part_by<Sync>(row->id);
        const typename Sync::Guard guard(part.lock);
        row->active = true;
        row->created = tick;
        row->created_ns = now_ns;
        part.by_age.push_back(row);
        ++part.active;
        ++part.created;
    }
    template <class Sync> __attribute__((always_inline)) void remove_by(Row *row, uint32_t reason) noexcept {
        Part &part = part_by<Sync>(row->id);
        const typename Sync::Guard guard(part.lock);
        if (row->active) [[likely]] {
            row->active = false;
            --part.active;
            base::List<Row, ByAge>::remove(row);
            if (static_cast<base::ListNode<Row, OfMachine> *>(row)->linked())
                base::List<Row, OfMachine>::remove(row);
        }
        part.ended[reason] += reason != 0;
        const uint64_t key = key_of(row->id);
        Page *page = page_of(part, key);
        page->rows[row->id % page_ids] = nullptr;
        if (--page->used == 0)
            leave_page(part, key, page);
    }
    template <class Sync> __attribute__((always_inline)) void recycle_by(Row *row) noexcept {
        Part &part = part_by<Sync>(row->id);
        const typename Sync::Guard guard(part.lock);
        recycle_in(part, row);
    }

    // The active row that is the oldest; null: none is. Stepped.
    Row *oldest() const noexcept { return parts_.at(0).by_age.front(); }
    // Attached: the oldest of a part, and whom it belongs to. 0: there is none.
    uint32_t parts() const noexcept { return parts_.count(); }
    uint64_t oldest_of(uint32_t index, uint64_t *created, int64_t *created_ns) const noexcept;

    // Attached: an active request of a part whose owner is an asker; 0: there is none.
    uint64_t asked_in(uint32_t index, Asker **asker) const noexcept;

    // Of the next request that names none, unless it is pending. mint_from: as it was, when the ones since are given up.
    // Stepped.
    uint64_t next_id() const noexcept { return next_id_.load(sync::relaxed); }
    void mint_from(uint64_t id) noexcept { next_id_.store(id, sync::relaxed); }

    uint64_t active() const noexcept {
        return sum([](const Part &part) { return part.active; });
    }
    uint64_t created() const noexcept {
        return sum([](const Part &part) { return part.created; });
    }
    uint64_t ended(uint32_t reason) const noexcept {
        return reason >= reasons ? 0 : sum([=](const Part &part) { return part.ended[reason]; });
    }

    // Every active row; nobody else is about.
    template <class Visit> void for_each(Visit visit) const noexcept {
        for (const Part &part : parts_)
            for (Row *row = part.by_age.front(); row != nullptr;) {
                Row *next = part.by_age.after(row);
                visit(row);
                row = next;
            }
    }

private:
    static constexpr uint32_t most_free = 1024; // rows kept for reuse, in each part
    static constexpr uint32_t reasons = 5;

    struct Page {
        Row *rows[page_ids] = {};
        uint32_t used = 0;
        bool minting = false; // somebody's block
    };
    struct alignas(64) Part {
        mutable base::Spinlock lock;
        uint32_t free_count = 0;
        mutable uint64_t near_key = 0; // of the page that was found last; 0: none
        mutable Page *near = nullptr;
        WordMap pages; // key_of(id) -> Page
        Page *spare = nullptr;
        Row *free = nullptr;
        base::List<Row, ByAge> by_age;
        uint64_t active = 0;
        uint64_t created = 0;
        uint64_t ended[reasons] = {};
    };
    static uint64_t key_of(uint64_t id) noexcept { return id / page_ids + 1; }
    Part &part_of(uint64_t id) const noexcept { return parts_.of(id / page_ids); }
    template <class Sync> Part &part_by(uint64_t id) const noexcept {
        return Sync::shared ? part_of(id) : parts_.at(0);
    }

    template <class Get> uint64_t sum(Get get) const noexcept {
        uint64_t total = 0;
        for (const Part &part : parts_) {
            const PartGuard guard(part.lock, parts_.shared());
            total += get(part);
        }
        return total;
    }
    static Page *page_of(const Part &part, uint64_t key) noexcept {
        if (part.near_key == key) [[likely]]
            return part.near;
        return find_page(part, key);
    }
    static Page *find_page(const Part &part, uint64_t key) noexcept;
    static Row *find_in(const Part &part, uint64_t id) noexcept {
        const Page *page = page_of(part, key_of(id));
        return page == nullptr ? nullptr : page->rows[id % page_ids];
    }
    Row *reserve_in(Part &part, uint64_t id) noexcept;
    Row *mint(Block &block) noexcept;
    static Page *page_for(Part &part, uint64_t id) noexcept;
    __attribute__((always_inline)) void leave_page(Part &part, uint64_t key, Page *page) const noexcept {
        if (page->used == 0 && !page->minting && key != minting_) [[unlikely]]
            drop_page(part, key, page);
    }
    static void drop_page(Part &part, uint64_t key, Page *page) noexcept;
    static Row *take_row(Part &part) noexcept;
    static void recycle_in(Part &part, Row *row) noexcept {
        if (part.free_count == most_free) [[unlikely]]
            return base::destroy(row);
        row->next = part.free;
        part.free = row;
        ++part.free_count;
    }

    Parts<Part> parts_;
    // Stepped: the page that ids are minted from stays while it does, or one request at a time would make and end it each
    // time. Its key.
    uint64_t minting_ = 0;
    // any thread (atomic)
    sync::atomic<uint64_t> next_id_{1};
};

} // namespace mc::machine
