// Descriptors: which bytes are one, what is said of those that are not, and what is found in one that is registered.
#include "machine/descriptor.hpp"

#include "machine/test_blob.hpp"
#include "testing/systematic.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

using namespace mc;
using machine::Blob;
using machine::Defect;
using machine::Descriptor;
using machine::find_descriptor;
using machine::register_descriptor;
using machine::test::Bytes;
using machine::test::full_blob;
using machine::test::Log;
using machine::test::Memory;
using testing::Thread;

namespace {

const Descriptor &registered(const Bytes &bytes) {
    const uint64_t id = register_descriptor(bytes.data(), bytes.size());
    cr_assert_neq(id, 0u);
    const Descriptor *descriptor = find_descriptor(id);
    cr_assert_not_null(descriptor);
    return *descriptor;
}

uint64_t thunk_of(const Descriptor &descriptor, uint64_t state, uint64_t event, uint64_t site) {
    const Descriptor::Row *row = descriptor.find_row(state, event, site);
    return row == nullptr ? 0 : row->state_local_thunk_id;
}

struct Malformed {
    const char *what;
    Bytes bytes;
    const char *text; // what is said
};

// Of each: the head is right but for what is named.
std::vector<Malformed> malformed() {
    std::vector<Malformed> all;
    const auto add = [&](const char *what, const Bytes &bytes, const char *text) {
        all.push_back({what, bytes, text});
    };
    add("nothing", Bytes(), "offset 0: it does not begin with \"MCHD\"");
    add("part of the magic", Bytes().raw("MCH"), "offset 0: it does not begin with \"MCHD\"");
    add("another magic", Bytes().raw("MCHE").u32(1).string("").u32(0).u32(0).u32(0).u32(0),
        "offset 0: it does not begin with \"MCHD\"");
    add("schema 0", Bytes().raw("MCHD").u32(0).string("").u32(0).u32(0).u32(0).u32(0),
        "offset 4: schema 0, and only 1 is known");
    add("schema 2", Bytes().raw("MCHD").u32(2).string("").u32(0).u32(0).u32(0).u32(0),
        "offset 4: schema 2, and only 1 is known");
    add("a big-endian schema", Bytes().raw("MCHD").u32(0x01000000), "offset 4: schema 16777216, and only 1 is known");
    add("no schema", Bytes().raw("MCHD"), "offset 4: head: 4 bytes are wanted, and 0 are left");
    add("a name that is longer than all", Bytes().raw("MCHD").u32(1).u32(UINT32_MAX).raw("name"),
        "offset 12: head: 4294967295 bytes are wanted, and 4 are left");
    add("no counts", Bytes().raw("MCHD").u32(1).string("name"), "offset 16: head: 4 bytes are wanted, and 0 are left");
    add("three counts", Bytes().raw("MCHD").u32(1).string("").u32(0).u32(0).u32(0),
        "offset 24: head: 4 bytes are wanted, and 0 are left");
    add("too many states", Bytes().head("", 2, 0, 0, 0).state(1, 0),
        "offset 12: 2 states, 0 events, 0 rows and 0 roles need 56 bytes, and 28 are left");
    add("too many events", Bytes().head("", 0, 2, 0, 0).event(1),
        "offset 12: 0 states, 2 events, 0 rows and 0 roles need 42 bytes, and 21 are left");
    add("too many rows", Bytes().head("", 0, 0, 2, 0).row(1, 1, 0, 1, 0),
        "offset 12: 0 states, 0 events, 2 rows and 0 roles need 80 bytes, and 40 are left");
    add("too many roles", Bytes().head("", 0, 0, 0, 2).role("", 1),
        "offset 12: 0 states, 0 events, 0 rows and 2 roles need 24 bytes, and 12 are left");
    add("counts beyond everything", Bytes().head("", UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX),
        "offset 12: 4294967295 states, 4294967295 events, 4294967295 rows and 4294967295 roles need 433791696795 "
        "bytes, and 0 are "
        "left");
    add("a state whose name is too long", Bytes().head("", 1, 0, 0, 0).u64(1).u64(1).u64(0).u32(1),
        "offset 56: state 0: 1 bytes are wanted, and 0 are left");
    add("a second state that is cut off by the first's name",
        Bytes().head("", 2, 0, 0, 0).state(1, 0, "a name as long as that").u64(2).u32(0),
        "offset 86: state 1: 8 bytes are wanted, and 4 are left");
    add("key kind 2", Bytes().head("", 0, 1, 0, 0).u64(1).u64(0).u8(2).string("a").string("b"),
        "offset 44: event 0: key kind 2 is neither 0 nor 1");
    add("key kind 255 in the second event", Bytes().head("", 0, 2, 0, 0).event(1, "x").u64(1).u64(0).u8(255).string(""),
        "offset 66: event 1: key kind 255 is neither 0 nor 1");
    add("a second string that is not there", Bytes().head("", 0, 1, 0, 0).u64(1).u64(0).u8(1).string("only"),
        "offset 53: event 0: 4 bytes are wanted, and 0 are left");
    add("a row whose last number a name has taken",
        Bytes().head("", 1, 0, 1, 0).state(1, 0, "12345678").u64(1).u64(1).u64(0).u64(1),
        "offset 96: row 0: 8 bytes are wanted, and 0 are left");
    add("a role whose path is too long", Bytes().head("", 0, 0, 0, 1).u32(9).u64(1),
        "offset 32: role 0: 9 bytes are wanted, and 8 are left");
    add("a role without its number", Bytes().head("", 0, 0, 0, 1).u32(4).raw("path").u32(1),
        "offset 36: role 0: 8 bytes are wanted, and 4 are left");
    add("one byte too many", full_blob().u8(0), "offset 369: 1 bytes too many");
    add("another descriptor behind it", full_blob().raw(full_blob().all()), "offset 369: 369 bytes too many");
    return all;
}

} // namespace

