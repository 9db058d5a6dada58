#include "sched/thread_bed.hpp"

#include "base/assert.hpp"

namespace mc::sched {

bool ThreadBed::try_search(Sleeper &me, uint32_t live) noexcept {
    if (me.searching)
        return true; // woken as one
    const Counts now = counts();
    if (2 * now.searching >= live - now.sleeping)
        return false; // a hint: one more or less is no harm
    (void)word_.fetch_add(1, sync::seq_cst);
    me.searching = true;
    return true;
}

bool ThreadBed::leave_search(Sleeper &me) noexcept {
    me.searching = false;
    // seq_cst: whoever published work before this, and saw a searcher, is answered by the successor that our caller
    // wakes.
    return unpack(word_.fetch_sub(1, sync::seq_cst)).searching == 1;
}

void ThreadBed::lie_down(Sleeper &me, bool timers_armed) noexcept {
    base::SpinGuard guard(lock_);
    MC_INVARIANT(!me.asleep, word_.load(sync::relaxed));
    me.asleep = true;
    me.until_ns.store(INT64_MAX, sync::relaxed); // read under the lock
    sleepers_.push_front(&me);
    const uint64_t searcher = me.searching ? 1 : 0;
    me.searching = false;
    // seq_cst: Dekker, with work_is_available. The sources are looked at after this.
    const Counts before = unpack(word_.fetch_add(one_sleeper - searcher, sync::seq_cst));
    const bool others_awake = before.sleeping + 1 < live_.load(sync::seq_cst); // Dekker, with who is new
    if (sentry_.load(sync::relaxed) == nullptr && (others_awake || timers_armed)) {
        sentry_until_.store(INT64_MIN, sync::relaxed); // not known yet
        sentry_.store(me.executor, sync::relaxed);
        me.sentry = true;
    }
}

bool ThreadBed::get_up(Sleeper &me, int64_t now) noexcept {
    base::SpinGuard guard(lock_);
    if (me.asleep) {
        me.asleep = false;
        base::List<Sleeper>::remove(&me);
        (void)word_.fetch_sub(one_sleeper, sync::seq_cst);
    } else {
        me.searching = true; // wake_one has counted us as that
    }
    if (!me.sentry)
        return false;
    me.sentry = false;
    bequeath(now);
    return true;
}

// The sentry is up. Nobody else writes sentry_until_ meanwhile: an heir has made up its mind before it told until_ns.
void ThreadBed::bequeath(int64_t now) noexcept {
    Sleeper *heir = sleepers_.front();
    // acquire: pairs with note_sleep
    const int64_t until = heir == nullptr ? INT64_MAX : heir->until_ns.load(sync::acquire);
    if (heir == nullptr || until > now + sentry_period_ns) {
        sentry_.store(nullptr, sync::relaxed);
        return;
    }
    heir->sentry = true;
    sentry_until_.store(until, sync::relaxed);
    sentry_.store(heir->executor, sync::relaxed);
}

// Under the lock the decision is made again: of many who made work available at once, one wakes one.
Executor *ThreadBed::wake_one() noexcept {
    base::SpinGuard guard(lock_);
    Sleeper *sleeper = sleepers_.front();
    if (sleeper == nullptr || counts().searching != 0)
        return nullptr;
    base::List<Sleeper>::remove(sleeper);
    sleeper->asleep = false;
    (void)word_.fetch_sub(one_sleeper - 1, sync::seq_cst);
    return sleeper->executor;
}

} // namespace mc::sched
