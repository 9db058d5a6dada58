#include "machine/pending.hpp"

#include "base/alloc.hpp"

namespace mc::machine {

// Rows that are pending still are not boxes' holders any more: the engine has seen to that.
Pending::~Pending() {
    for (Part &part : parts_) {
        part.pages.for_each([](uint64_t, uint64_t word) {
            auto *page = reinterpret_cast<Page *>(word);
            for (Row *row : page->rows)
                base::destroy(row);
            base::destroy(page);
        });
        while (part.free != nullptr) {
            Row *row = part.free;
            part.free = row->next;
            base::destroy(row);
        }
        base::destroy(part.spare);
    }
}

// --- attaching and detaching -----------------------------------------------------------------------------------------

bool Pending::prepare_for(const Pending &from) noexcept {
    uint64_t pages[Parts<Part>::many] = {};
    for (const Part &part : from.parts_)
        part.pages.for_each([&](uint64_t key, uint64_t) { ++pages[parts_.index_of(key - 1)]; });
    for (uint32_t i = 0; i < parts_.count(); ++i)
        if (!parts_.at(i).pages.reserve(pages[i]))
            return false;
    return true;
}

// Rows go in the order of their age, so that each list here is in that order, too.
void Pending::take_from(Pending &from) noexcept {
    for (Part &part : from.parts_) {
        part.pages.for_each([&](uint64_t key, uint64_t word) {
            auto *page = reinterpret_cast<Page *>(word);
            page->minting = false;
            if (page->used == 0)
                base::destroy(page);
            else
                parts_.of(key - 1).pages.insert(key, word);
        });
        part.pages.clear();
        part.near_key = 0;
    }
    for (;;) {
        Part *oldest = nullptr;
        for (Part &part : from.parts_)
            if (Row *row = part.by_age.front(); row != nullptr)
                if (oldest == nullptr || row->created < oldest->by_age.front()->created ||
                    (row->created == oldest->by_age.front()->created && row->id < oldest->by_age.front()->id))
                    oldest = &part;
        if (oldest == nullptr)
            break;
        Row *row = oldest->by_age.pop_front();
        Part &part = part_of(row->id);
        part.by_age.push_back(row);
        ++part.active;
    }
    for (Part &part : from.parts_) {
        parts_.at(0).created += part.created;
        for (uint32_t reason = 0; reason < reasons; ++reason)
            parts_.at(0).ended[reason] += part.ended[reason];
    }
    const uint64_t next = from.next_id_.load(sync::relaxed);
    // A block is a page.
    next_id_.store(parts_.shared() ? (next + page_ids - 1) / page_ids * page_ids : next, sync::relaxed);
}

// --- rows and pages ----------------------------------------------------------------------------------------------------

Row *Pending::take_row(Part &part) noexcept {
    Row *row = part.free;
    if (row == nullptr)
        return base::create<Row>();
    part.free = row->next;
    --part.free_count;
    row->reset();
    return row;
}

Pending::Page *Pending::find_page(const Part &part, uint64_t key) noexcept {
    const uint64_t *word = part.pages.find(key);
    if (word == nullptr)
        return nullptr;
    part.near_key = key;
    return part.near = reinterpret_cast<Page *>(*word);
}

Pending::Page *Pending::page_for(Part &part, uint64_t id) noexcept {
    if (Page *known = page_of(part, key_of(id)); known != nullptr) [[likely]]
        return known;
    if (!part.pages.reserve(1))
        return nullptr;
    Page *page = part.spare != nullptr ? part.spare : base::create<Page>();
    if (page == nullptr)
        return nullptr;
    part.spare = nullptr;
    part.pages.insert(key_of(id), reinterpret_cast<uintptr_t>(page));
    return page;
}

void Pending::drop_page(Part &part, uint64_t key, Page *page) noexcept {
    part.pages.erase(part.pages.find(key));
    if (part.near_key == key)
        part.near_key = 0;
    if (part.spare == nullptr)
        part.spare = page;
    else
        base::destroy(page);
}

// --- minting -----------------------------------------------------------------------------------------------------------

// The id is free.
Row *Pending::reserve_in(Part &part, uint64_t id) noexcept {
    Row *row = take_row(part);
    Page *page = row == nullptr ? nullptr : page_for(part, id);
    if (page == nullptr) {
        if (row != nullptr)
            recycle_in(part, row);
        return nullptr;
    }
    row->id = id;
    page->rows[id % page_ids] = row;
    ++page->used;
    return row;
}

// From a block; a new one when it is used up. Its page stays meanwhile.
Row *Pending::mint(Block &block) noexcept {
    for (;;) {
        if (block.next == block.end) {
            block.next = next_id_.fetch_add(page_ids, sync::relaxed); // each block is given out once
            block.end = block.next + page_ids;
            block.next += block.next == 0; // wrapped round
        }
        Part &part = part_of(block.next);
        const PartGuard guard(part.lock, true);
        while (block.next != block.end && find_in(part, block.next) != nullptr)
            ++block.next;
        if (block.next == block.end) { // a program chose these ids itself, or they have come round
            if (Page *page = page_of(part, key_of(block.end - 1)); page != nullptr)
                page->minting = false; // its rows leave it
            continue;
        }
        Row *row = reserve_in(part, block.next);
        if (row == nullptr)
            return nullptr;
        Page *page = page_of(part, key_of(block.next));
        page->minting = ++block.next != block.end;
        return row;
    }
}

void Pending::leave(Block *block) noexcept {
    if (block->next == block->end)
        return;
    Part &part = part_of(block->next);
    const PartGuard guard(part.lock, true);
    if (Page *page = page_of(part, key_of(block->next)); page != nullptr) {
        page->minting = false;
        leave_page(part, key_of(block->next), page);
    }
    *block = {};
}

Row *Pending::reserve(uint64_t id, Block *block) noexcept {
    if (id == 0 && block != nullptr)
        return mint(*block);
    if (id != 0) {
        Part &part = part_of(id);
        const PartGuard guard(part.lock, parts_.shared());
        return find_in(part, id) != nullptr ? nullptr : reserve_in(part, id);
    }
    Part &part = parts_.at(0); // stepped
    uint64_t next = next_id_.load(sync::relaxed);
    while (find_in(part, next) != nullptr || next == 0)
        ++next;
    Row *row = reserve_in(part, next);
    if (row == nullptr)
        return nullptr; // ids that were passed over may be free the next time
    next_id_.store(next + 1, sync::relaxed);
    if (const uint64_t before = minting_; before != key_of(next)) {
        minting_ = key_of(next);
        if (Page *page = before == 0 ? nullptr : page_of(part, before); page != nullptr)
            leave_page(part, before, page);
    }
    return row;
}

// --- active rows -------------------------------------------------------------------------------------------------------

bool Pending::owner_of(uint64_t id, Owner *owner, uint64_t *site) const noexcept {
    const Part &part = part_of(id);
    const PartGuard guard(part.lock, parts_.shared());
    const Row *row = find_in(part, id);
    if (row == nullptr || !row->active)
        return false;
    *owner = {row->requester, row->asker};
    if (site != nullptr)
        *site = row->site;
    return true;
}

uint64_t Pending::oldest_of(uint32_t index, uint64_t *created, int64_t *created_ns) const noexcept {
    const Part &part = parts_.at(index);
    const PartGuard guard(part.lock, parts_.shared());
    const Row *row = part.by_age.front();
    if (row == nullptr)
        return 0;
    *created = row->created;
    *created_ns = row->created_ns;
    return row->id;
}

uint64_t Pending::asked_in(uint32_t index, Asker **asker) const noexcept {
    const Part &part = parts_.at(index);
    const PartGuard guard(part.lock, parts_.shared());
    for (Row *row = part.by_age.front(); row != nullptr; row = part.by_age.after(row))
        if (row->asker != nullptr) {
            *asker = row->asker;
            return row->id;
        }
    return 0;
}

Row *Pending::find_active(uint64_t id) const noexcept {
    return parts_.shared() ? find_active_by<Par>(id) : find_active_by<Seq>(id);
}

void Pending::activate(Row *row, uint64_t tick, int64_t now_ns) noexcept {
    parts_.shared() ? activate_by<Par>(row, tick, now_ns) : activate_by<Seq>(row, tick, now_ns);
}

void Pending::remove(Row *row, uint32_t reason) noexcept {
    parts_.shared() ? remove_by<Par>(row, reason) : remove_by<Seq>(row, reason);
}

void Pending::recycle(Row *row) noexcept { parts_.shared() ? recycle_by<Par>(row) : recycle_by<Seq>(row); }

} // namespace mc::machine
