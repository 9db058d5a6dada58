// For serial_test.cpp: what happened to a runtime, as events with the times between which they happened, and a sequential model of a
// runtime, which is held to them one after another.
//
// An actor is whoever does one thing after another: an executor's thread, a thread or microthread of the program's. An event is
// something that an actor did, or saw: it happened at one moment between two readings of a counter that all share. A dispatch is two
// events, since its machine is looked at when the handler begins, and the effects happen when it has returned: `take` and `conclude`.
// Of the latter a refusal, the fault that follows it and the end of the dispatch are moments of their own.
//
// What the machines were given later tells which of two deliveries was first: so a wrong order is noticed when a message is delivered.
#pragma once

#include "base/sync.hpp"

#include <mc/machine.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <unordered_set>
#include <vector>

namespace mc::compose::test {

using Envelope = mc_machine_envelope_t;

inline bool same(const Envelope &a, const Envelope &b) { return std::memcmp(&a, &b, sizeof a) == 0; }

enum class What : uint8_t {
    take,
    conclude,
    send,
    request,
    reply,
    stop,
    mark_faulted,
    set_state,
    start,
    spawn,
    read_life,
    read_state,
    read_mail,
    read_pending,
    read_subscribed,
    ask,
    answered,
    publish,
    subscribe,
    unsubscribe,
    timeout
};

// What a handler wants done, and what is filled in rather than emitted.
struct Effect {
    What what;
    bool filled;
    uint32_t machine;
    uint64_t number; // capability, pending id, routing
    uint64_t kind, payload0, payload1, site;
};

struct Hook {
    enum Which : uint8_t { dead, fault, ended } which;
    uint32_t machine;
    uint64_t number, site; // reason or code; of a request: its id and site, then its reason
    uint64_t reason;
    Envelope envelope;

    bool operator==(const Hook &other) const {
        return which == other.which && machine == other.machine && number == other.number && site == other.site &&
               reason == other.reason && same(envelope, other.envelope);
    }
};

struct Event {
    What what{};
    uint32_t machine = 0, other = 0;
    uint64_t number = 0, site = 0, result = 0; // result of a take: the state
    Envelope envelope{};
    uint64_t start = 0, end = UINT64_MAX;
    std::vector<Hook> hooks{};
    // conclude:
    std::vector<Effect> effects{};
    mc_dispatch_result_t handler = MC_DISPATCH_OK;
    uint64_t code = 0, next_state = 0;
    bool has_next = false;
    bool polled = false; // then the result is mc_txn_commit's
};

struct Actor {
    std::deque<Event> events;
};

struct Rules {
    bool retry = false, discard = false, fault_stops = false;
};

// What all events together tell beforehand.
struct Known {
    Rules rules;
    std::map<uint32_t, std::vector<uint64_t>> taken; // by machine: payload0, which is a message's number, in order
    std::unordered_set<uint64_t> taken_at_all;
};

// The sequential runtime. Not that of machine/test_model.hpp: there a dispatch is one step, and the machines' turns are given; here
// other things happen between its two events, machines wait for room, late replies are discarded, and there are askers.
class Model {
public:
    struct Machine {
        int life = MC_MACHINE_CREATED;
        uint32_t bound = 1;
        uint32_t short_of = 0; // may wait for room there
        bool busy = false;     // its handler runs, or it is polled
        uint64_t state = 0, delivered = 0;
        std::vector<Envelope> mail{};
    };
    struct Request {
        uint64_t id, site, payload0, payload1;
        uint32_t requester;
        bool asked;  // by an asker, who is no machine
        bool linked; // ends with its requester
    };
    struct Answer {
        uint64_t id;
        Envelope envelope;
    };
    struct Subscription {
        uint32_t machine;
        uint64_t kind, routing;
        bool operator==(const Subscription &) const = default;
    };
    struct Place {                   // of an actor
        uint32_t next = 0, seen = 0; // event, hooks of it
        uint8_t phase = 0;           // of a conclude
        uint8_t late = 0;            // the effect that was, from 1
    };