// Goal: what was written is what is read, every field of every entry.
Test(Descriptor, entries_are_read_as_written) {
    const Bytes bytes = full_blob();
    Blob blob;
    Defect defect;
    cr_assert(Blob::check(bytes.data(), bytes.size(), &blob, &defect), "%s", defect.text);
    std::string read;
    const auto text = [](const char *at, uint64_t len) { return "'" + std::string(at, len) + "' "; };
    const auto say = [&](auto... numbers) { ((read += std::to_string(numbers) + " "), ...); };
    const mc_machine_descriptor_head &head = blob.head();
    read += text(head.name, head.name_len);
    say(head.states, head.events, head.rows, head.roles);
    blob.each_state([&](const mc_machine_descriptor_state &state) {
        say(state.tag, state.type_def, state.layout);
        read += text(state.name, state.name_len);
    });
    blob.each_event([&](const mc_machine_descriptor_event &event) {
        say(event.kind, event.layout, event.key_kind);
        read += text(event.name, event.name_len) + text(event.second_name, event.second_name_len);
    });
    blob.each_row([&](const Descriptor::Row &row) {
        say(row.state_tag, row.event_kind, row.request_site_key, row.state_local_thunk_id, row.fallback_thunk_id);
    });
    blob.each_role([&](const mc_machine_descriptor_role &role) {
        read += text(role.path, role.path_len);
        say(role.def);
    });
    const std::string written =
        "'Ping' 2 3 4 2 1 1001 0 'Ready' 2 1002 77 'Waiting' 10 0 0 'Go' '' 20 0 1 'Pong' 'Ask' "
        "30 0 0 '' '' 1 10 0 101 0 2 20 0 102 103 2 20 555 104 0 1 30 0 0 105 'Ping.peer' 9 '' 0 ";
    cr_assert(read == written, "%s", read.c_str());
}

// Goal: each way to be malformed is refused, with its place and its reason in the log; nothing is allocated for it, and
// the next good one gets the next id.
Test(Descriptor, malformed_ones_are_refused_with_the_reason) {
    Memory memory;
    memory.install();
    const Bytes good = full_blob();
    const uint64_t first = register_descriptor(good.data(), good.size());
    cr_assert_eq(first, 1u);
    const uint64_t calls = memory.calls;
    Log log;
    int told = 0;
    for (const Malformed &one : malformed()) {
        cr_assert_eq(register_descriptor(one.bytes.data(), one.bytes.size()), 0u, "%s", one.what);
        cr_assert_eq(log.lines, ++told, "%s", one.what);
        cr_assert_eq(log.level, MC_LOG_ERROR);
        cr_assert_eq(log.code, MC_E_INVAL);
        const std::string wanted = "descriptor: " + std::string(one.text);
        cr_assert(log.text == wanted, "%s: %s", one.what, log.text.c_str());
    }
    cr_assert_eq(register_descriptor(nullptr, 0), 0u);
    cr_assert_eq(register_descriptor(nullptr, 100), 0u);
    cr_assert_str_eq(log.text.c_str(), "descriptor: offset 0: there is no blob");
    cr_assert_eq(memory.calls, calls);
    cr_assert_eq(register_descriptor(good.data(), good.size()), 2u);
}

