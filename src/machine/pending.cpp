#include "machine/pending.hpp"

#include "base/alloc.hpp"

namespace mc::machine {

// Rows that are pending still are not boxes' holders any more: the engine has seen to that.
Pending::~Pending() {
    pages_.for_each([](uint64_t, uint64_t word) {
        auto *page = reinterpret_cast<Page *>(word);
        for (Row *row : page->rows)
            base::destroy(row);
        base::destroy(page);
    });
    while (free_ != nullptr) {
        Row *row = free_;
        free_ = row->next;
        base::destroy(row);
    }
    base::destroy(spare_);
}

Row *Pending::take_row() noexcept {
    Row *row = free_;
    if (row == nullptr)
        return base::create<Row>();
    free_ = row->next;
    --free_count_;
    *row = Row();
    return row;
}

void Pending::recycle(Row *row) noexcept {
    if (free_count_ == most_free)
        return base::destroy(row);
    row->next = free_;
    free_ = row;
    ++free_count_;
}

Pending::Page *Pending::page_for(uint64_t id) noexcept {
    if (const uint64_t *word = pages_.find(key_of(id)); word != nullptr)
        return reinterpret_cast<Page *>(*word);
    if (!pages_.reserve(1))
        return nullptr;
    Page *page = spare_ != nullptr ? spare_ : base::create<Page>();
    if (page == nullptr)
        return nullptr;
    spare_ = nullptr;
    pages_.insert(key_of(id), reinterpret_cast<uintptr_t>(page));
    return page;
}

void Pending::leave_page(uint64_t key, Page *page) noexcept {
    if (page->used != 0 || key == minting_)
        return;
    pages_.erase(pages_.find(key));
    if (spare_ == nullptr)
        spare_ = page;
    else
        base::destroy(page);
}

Row *Pending::reserve(uint64_t id) noexcept {
    const bool mint = id == 0;
    if (mint) {
        while (find(next_id_) != nullptr || next_id_ == 0)
            ++next_id_;
        id = next_id_;
    } else if (find(id) != nullptr) {
        return nullptr;
    }
    Row *row = take_row();
    Page *page = row == nullptr ? nullptr : page_for(id);
    if (page == nullptr) {
        if (row != nullptr)
            recycle(row);
        return nullptr;
    }
    row->id = id;
    page->rows[id % page_ids] = row;
    ++page->used;
    if (mint) {
        ++next_id_;
        if (const uint64_t before = minting_; before != key_of(id)) {
            minting_ = key_of(id);
            if (const uint64_t *word = before == 0 ? nullptr : pages_.find(before); word != nullptr)
                leave_page(before, reinterpret_cast<Page *>(*word));
        }
    }
    return row;
}

void Pending::activate(Row *row, uint64_t tick) noexcept {
    row->active = true;
    row->created = tick;
    by_age_.push_back(row);
    ++active_;
    ++created_;
}

void Pending::remove(Row *row) noexcept {
    if (row->active) {
        row->active = false;
        --active_;
        base::List<Row, ByAge>::remove(row);
        if (static_cast<base::ListNode<Row, OfMachine> *>(row)->linked())
            base::List<Row, OfMachine>::remove(row);
    }
    const uint64_t key = key_of(row->id);
    auto *page = reinterpret_cast<Page *>(*pages_.find(key));
    page->rows[row->id % page_ids] = nullptr;
    --page->used;
    leave_page(key, page);
}

} // namespace mc::machine