    const Known *known = nullptr;
    std::vector<Machine> machines{1};
    std::vector<Request> requests;
    std::vector<Answer> answers;
    std::vector<Subscription> subscriptions;
    std::vector<Place> places;
    uint64_t created = 0, stops = 0, ended[5] = {};
    const char *why = ""; // the last apply was refused

    // The next event of an actor, or a part of it, as it was seen. False: the model does otherwise, and is of no use any more.
    bool apply(uint32_t actor, const Event &event) {
        place_ = &places[actor];
        event_ = &event;
        why = "";
        hooks_good_ = true;
        const bool over = event.what == What::conclude ? conclude() : (place_->phase = last, happen());
        if (!hooks_good_)
            return no("a hook");
        if (!over)
            return false;
        if (place_->phase == last) {
            if (place_->seen != event.hooks.size())
                return no("a hook that is not called");
            *place_ = {place_->next + 1, 0, 0, 0};
        }
        return true;
    }

    uint64_t hash() const {
        uint64_t sum = 14695981039346656037u;
        auto add = [&](uint64_t word) { sum = (sum ^ word) * 0x9e3779b97f4a7c15u, sum ^= sum >> 29; };
        for (const Place &place : places)
            add(uint64_t{place.next} << 32 | uint64_t{place.seen} << 16 | uint64_t{place.late} << 8 | place.phase);
        for (const Machine &m : machines) {
            add(static_cast<uint64_t>(m.life) << 32 | m.short_of << 1 | m.busy);
            add(m.state);
            add(m.delivered);
            for (const Envelope &e : m.mail)
                add(e.payload0), add(e.reply_cap_id), add(e.pending_id);
        }
        for (const Request &r : requests)
            add(r.id), add(r.requester);
        for (const Answer &a : answers)
            add(a.id), add(a.envelope.payload0);
        for (const Subscription &s : subscriptions)
            add(s.machine), add(s.kind), add(s.routing);
        return sum;
    }

private:
    static constexpr uint8_t last = 3; // phase: the event is over; 1 the fault, or stop, 2 the end

    bool no(const char *reason) {
        why = reason;
        return false;
    }
    bool known_id(uint32_t id) const { return id != 0 && id < machines.size(); }
    Machine &at(uint32_t id) { return machines[id]; }
    bool takes_mail(uint32_t id) const { return known_id(id) && machines[id].life <= MC_MACHINE_RUNNING; }
    Request *find(uint64_t id) {
        for (Request &r : requests)
            if (r.id == id)
                return &r;
        return nullptr;
    }
    void hook(Hook h) {
        const bool good = place_->seen < event_->hooks.size() && event_->hooks[place_->seen] == h;
        ++place_->seen;
        hooks_good_ = hooks_good_ && good;
    }
    void dead(uint32_t dst, uint64_t reason, const Envelope &e) { hook({Hook::dead, dst, reason, 0, 0, e}); }