// Goal: a blob that ends at any byte before its last is refused, and reads none beyond.
Test(Descriptor, truncated_ones_are_refused) {
    Log log;
    const Bytes good = full_blob();
    for (uint64_t len = 0; len < good.size(); ++len) {
        auto *cut =
            static_cast<uint8_t *>(std::malloc(len == 0 ? 1 : len)); // its own block: the sanitizers watch its end
        std::memcpy(cut, good.data(), len);
        cr_assert_eq(register_descriptor(cut, len), 0u, "of %u bytes", static_cast<unsigned>(len));
        std::free(cut);
    }
    cr_assert_eq(log.lines, static_cast<int>(good.size()));
    cr_assert_eq(register_descriptor(good.data(), good.size()), 1u);
}

// Goal: an empty descriptor is one, in which nothing is found.
Test(Descriptor, an_empty_one_has_nothing) {
    const Descriptor &descriptor = registered(Bytes().head("", 0, 0, 0, 0));
    cr_assert_null(descriptor.find_row(0, 0, 0));
    cr_assert_null(descriptor.find_row(1, 1, 1));
    cr_assert_eq(descriptor.state_layout(0), 0u);
    cr_assert_not(descriptor.has_state(0));
}

// Goal: the row of the exact request site wins over the one of site 0, which serves all other sites.
Test(Descriptor, exact_site_wins_over_any_site) {
    const Descriptor &descriptor = registered(Bytes()
                                                  .head("", 0, 0, 4, 0)
                                                  .row(1, 2, 0, 10, 0)
                                                  .row(1, 2, 7, 11, 0)
                                                  .row(1, 2, UINT64_MAX, 12, 0)
                                                  .row(1, 3, 7, 13, 0));
    cr_assert_eq(thunk_of(descriptor, 1, 2, 0), 10u);
    cr_assert_eq(thunk_of(descriptor, 1, 2, 7), 11u);
    cr_assert_eq(thunk_of(descriptor, 1, 2, UINT64_MAX), 12u);
    cr_assert_eq(thunk_of(descriptor, 1, 2, 8), 10u);
    cr_assert_eq(thunk_of(descriptor, 1, 3, 7), 13u);
    cr_assert_null(descriptor.find_row(1, 3, 0)); // a site's row serves that site alone
    cr_assert_null(descriptor.find_row(1, 3, 8));
    cr_assert_null(descriptor.find_row(2, 2, 7));
    cr_assert_null(descriptor.find_row(2, 1, 0));
}

// Goal: states are found by tag, any u64, with their layouts.
Test(Descriptor, state_layouts_are_found_by_tag) {
    const Descriptor &descriptor =
        registered(Bytes().head("", 3, 0, 0, 0).state(0, 5).state(UINT64_MAX, 6, "last").state(2, 0));
    cr_assert_eq(descriptor.state_layout(0), 5u);
    cr_assert_eq(descriptor.state_layout(UINT64_MAX), 6u);
    cr_assert_eq(descriptor.state_layout(2), 0u);
    cr_assert_eq(descriptor.state_layout(3), 0u);
    cr_assert(descriptor.has_state(0) && descriptor.has_state(2) && descriptor.has_state(UINT64_MAX));
    cr_assert_not(descriptor.has_state(3));
}

// Goal: of rows with one key, and of states with one tag, the first counts; the log warns, once for each kind.
Test(Descriptor, first_of_repeated_ones_counts) {
    Log log;
    const Descriptor &descriptor = registered(Bytes()
                                                  .head("Tw\nce", 2, 2, 4, 0)
                                                  .state(1, 5)
                                                  .state(1, 6)
                                                  .event(1)
                                                  .event(1)
                                                  .row(1, 2, 3, 10, 0)
                                                  .row(1, 2, 3, 11, 0)
                                                  .row(1, 2, 3, 10, 0)
                                                  .row(1, 2, 0, 12, 0));
    cr_assert_eq(thunk_of(descriptor, 1, 2, 3), 10u);
    cr_assert_eq(thunk_of(descriptor, 1, 2, 0), 12u);
    cr_assert_eq(descriptor.state_layout(1), 5u);
    cr_assert_eq(descriptor.row_count(), 2u);
    cr_assert_eq(descriptor.state_count(), 1u);
    cr_assert_eq(log.lines, 2);
    cr_assert_eq(log.level, MC_LOG_WARNING);
    const std::string warning = "descriptor Tw?ce: state 1 is there again, and never used (repeated states: 1)";
    cr_assert(log.text == warning, "%s", log.text.c_str());
}

