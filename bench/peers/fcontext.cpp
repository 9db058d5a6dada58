// The raw context switch of Boost.Context, without any scheduler: the limit under the yield rows.
//
// The driver (bench/run) starts it, one process a row; harness.hpp has the command form. Each fiber of a ring jumps
// straight to the next and notes where the fiber that jumped to it stopped; that note is what any user of the jump
// must keep, and it is all that is done here. The yield rows' target is this figure, measured in the same run, plus a
// constant.
//
// Checked: the loop of ring_member compiles to the jump, one load (the next fiber's context), one store (the previous
// one's) and the count; two fibers and a hundred differ only by cache misses.
// Rejected: jumping back and forth between main and one fiber (no scheduler runs like that), and linking the shared
// library (one jump more through the linkage table; the limit should be the lowest figure that there is).
#include "../harness.hpp"

#include <boost/context/detail/fcontext.hpp>
#include <boost/version.hpp>

#include <memory>
#include <vector>

namespace {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

constexpr size_t kStackSize = 32768;

struct Member {
    std::unique_ptr<char[]> stack;
    fcontext_t context = nullptr; // where this member stopped; written by whoever it jumped to
    Member *previous = nullptr;
    Member *next = nullptr;
    uint64_t turns = 0;
    fcontext_t *whole_ring_done = nullptr; // main's context
};

// The first member to use up its turns is the one that started first, when all others have one jump left: it ends all.
void ring_member(transfer_t from) {
    auto &self = *static_cast<Member *>(from.data);
    if (self.whole_ring_done != nullptr && *self.whole_ring_done == nullptr)
        *self.whole_ring_done = from.fctx;
    else
        self.previous->context = from.fctx;
    Member &previous = *self.previous, &next = *self.next;
    for (uint64_t left = self.turns; left > 0; --left)
        previous.context = jump_fcontext(next.context, &next).fctx;
    jump_fcontext(*self.whole_ring_done, nullptr);
}

void jump_around(uint64_t switches, uint64_t fibers) {
    std::vector<Member> ring(fibers);
    fcontext_t main_context = nullptr;
    for (uint64_t i = 0; i < fibers; ++i) {
        Member &member = ring[i];
        member.stack = std::make_unique<char[]>(kStackSize);
        member.context = make_fcontext(member.stack.get() + kStackSize, kStackSize, ring_member);
        member.previous = &ring[(i + fibers - 1) % fibers];
        member.next = &ring[(i + 1) % fibers];
        member.turns = switches / fibers;
        member.whole_ring_done = &main_context;
    }
    jump_fcontext(ring[0].context, &ring[0]);
}

double yield2(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t n) { jump_around(n, 2); });
}

double yield100(uint64_t iterations) {
    return bench::time_per_operation(iterations, [](uint64_t n) { jump_around(n, 100); });
}

constexpr bench::Row kRows[] = {{"yield2", yield2}, {"yield100", yield100}};

} // namespace

int main(int argc, char **argv) {
    char version[32];
    std::snprintf(version, sizeof version, "%d.%d", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000);
    return bench::run_program({"raw fcontext", version, kRows, sizeof kRows / sizeof kRows[0]}, argc, argv);
}