    int refusal(uint32_t dst, uint32_t more = 1) {
        if (!known_id(dst))
            return MC_DEAD_LETTER_UNKNOWN_MACHINE;
        if (at(dst).life >= MC_MACHINE_FAULTED)
            return at(dst).life == MC_MACHINE_FAULTED ? MC_DEAD_LETTER_FAULTED_MACHINE : MC_DEAD_LETTER_STOPPED_MACHINE;
        return at(dst).mail.size() + more <= at(dst).bound ? 0 : MC_DEAD_LETTER_MAILBOX_FULL;
    }
    static uint64_t result_of(int why) {
        return why <= 1 ? static_cast<uint64_t>(why) : why == MC_DEAD_LETTER_MAILBOX_FULL ? 3 : 2;
    }
    // Here the order of mail is held to the order in which it was taken later.
    bool deliver(uint32_t dst, const Envelope &e) {
        Machine &m = at(dst);
        const auto order = known->taken.find(dst);
        if (order != known->taken.end() && m.delivered < order->second.size() &&
            order->second[m.delivered] != e.payload0)
            return no("the order of a mailbox");
        ++m.delivered;
        m.mail.push_back(e);
        return true;
    }
    static Envelope plain(uint64_t src, uint64_t kind, uint64_t payload0, uint64_t payload1) {
        return {kind, src, 0, 0, payload0, payload1, 0, 0, 0};
    }
    void end_request(const Request request, mc_pending_cleanup_reason_t reason) {
        std::erase_if(requests, [&](const Request &r) { return r.id == request.id; });
        ++ended[reason];
        hook({Hook::ended, request.asked ? 0 : request.requester, request.id, request.site, reason, {}});
    }
    void go_down(uint32_t id, int life, mc_pending_cleanup_reason_t reason) {
        at(id).life = life;
        for (const Request &r : std::vector<Request>(requests))
            if (!r.asked && r.linked && r.requester == id)
                end_request(r, reason);
    }
    void stop(uint32_t id) {
        if (at(id).life == MC_MACHINE_STOPPED)
            return;
        go_down(id, MC_MACHINE_STOPPED, MC_PENDING_CLEANUP_REQUESTER_STOPPED);
        std::erase_if(subscriptions, [&](const Subscription &s) { return s.machine == id; });
        at(id).mail.clear();
        at(id).state = 0;
        at(id).short_of = 0;
        ++stops;
    }
    void mark_faulted(uint32_t id) {
        if (takes_mail(id))
            go_down(id, MC_MACHINE_FAULTED, MC_PENDING_CLEANUP_REQUESTER_FAULTED);
    }

    // --- everything but the end of a dispatch