// Goal: the same bytes get a new id each time; ids run from 1; what was found stays where it is, however many follow; the
// bytes are not needed any more.
Test(Descriptor, ids_run_from_one_and_nothing_moves) {
    std::vector<const Descriptor *> found;
    for (uint64_t id = 1; id <= 5000; ++id) {
        Bytes bytes;
        bytes.head("", 0, 0, 1, 0).row(id, id, 0, id, 0);
        cr_assert_eq(register_descriptor(bytes.data(), bytes.size()), id);
        found.push_back(find_descriptor(id));
    }
    for (uint64_t id = 1; id <= 5000; ++id) {
        cr_assert(find_descriptor(id) == found[id - 1]);
        cr_assert_eq(thunk_of(*found[id - 1], id, id, 0), id);
    }
    for (const uint64_t id :
         {uint64_t{0}, uint64_t{5001}, uint64_t{1} << 28, (uint64_t{1} << 28) + 1, (uint64_t{1} << 32) + 1, UINT64_MAX})
        cr_assert_null(find_descriptor(id));
}

// Goal: while several threads register, each gets ids of its own, all are used, and whoever looks meanwhile finds nothing or a
// complete one.
Test(Descriptor, registering_and_finding_at_once) {
    constexpr uint64_t threads = 3, each = 500;
    std::vector<uint64_t> ids[threads];
    sync::atomic<uint32_t> running{threads};
    const auto registers = [&](uint64_t thread) {
        for (uint64_t i = 0; i < each; ++i) {
            const uint64_t thunk = thread * each + i + 1;
            const Bytes bytes = Bytes().head("", 1, 0, 1, 0).state(thunk, thunk).row(thunk, 1, 0, thunk, 0);
            ids[thread].push_back(register_descriptor(bytes.data(), bytes.size()));
        }
        running.fetch_sub(1, sync::release);
    };
    const auto looks = [&] {
        base::Prng prng(24);
        while (running.load(sync::acquire) != 0)
            if (const Descriptor *found = find_descriptor(1 + prng.below(threads * each)))
                cr_assert(found->row_count() == 1 && found->state_count() == 1);
    };
    {
        Thread first([&] { registers(0); });
        Thread second([&] { registers(1); });
        Thread third([&] { registers(2); });
        Thread reader(looks);
    }
    std::vector<bool> used(threads * each + 1);
    for (uint64_t thread = 0; thread < threads; ++thread)
        for (uint64_t i = 0; i < each; ++i) {
            const uint64_t id = ids[thread][i], thunk = thread * each + i + 1;
            cr_assert(id >= 1 && id <= threads * each && !used[id]);
            used[id] = true;
            cr_assert_eq(thunk_of(*find_descriptor(id), thunk, 1, 0), thunk);
            cr_assert_eq(find_descriptor(id)->state_layout(thunk), thunk);
        }
}

// Goal: without memory, at any allocation of it, nothing is registered, nothing stays allocated, and the next one gets the id.
Test(Descriptor, no_memory_changes_nothing) {
    Memory memory;
    memory.install();
    const Bytes bytes = full_blob();
    Log log;
    int failures = 0;
    for (int64_t allowed = 0;; ++allowed) {
        const uint64_t blocks = memory.blocks;
        memory.allowed = allowed;
        const uint64_t id = register_descriptor(bytes.data(), bytes.size());
        memory.allowed = INT64_MAX;
        if (id != 0) {
            cr_assert_eq(id, 1u);
            break;
        }
        ++failures;
        cr_assert_eq(log.lines, failures);
        cr_assert_eq(log.code, MC_E_NOMEM);
        cr_assert_eq(memory.blocks, blocks);
        cr_assert_null(find_descriptor(1));
    }
    cr_assert_eq(failures, 2); // the descriptor, and the place for its id
}

