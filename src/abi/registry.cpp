// mc/machine.h, mc/bridge.h: the registries of thunks, payload drops and descriptors, and reading a descriptor.
#include <mc/bridge.h>
#include <mc/machine.h>

#include "abi/options.hpp"
#include "abi/second_name.hpp"
#include "base/guarded.hpp"
#include "machine/blob.hpp"
#include "machine/descriptor.hpp"
#include "machine/registry.hpp"

#include <algorithm>
#include <cstring>

namespace {

using mc::machine::Blob;
using mc::machine::Defect;

template <class Function> Function function_at(uint64_t address) noexcept {
    return reinterpret_cast<Function>(static_cast<uintptr_t>(address));
}

// A member of a visitor: none is not called.
template <class Entry> auto told(void (*function)(void *, const Entry *), void *user) noexcept {
    return [=](const Entry &entry) {
        if (function != nullptr)
            function(user, &entry);
    };
}

bool tell(const Blob &blob, const mc_machine_descriptor_visitor &visitor, void *user) noexcept {
    return mc::base::call_guarded("a visitor of a descriptor", [&] {
        told(visitor.head, user)(blob.head());
        blob.each_state(told(visitor.state, user));
        blob.each_event(told(visitor.event, user));
        blob.each_row(told(visitor.row, user));
        blob.each_role(told(visitor.role, user));
    });
}

void write_text(const Defect &defect, char *error, uint64_t error_size) noexcept {
    static_assert(sizeof defect.text == MC_MACHINE_DESCRIPTOR_ERROR_BYTES);
    if (error == nullptr || error_size == 0)
        return;
    const size_t length = std::min<uint64_t>(std::strlen(defect.text), error_size - 1);
    std::memcpy(error, defect.text, length);
    error[length] = '\0';
}

} // namespace

// --- thunks ---

void mc_machine_runtime_register_thunk(uint64_t thunk_id, mc_machine_dispatch_txn_fn fn) noexcept {
    mc::machine::register_thunk(thunk_id, fn, 0);
}
MC_SECOND_NAME(register_thunk)

void mc_machine_runtime_register_thunk_meta(uint64_t thunk_id, mc_machine_dispatch_txn_fn fn,
                                            uint64_t next_tag) noexcept {
    mc::machine::register_thunk(thunk_id, fn, next_tag);
}
MC_SECOND_NAME(register_thunk_meta)

mc_machine_dispatch_txn_fn mc_machine_runtime_lookup_thunk(uint64_t thunk_id) noexcept {
    return mc::machine::find_thunk(thunk_id).fn;
}
MC_SECOND_NAME(lookup_thunk)

void mc_machine_runtime_register_thunk_u64(uint64_t thunk_id, uint64_t fn) noexcept {
    mc::machine::register_thunk(thunk_id, function_at<mc_machine_dispatch_txn_fn>(fn), 0);
}
MC_SECOND_NAME(register_thunk_u64)

void mc_machine_runtime_register_thunk_meta_u64(uint64_t thunk_id, uint64_t fn, uint64_t next_tag) noexcept {
    mc::machine::register_thunk(thunk_id, function_at<mc_machine_dispatch_txn_fn>(fn), next_tag);
}
MC_SECOND_NAME(register_thunk_meta_u64)

// --- drop functions ---

void mc_machine_runtime_register_payload_drop(mc_payload_layout_id_t layout, mc_payload_drop_fn drop) noexcept {
    mc::machine::register_payload_drop(layout, drop);
}
MC_SECOND_NAME(register_payload_drop)

mc_payload_drop_fn mc_machine_runtime_lookup_payload_drop(mc_payload_layout_id_t layout) noexcept {
    return mc::machine::find_payload_drop(layout);
}
MC_SECOND_NAME(lookup_payload_drop)

void mc_machine_runtime_register_payload_drop_u64(uint64_t layout, uint64_t drop) noexcept {
    mc::machine::register_payload_drop(layout, function_at<mc_payload_drop_fn>(drop));
}
MC_SECOND_NAME(register_payload_drop_u64)

// --- descriptors ---

uint64_t mc_machine_runtime_register_descriptor(const uint8_t *bytes, uint64_t len) noexcept {
    return mc::machine::register_descriptor(bytes, len);
}
MC_SECOND_NAME(register_descriptor)

uint64_t mc_machine_runtime_register_descriptor_u64(uint64_t bytes, uint64_t len) noexcept {
    return mc::machine::register_descriptor(function_at<const uint8_t *>(bytes), len);
}
MC_SECOND_NAME(register_descriptor_u64)

int32_t mc_machine_descriptor_parse(const void *bytes, uint64_t len, const mc_machine_descriptor_visitor *visitor,
                                    void *user, char *error, uint64_t error_size) noexcept {
    mc_machine_descriptor_visitor known = MC_MACHINE_DESCRIPTOR_VISITOR_INIT;
    if (visitor != nullptr) {
        if (const int32_t status = mc::abi::read_options(visitor, &known); status != MC_OK)
            return status;
        if (known.reserved != 0)
            return MC_E_INVAL;
    }
    Blob blob;
    Defect defect;
    if (!Blob::check(bytes, len, &blob, &defect)) {
        write_text(defect, error, error_size);
        return MC_E_INVAL;
    }
    return tell(blob, known, user) ? MC_OK : MC_E_CRASHED;
}