    bool happen() {
        const Event &e = *event_;
        const bool there = known_id(e.machine);
        switch (e.what) {
        case What::take: {
            if (!there)
                return no("no such machine");
            Machine &m = at(e.machine);
            if (m.busy || m.life != MC_MACHINE_RUNNING || m.mail.empty())
                return no("a machine that cannot be dispatched");
            if (!same(m.mail.front(), e.envelope))
                return no("an envelope");
            if (m.state != e.result)
                return no("a state");
            if (!known->rules.retry)
                m.mail.erase(m.mail.begin());
            m.busy = true;
            m.short_of = 0;
            return true;
        }
        case What::send:
            return direct_send();
        case What::request:
        case What::ask:
            return direct_request();
        case What::reply:
            return direct_reply();
        case What::answered:
            return answered();
        case What::stop:
            if (there)
                stop(e.machine);
            return e.result == there;
        case What::mark_faulted: {
            const bool good = there && at(e.machine).life != MC_MACHINE_STOPPED;
            if (good)
                mark_faulted(e.machine);
            return e.result == good;
        }
        case What::set_state:
            if (there && at(e.machine).life != MC_MACHINE_STOPPED)
                at(e.machine).state = e.number;
            return true;
        case What::start: {
            const bool good = there && at(e.machine).life == MC_MACHINE_CREATED;
            if (good)
                at(e.machine).life = MC_MACHINE_RUNNING;
            return e.result == good;
        }
        case What::spawn:
            machines.push_back({});
            machines.back().bound = static_cast<uint32_t>(e.number);
            return e.result == machines.size() - 1;
        case What::read_life:
            return e.result == static_cast<uint64_t>(there ? at(e.machine).life : int{MC_MACHINE_STOPPED});
        case What::read_state:
            return e.result == (there ? at(e.machine).state : 0);
        case What::read_mail:
            return e.result == (there ? at(e.machine).mail.size() : 0);
        case What::read_pending:
            return e.result == (find(e.number) != nullptr);
        case What::read_subscribed:
            return e.result == (std::count(subscriptions.begin(), subscriptions.end(),
                                           Subscription{e.machine, e.number, e.site}) != 0);
        case What::timeout: {
            const Request *request = find(e.number);
            if (request == nullptr || request->asked)
                return no("a request that times out");
            end_request(*request, MC_PENDING_CLEANUP_TIMEOUT);
            return true;
        }
        default:
            return no("no event");
        }
    }
    bool direct_send() {
        const Event &e = *event_;
        const int why_not = refusal(e.machine);
        if (why_not != 0)
            dead(e.machine, static_cast<uint64_t>(why_not), e.envelope);
        else if (!deliver(e.machine, e.envelope))
            return false;
        return e.result == result_of(why_not) || no("the result of a send");
    }
    bool direct_request() { // or an asker's, whose dead letters are counted elsewhere
        const Event &e = *event_;
        const bool asks = e.what == What::ask;
        Envelope envelope = plain(asks ? 0 : e.other, e.envelope.kind, e.envelope.payload0, e.envelope.payload1);
        const int why_not = refusal(e.machine);
        if (e.result != result_of(why_not))
            return no("the result of a request");
        if (why_not != 0) {
            if (!asks)
                dead(e.machine, static_cast<uint64_t>(why_not), envelope);
            return true;
        }
        if (find(e.number) != nullptr)
            return no("a pending id");
        envelope.reply_cap_id = e.number;
        requests.push_back(
            {e.number, e.site, envelope.payload0, envelope.payload1, e.other, asks, !asks && takes_mail(e.other)});
        ++created;
        return deliver(e.machine, envelope);
    }
    bool direct_reply() {
        const Event &e = *event_;
        Envelope envelope = plain(e.other, e.envelope.kind, e.envelope.payload0, e.envelope.payload1);
        const Request *found = find(e.number);
        if (found == nullptr) {
            dead(0, MC_DEAD_LETTER_REPLY_CAP_UNKNOWN, envelope);
            return e.result == MC_REPLY_CAP_UNKNOWN || no("the result of a reply");
        }
        const Request request = *found;
        envelope.pending_id = request.id;
        envelope.origin_request_site_key = request.site;
        const int why_not = request.asked ? 0 : refusal(request.requester);
        if (why_not == 0) {
            envelope.origin_payload0 = request.payload0;
            envelope.origin_payload1 = request.payload1;
            if (!answer(request, envelope))
                return false;
            end_request(request, MC_PENDING_CLEANUP_COMPLETED);
            return e.result == MC_REPLY_OK || no("the result of a reply");
        }
        const bool full = why_not == MC_DEAD_LETTER_MAILBOX_FULL;
        if (!full)
            end_request(request, why_not == MC_DEAD_LETTER_FAULTED_MACHINE ? MC_PENDING_CLEANUP_REQUESTER_FAULTED
                                                                           : MC_PENDING_CLEANUP_REQUESTER_STOPPED);
        dead(request.requester, static_cast<uint64_t>(why_not), envelope);
        return e.result == (full ? MC_REPLY_FULL : MC_REPLY_DEST_NOT_RUNNING) || no("the result of a reply");
    }
    bool answer(const Request &request, const Envelope &envelope) {
        if (!request.asked)
            return deliver(request.requester, envelope);
        answers.push_back({request.id, envelope});
        answers.back().envelope.origin_payload0 = answers.back().envelope.origin_payload1 = 0;
        return true;
    }
    // The asker goes on: with the reply, or without.
    bool answered() {
        const Event &e = *event_;
        if (static_cast<int32_t>(e.result) == MC_OK) {
            for (const Answer &a : answers)
                if (a.id == e.number)
                    return same(a.envelope, e.envelope) || no("an answer");
            return no("an answer that was not given");
        }
        const Request *request = find(e.number);
        if (request == nullptr)
            return no("an asker whose request had ended");
        std::erase_if(requests, [&](const Request &r) { return r.id == e.number; });
        ++ended[MC_PENDING_CLEANUP_TIMEOUT];
        return true;
    }

    // --- the end of a dispatch