// Goal: a descriptor takes memory for what is in its blob, not for what its counts could mean.
Test(Descriptor, memory_is_in_proportion_to_the_blob) {
    Memory memory;
    memory.install();
    Bytes small = Bytes().head("", 0, 0, 0, 0);
    register_descriptor(small.data(), small.size()); // has the place for ids made
    for (const uint64_t count : {0, 1, 2, 3, 100, 1000, 40'000}) {
        Bytes bytes;
        bytes.head("", count, 0, count, 0);
        for (uint64_t i = 0; i < count; ++i)
            bytes.state(i, 0);
        for (uint64_t i = 0; i < count; ++i)
            bytes.row(i, i, 0, 1, 0);
        memory.bytes = 0;
        cr_assert_neq(register_descriptor(bytes.data(), bytes.size()), 0u);
        cr_assert_leq(memory.bytes, bytes.size() * 3 / 2 + 200, "of %u", static_cast<unsigned>(count));
    }
}

// Goal: whatever is flipped, cut or put in, a blob is refused or is one whose every row is found; and each is decided alike when
// it comes again.
Test(Descriptor, random_mutations_are_survived) {
    base::set_log_hook([](void *, int32_t, int32_t, const char *) {}, nullptr);
    const std::string good[] = {
        full_blob().all(),
        Bytes().head("x", 1, 1, 1, 1).state(1, 2, "a").event(1, "b", "c").row(1, 1, 1, 1, 1).role("d", 1).all()};
    base::Prng prng(20);
    const auto any = [&](size_t size) { return prng.below(static_cast<uint32_t>(size)); };
    uint64_t accepted = 0;
    const unsigned rounds = (testing::under_valgrind ? 2'000 : 100'000) * testing::scale();
    for (unsigned round = 0; round < rounds; ++round) {
        std::string bytes = good[prng.below(2)];
        for (uint32_t edits = 1 + prng.below(4); edits > 0; --edits) {
            const uint64_t at = bytes.empty() ? 0 : any(bytes.size());
            switch (bytes.empty() ? 4 : prng.below(6)) {
            case 0:
                bytes[at] = static_cast<char>(bytes[at] ^ (1 << prng.below(8)));
                break;
            case 1:
                bytes[at] = static_cast<char>(prng.next());
                break;
            case 2:
                bytes.resize(at);
                break;
            case 3:
                bytes.erase(at, prng.below(9));
                break;
            case 4:
                bytes.insert(at, prng.below(9), static_cast<char>(prng.next()));
                break;
            default:
                bytes.insert(at, bytes.substr(any(bytes.size()), prng.below(48)));
            }
        }
        const std::vector<char> exact(bytes.begin(), bytes.end()); // no byte behind it: the sanitizers watch
        const uint64_t id = register_descriptor(exact.data(), exact.size());
        Blob blob;
        Defect defect;
        const bool is_one = Blob::check(exact.data(), exact.size(), &blob, &defect);
        cr_assert_eq(id != 0, is_one, "round %u", round);
        if (!is_one) {
            cr_assert(std::string_view(defect.text).starts_with("offset "));
            continue;
        }
        ++accepted;
        const Descriptor &descriptor = *find_descriptor(id);
        blob.each_row([&](const Descriptor::Row &row) {
            const Descriptor::Row *found = descriptor.find_row(row.state_tag, row.event_kind, row.request_site_key);
            cr_assert(found != nullptr && found->request_site_key == row.request_site_key, "round %u", round);
        });
    }
    cr_assert_gt(accepted, rounds / 20);
}

// Goal: rows are those of a plain map, in tables of any size, with keys that lie close and keys that are hashes.
Test(Descriptor, rows_are_those_of_a_plain_map) {
    base::set_log_hook([](void *, int32_t, int32_t, const char *) {}, nullptr);
    base::Prng prng(21);
    for (const uint64_t count : {1u, 3u, 17u, 1000u, 10'000u}) {
        for (int shape = 0; shape < 3; ++shape) {
            const auto number = [&]() -> uint64_t {
                return shape == 0   ? prng.below(50)
                       : shape == 1 ? prng.next()
                                    : uint64_t{prng.below(50)} << (8 * prng.below(8));
            };
            std::map<std::tuple<uint64_t, uint64_t, uint64_t>, uint64_t> model;
            Bytes bytes;
            bytes.head("", 0, 0, count, 0);
            for (uint64_t i = 0; i < count; ++i) {
                const uint64_t state = number(), event = number(), site = prng.below(2) * number();
                bytes.row(state, event, site, i + 1, 0);
                model.try_emplace({state, event, site}, i + 1);
            }
            const Descriptor &descriptor = registered(bytes);
            cr_assert_eq(descriptor.row_count(), model.size());
            const auto wanted = [&](uint64_t state, uint64_t event, uint64_t site) {
                auto found = model.find({state, event, site});
                if (found == model.end())
                    found = model.find({state, event, 0});
                return found == model.end() ? 0 : found->second;
            };
            for (const auto &[key, thunk] : model) {
                const auto [state, event, site] = key;
                cr_assert_eq(thunk_of(descriptor, state, event, site), thunk);
                const uint64_t other = number();
                cr_assert_eq(thunk_of(descriptor, state, event, other), wanted(state, event, other));
                cr_assert_eq(thunk_of(descriptor, other, event, site), wanted(other, event, site));
            }
        }
    }
}