    bool conclude() {
        const Event &e = *event_;
        if (place_->phase == 0 && e.handler == MC_DISPATCH_OK)
            return attempt();
        if (place_->phase <= 1) {
            const bool there = at(e.machine).life != MC_MACHINE_STOPPED;
            if (e.handler == MC_DISPATCH_STOP || known->rules.fault_stops)
                stop(e.machine);
            else
                mark_faulted(e.machine);
            if (e.handler != MC_DISPATCH_STOP && there)
                hook({Hook::fault,
                      e.machine,
                      e.handler == MC_DISPATCH_FAULT ? e.code : uint64_t{MC_FAULT_CODE_TXN_COMMIT_REJECTED},
                      0,
                      0,
                      {}});
            place_->phase = 2;
            return known->rules.retry || finish();
        }
        return finish();
    }
    // A dispatch that was not committed is over.
    bool finish() {
        const Event &e = *event_;
        Machine &m = at(e.machine);
        if (known->rules.retry && m.life != MC_MACHINE_STOPPED)
            m.mail.erase(m.mail.begin());
        m.busy = false;
        if (place_->late != 0) {
            const Effect &effect = e.effects[place_->late - 1u];
            dead(0, MC_DEAD_LETTER_REPLY_CAP_UNKNOWN, plain(e.machine, effect.kind, effect.payload0, effect.payload1));
        }
        place_->phase = last;
        return true;
    }
    // It waits for who waits, perhaps, for it.
    bool may_be_circle(uint32_t self, uint32_t full) const {
        for (uint32_t at = full, i = 0; at != 0 && i < machines.size(); at = machines[at].short_of, ++i)
            if (at == self)
                return true;
        return false;
    }
    bool polled_says(int32_t code) {
        return !event_->polled || static_cast<int32_t>(event_->result) == code || no("the result of a commit");
    }
    // As check in machine/commit.hpp: filled in before emitted, each as it was said.
    bool attempt() {
        const Event &e = *event_;
        const uint32_t self = e.machine;
        if (at(self).life != MC_MACHINE_RUNNING) {
            for (const Effect &effect : e.effects)
                if (effect.payload0 != 0 && known->taken_at_all.count(effect.payload0) != 0)
                    return no("an effect of a machine that was down");
            place_->phase = 2;
            return polled_says(MC_E_CLOSED) && (known->rules.retry || finish());
        }
        if (known->rules.retry) { // if all is well
            popped_ = at(self).mail.front();
            at(self).mail.erase(at(self).mail.begin());
        }
        uint32_t full = 0, late = 0; // machine, effect
        const Verdict verdict = check(e, &full, &late);
        if (verdict == Verdict::good)
            return polled_says(MC_OK) && perform(e);
        if (known->rules.retry)
            at(self).mail.insert(at(self).mail.begin(), popped_);
        if (verdict == Verdict::full && known->rules.retry) {
            const bool refused = e.polled ? static_cast<int32_t>(e.result) == MC_E_CRASHED
                                          : !e.hooks.empty() && e.hooks.back().which == Hook::fault;
            if (refused && !may_be_circle(self, full))
                return no("a refusal to wait");
            if (!refused) {
                at(self).busy = false;
                at(self).short_of = full;
                place_->phase = last;
                return polled_says(MC_E_AGAIN);
            }
        }
        if (verdict == Verdict::late && known->rules.discard) {
            place_->late = static_cast<uint8_t>(late + 1);
            place_->phase = 2;
            return polled_says(MC_E_NOENT) && (known->rules.retry || finish());
        }
        place_->phase = 1;
        return polled_says(MC_E_CRASHED);
    }

    enum class Verdict { good, full, late, bad };
    Verdict check(const Event &e, uint32_t *full, uint32_t *late) {
        std::map<uint32_t, uint32_t> incoming;
        std::vector<uint64_t> claimed;
        auto receiver = [&](uint32_t dst) {
            const int why_not = refusal(dst, incoming[dst] + 1);
            ++incoming[dst];
            *full = dst;
            return why_not == 0                             ? Verdict::good
                   : why_not != MC_DEAD_LETTER_MAILBOX_FULL ? Verdict::bad
                   : incoming[dst] <= at(dst).bound         ? Verdict::full
                                                            : Verdict::bad;
        };
        auto one = [&](const Effect &effect) {
            switch (effect.what) {
            case What::subscribe:
                return takes_mail(effect.machine) ? Verdict::good : Verdict::bad;
            case What::reply: {
                const Request *request = find(effect.number);
                if (request == nullptr) {
                    *late = static_cast<uint32_t>(&effect - e.effects.data());
                    return Verdict::late;
                }
                if (std::count(claimed.begin(), claimed.end(), effect.number) != 0)
                    return Verdict::bad;
                claimed.push_back(effect.number);
                return request->asked ? Verdict::good : receiver(request->requester);
            }
            case What::send:
            case What::request:
                return receiver(effect.machine);
            default:
                return Verdict::good;
            }
        };
        for (const What what : {What::subscribe, What::send, What::reply}) // as they are filled in
            for (const Effect &effect : e.effects)
                if (effect.filled && effect.what == what)
                    if (const Verdict verdict = one(effect); verdict != Verdict::good)
                        return verdict;
        for (const Effect &effect : e.effects)
            if (!effect.filled)
                if (const Verdict verdict = one(effect); verdict != Verdict::good)
                    return verdict;
        return Verdict::good;
    }
    bool perform(const Event &e) {
        const uint32_t self = e.machine;
        std::vector<Request> completed;
        std::vector<Hook> missed;
        bool good = true;
        for (const What what : {What::subscribe, What::send, What::request, What::reply, What::publish})
            for (const bool filled : {true, false})
                for (const Effect &effect : e.effects) {
                    const What kind = effect.what == What::unsubscribe ? What::subscribe : effect.what;
                    if (kind == what && effect.filled == filled)
                        good = perform(self, effect, &completed, &missed) && good;
                }
        if (e.has_next)
            at(self).state = e.next_state;
        at(self).busy = false;
        for (const Request &r : completed)
            hook({Hook::ended, r.asked ? 0 : r.requester, r.id, r.site, MC_PENDING_CLEANUP_COMPLETED, {}});
        for (const Hook &h : missed)
            hook(h);
        place_->phase = last;
        return good;
    }
    bool perform(uint32_t self, const Effect &effect, std::vector<Request> *completed, std::vector<Hook> *missed) {
        Envelope envelope = plain(self, effect.kind, effect.payload0, effect.payload1);
        const Subscription subscription{effect.machine, effect.kind, effect.number};
        switch (effect.what) {
        case What::subscribe:
            if (std::count(subscriptions.begin(), subscriptions.end(), subscription) == 0)
                subscriptions.push_back(subscription);
            return true;
        case What::unsubscribe:
            std::erase(subscriptions, subscription);
            return true;
        case What::send:
            if (effect.filled)
                envelope.src = effect.site; // goes as it is
            return deliver(effect.machine, envelope);
        case What::request:
            envelope.reply_cap_id = effect.number;
            if (find(effect.number) != nullptr)
                return no("a pending id");
            requests.push_back({effect.number, effect.site, effect.payload0, effect.payload1, self, false, true});
            ++created;
            return deliver(effect.machine, envelope);
        case What::reply: {
            const Request request = *find(effect.number);
            std::erase_if(requests, [&](const Request &r) { return r.id == request.id; });
            ++ended[MC_PENDING_CLEANUP_COMPLETED];
            completed->push_back(request);
            envelope.pending_id = request.id;
            envelope.origin_payload0 = request.payload0;
            envelope.origin_payload1 = request.payload1;
            envelope.origin_request_site_key = request.site;
            return answer(request, envelope);
        }
        default: { // publish
            bool good = true;
            for (const Subscription &s : subscriptions) {
                if (s.kind != effect.kind || s.routing != effect.number)
                    continue;
                if (const int why_not = refusal(s.machine); why_not != 0)
                    missed->push_back({Hook::dead, s.machine, static_cast<uint64_t>(why_not), 0, 0, envelope});
                else
                    good = deliver(s.machine, envelope) && good;
            }
            return good;
        }
        }
    }

    Place *place_ = nullptr;
    const Event *event_ = nullptr;
    bool hooks_good_ = true;
    Envelope popped_{};
};

} // namespace mc::compose::test
