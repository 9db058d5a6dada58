// A sequential reference of machines: what mc/machine.h promises, in the plainest words: maps, copies, and no memory of its
// own. A transaction is: copy everything, carry the effects out one by one, and take the copy back if one fails. A box
// lives while an envelope in a mailbox or a pending request mentions it; nothing is counted.
//
// history_test.cpp runs it beside the library. Each writes down what its handlers and hooks see, and what calls return.
#pragma once

#include "machine/boxes.hpp"

#include <mc/machine.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace mc::machine::test {

// What a history is made of: calls, and what a handler does. Which numbers mean what depends on `what`.
enum class What {
    send,
    ask,
    reply,
    stop,
    start,
    fault,
    spawn,
    state,
    emit_send,
    emit_ask,
    emit_reply,
    publish,
    fill_send,
    fill_ask,
    fill_reply,
    subscribe,
    unsubscribe,
    end
};
struct Action {
    What what = What::end;
    uint32_t machine = 0; // destination, or whom it is done to
    uint32_t other = 0;   // source
    uint64_t number = 0;  // capability, pending id, routing, state, capacity
    uint64_t kind = 0;
    uint64_t payload0 = 0; // of a box; 0 with `received`: the one that is being handled
    uint64_t payload1 = 0;
    uint64_t site = 0;
    bool received = false;
};
struct Plan {
    std::vector<Action> actions;
    mc_dispatch_result_t result = MC_DISPATCH_OK;
    uint64_t code = 0, has_next = 0, next = 0;
};

inline std::string numbers(std::initializer_list<uint64_t> all) {
    std::string text;
    for (const uint64_t number : all)
        text += " " + std::to_string(number);
    return text;
}
inline std::string text_of(const mc_machine_envelope_t &e) {
    return numbers({e.kind, e.src, e.reply_cap_id, e.pending_id, e.payload0, e.payload1, e.origin_payload0,
                    e.origin_payload1, e.origin_request_site_key});
}

class Model {
public:
    using Envelope = mc_machine_envelope_t;
    std::vector<std::string> log;
    mc_machine_fault_policy_t policy = MC_FAULT_POLICY_MARK_FAULTED;
    uint64_t timeout = 0;

    struct Mail {
        Envelope envelope;
        uint64_t request = 0; // its serial number
    };
    struct Machine {
        int life = MC_MACHINE_CREATED;
        uint64_t bound = 1, state = 0;
        std::deque<Mail> mail;
    };
    struct Request {
        uint64_t id, serial;
        uint32_t requester, dst;
        uint64_t site, payload0, payload1, created;
        bool down, fresh; // the requester was down; of the transaction that is being carried out
    };
    struct Subscription {
        uint32_t machine;
        uint64_t kind, routing;
        bool operator==(const Subscription &) const = default;
    };
    struct State {
        std::vector<Machine> machines{1}; // by id
        std::deque<uint32_t> ready;
        std::vector<Request> requests;
        std::vector<Subscription> subscriptions;
        uint64_t next_id = 1, serials = 0, created = 0, stops = 0, ended[5] = {};
    } now;

    // Every box that is alive. Inside a handler: also those that it has got, or staged.
    std::set<uint64_t> boxes() const {
        std::set<uint64_t> all;
        auto note = [&](uint64_t word0, uint64_t word1) {
            if (is_box(word0, word1))
                all.insert(word0);
        };
        for (const Machine &machine : now.machines)
            for (const Mail &mail : machine.mail) {
                note(mail.envelope.payload0, mail.envelope.payload1);
                note(mail.envelope.origin_payload0, mail.envelope.origin_payload1);
            }
        for (const Request &request : now.requests)
            note(request.payload0, request.payload1);
        return all;
    }

    uint64_t act(const Action &a) {
        const Envelope e = envelope(a.kind, 0, a);
        switch (a.what) {
        case What::send:
            return send(a.machine, e);
        case What::ask:
            return ask(a.other, a.machine, a);
        case What::reply:
            return reply(a.other, a.number, a);
        case What::stop:
            return stop(a.machine);
        case What::fault:
            return mark_faulted(a.machine);
        case What::start:
            if (!known(a.machine) || at(a.machine).life != MC_MACHINE_CREATED)
                return 0;
            at(a.machine).life = MC_MACHINE_RUNNING;
            wake(a.machine);
            return 1;
        case What::spawn:
            now.machines.push_back({MC_MACHINE_CREATED, std::max<uint64_t>(a.number, 1), 0, {}});
            return now.machines.size() - 1;
        case What::state:
            if (!known(a.machine) || at(a.machine).life == MC_MACHINE_STOPPED)
                return 0;
            at(a.machine).state = a.number;
            return 1;
        default:
            return 0;
        }
    }

    // Status as the bridge's.
    uint64_t step(const Plan &plan) {
        uint32_t id = 0;
        while (id == 0 && !now.ready.empty()) {
            const uint32_t first = now.ready.front();
            now.ready.pop_front();
            if (at(first).life == MC_MACHINE_RUNNING && !at(first).mail.empty())
                id = first;
        }
        if (id == 0)
            return MC_STEP_IDLE;
        ++tick_;
        running_ = id;
        const Envelope got = at(id).mail.front().envelope;
        at(id).mail.pop_front();
        log.push_back("handle" + numbers({id, at(id).state}) + text_of(got));
        std::vector<Action> filled, emitted;
        reserved_.clear();
        for (Action a : plan.actions) {
            if (a.received)
                a.payload0 = got.payload0, a.payload1 = got.payload1;
            if (a.what < What::emit_send) {
                log.push_back("result" + numbers({act(a)}));
            } else if (a.what < What::fill_send) {
                if (a.what == What::emit_ask)
                    reserved_.insert(a.number = mint());
                const bool staged = a.what != What::publish || (a.payload1 & MC_PAYLOAD_LAYOUT_OWNED_MASK) == 0;
                log.push_back("emit" + numbers({a.what == What::emit_ask ? a.number : staged}));
                if (staged)
                    emitted.push_back(a);
            } else {
                filled.push_back(a);
            }
        }
        filled.insert(filled.end(), emitted.begin(), emitted.end());
        mc_dispatch_result_t result = plan.result;
        uint64_t code = plan.code;
        if (result == MC_DISPATCH_OK && at(id).life == MC_MACHINE_RUNNING) {
            if (commit(id, filled, plan)) {
                end_step(id);
                return MC_STEP_DID_WORK;
            }
            result = MC_DISPATCH_FAULT;
            code = MC_FAULT_CODE_TXN_COMMIT_REJECTED;
        }
        uint64_t status = MC_STEP_DID_WORK;
        if (result == MC_DISPATCH_STOP) {
            (void)stop(id);
        } else if (result == MC_DISPATCH_FAULT && at(id).life != MC_MACHINE_STOPPED) {
            if (policy == MC_FAULT_POLICY_MARK_STOPPED)
                (void)stop(id);
            else
                (void)mark_faulted(id);
            log.push_back("fault" + numbers({id, code}));
            status = MC_STEP_FAULTED;
        }
        end_step(id);
        return status;
    }

private:
    Machine &at(uint32_t id) { return now.machines[id]; }
    bool known(uint32_t id) const { return id != 0 && id < now.machines.size(); }
    static Envelope envelope(uint64_t kind, uint64_t src, const Action &a) {
        return {kind, src, 0, 0, a.payload0, a.payload1, 0, 0, 0};
    }
    // 0, or why not, for an envelope more.
    int refusal(uint32_t dst) {
        if (!known(dst))
            return MC_DEAD_LETTER_UNKNOWN_MACHINE;
        if (at(dst).life == MC_MACHINE_STOPPED)
            return MC_DEAD_LETTER_STOPPED_MACHINE;
        if (at(dst).life == MC_MACHINE_FAULTED)
            return MC_DEAD_LETTER_FAULTED_MACHINE;
        return at(dst).mail.size() < at(dst).bound ? 0 : MC_DEAD_LETTER_MAILBOX_FULL;
    }
    void dead(uint32_t dst, int reason, const Envelope &e) {
        log.push_back("dead" + numbers({dst, static_cast<uint64_t>(reason)}) + text_of(e));
    }
    static uint64_t result_of(int reason) {
        return reason <= 1 ? static_cast<uint64_t>(reason) : reason == MC_DEAD_LETTER_MAILBOX_FULL ? 3 : 2;
    }
    void wake(uint32_t id) {
        if (id != running_ && at(id).life == MC_MACHINE_RUNNING && !at(id).mail.empty() &&
            std::find(now.ready.begin(), now.ready.end(), id) == now.ready.end())
            now.ready.push_back(id);
    }
    void deliver(uint32_t dst, const Envelope &e, uint64_t request = 0) {
        at(dst).mail.push_back({e, request});
        wake(dst);
    }
    Request *find(uint64_t id) {
        for (Request &request : now.requests)
            if (request.id == id)
                return &request;
        return nullptr;
    }
    uint64_t mint() {
        while (find(now.next_id) != nullptr || reserved_.count(now.next_id) != 0)
            ++now.next_id;
        return now.next_id++;
    }
    void add_request(uint64_t id, uint32_t src, uint32_t dst, const Action &a, bool fresh) {
        const bool down = known(src) && at(src).life >= MC_MACHINE_FAULTED;
        now.requests.push_back({id, ++now.serials, src, dst, a.site, a.payload0, a.payload1, tick_, down, fresh});
        ++now.created;
        Envelope e = envelope(a.kind, src, a);
        e.reply_cap_id = id;
        deliver(dst, e, now.serials);
    }
    // Without a reply: the box is gone, wherever the request is.
    void end_request(uint64_t id, mc_pending_cleanup_reason_t reason) {
        const Request gone = *find(id);
        std::erase_if(now.requests, [&](const Request &r) { return r.id == id; });
        ++now.ended[reason];
        if (is_box(gone.payload0, gone.payload1))
            for (Mail &mail : at(gone.dst).mail)
                if (mail.request == gone.serial)
                    mail.envelope.payload0 = mail.envelope.payload1 = 0;
        log.push_back("request" + numbers({gone.requester, id, gone.site, static_cast<uint64_t>(reason)}));
    }
    void end_requests_of(uint32_t id, mc_pending_cleanup_reason_t reason) {
        const std::vector<Request> all = now.requests;
        for (const Request &request : all)
            if (request.requester == id && !request.down)
                end_request(request.id, reason);
    }
    Envelope reply_envelope(const Request &request, uint32_t src, const Action &a) {
        return {a.kind, src, 0, request.id, a.payload0, a.payload1, request.payload0, request.payload1, request.site};
    }

    uint64_t send(uint32_t dst, const Envelope &e) {
        const int why = refusal(dst);
        if (why == 0)
            deliver(dst, e);
        else
            dead(dst, why, e);
        return result_of(why);
    }
    uint64_t ask(uint32_t src, uint32_t dst, const Action &a) {
        if (const int why = refusal(dst); why != 0) {
            dead(dst, why, envelope(a.kind, src, a));
            return 0;
        }
        const uint64_t id = mint();
        add_request(id, src, dst, a, false);
        return id;
    }
    uint64_t reply(uint32_t src, uint64_t cap, const Action &a) {
        Envelope e = envelope(a.kind, src, a);
        const Request *found = find(cap);
        if (found == nullptr) {
            dead(0, MC_DEAD_LETTER_REPLY_CAP_UNKNOWN, e);
            return MC_REPLY_CAP_UNKNOWN;
        }
        const Request request = *found;
        const int why = refusal(request.requester);
        e.pending_id = cap;
        e.origin_request_site_key = request.site;
        switch (why) {
        case 0:
            deliver(request.requester, reply_envelope(request, src, a));
            std::erase_if(now.requests, [&](const Request &r) { return r.id == cap; });
            complete(request);
            return MC_REPLY_OK;
        case MC_DEAD_LETTER_STOPPED_MACHINE:
        case MC_DEAD_LETTER_FAULTED_MACHINE:
            end_request(cap, why == MC_DEAD_LETTER_STOPPED_MACHINE ? MC_PENDING_CLEANUP_REQUESTER_STOPPED
                                                                   : MC_PENDING_CLEANUP_REQUESTER_FAULTED);
            dead(request.requester, why, e);
            return MC_REPLY_DEST_NOT_RUNNING;
        default:
            dead(request.requester, why, e);
            return why == MC_DEAD_LETTER_UNKNOWN_MACHINE ? MC_REPLY_DEST_UNKNOWN : MC_REPLY_FULL;
        }
    }
    void complete(const Request &request) {
        ++now.ended[MC_PENDING_CLEANUP_COMPLETED];
        log.push_back("request" + numbers({request.requester, request.id, request.site, MC_PENDING_CLEANUP_COMPLETED}));
    }
    uint64_t stop(uint32_t id) {
        if (!known(id))
            return 0;
        if (at(id).life == MC_MACHINE_STOPPED)
            return 1;
        at(id).life = MC_MACHINE_STOPPED;
        end_requests_of(id, MC_PENDING_CLEANUP_REQUESTER_STOPPED);
        std::erase_if(now.subscriptions, [&](const Subscription &s) { return s.machine == id; });
        at(id).mail.clear();
        at(id).state = 0;
        ++now.stops;
        return 1;
    }
    uint64_t mark_faulted(uint32_t id) {
        if (!known(id) || at(id).life == MC_MACHINE_STOPPED)
            return 0;
        if (at(id).life != MC_MACHINE_FAULTED) {
            at(id).life = MC_MACHINE_FAULTED;
            end_requests_of(id, MC_PENDING_CLEANUP_REQUESTER_FAULTED);
        }
        return 1;
    }

    // The effects in their order: the handler's before the emitted, kind by kind.
    bool commit(uint32_t self, const std::vector<Action> &effects, const Plan &plan) {
        const State before = now;
        std::vector<Request> completed;
        std::vector<std::pair<uint32_t, std::pair<int, Envelope>>> missed;
        reserved_.clear();
        auto each = [&](What first, What second, auto carry_out) {
            for (const Action &a : effects)
                if ((a.what == first || a.what == second) && !carry_out(a))
                    return false;
            return true;
        };
        const bool done = each(What::subscribe, What::unsubscribe,
                               [&](const Action &a) {
                                   const Subscription s{a.machine, a.kind, a.number};
                                   const auto place = std::find(now.subscriptions.begin(), now.subscriptions.end(), s);
                                   if (a.what == What::unsubscribe) {
                                       if (place != now.subscriptions.end())
                                           now.subscriptions.erase(place);
                                       return true;
                                   }
                                   if (!known(a.machine) || at(a.machine).life > MC_MACHINE_RUNNING)
                                       return false;
                                   if (place == now.subscriptions.end())
                                       now.subscriptions.push_back(s);
                                   return true;
                               }) &&
                          each(What::fill_send, What::emit_send,
                               [&](const Action &a) {
                                   if (refusal(a.machine) != 0)
                                       return false;
                                   deliver(a.machine, envelope(a.kind, a.what == What::fill_send ? a.other : self, a));
                                   return true;
                               }) &&
                          each(What::fill_ask, What::emit_ask,
                               [&](const Action &a) {
                                   if (refusal(a.machine) != 0 || find(a.number) != nullptr)
                                       return false;
                                   add_request(a.number != 0 ? a.number : mint(), self, a.machine, a, true);
                                   return true;
                               }) &&
                          each(What::fill_reply, What::emit_reply, [&](const Action &a) {
                              const Request *request = find(a.number);
                              if (request == nullptr || request->fresh || refusal(request->requester) != 0)
                                  return false;
                              completed.push_back(*request);
                              std::erase_if(now.requests, [&](const Request &r) { return r.id == a.number; });
                              deliver(completed.back().requester, reply_envelope(completed.back(), self, a));
                              return true;
                          });
        if (!done) {
            now = before;
            return false;
        }
        (void)each(What::publish, What::publish, [&](const Action &a) {
            for (const Subscription &s : now.subscriptions)
                if (s.kind == a.kind && s.routing == a.number) {
                    const Envelope e = envelope(a.kind, self, a);
                    if (const int why = refusal(s.machine); why != 0)
                        missed.push_back({s.machine, {why, e}});
                    else
                        deliver(s.machine, e);
                }
            return true;
        });
        if (plan.has_next != 0)
            at(self).state = plan.next;
        for (Request &request : now.requests)
            request.fresh = false;
        for (const Request &request : completed)
            complete(request);
        for (const auto &[dst, what] : missed)
            dead(dst, what.first, what.second);
        return true;
    }
    void end_step(uint32_t id) {
        reserved_.clear();
        running_ = 0;
        wake(id);
        const std::vector<Request> all = now.requests;
        for (const Request &request : all)
            if (timeout != 0 && tick_ - request.created >= timeout)
                end_request(request.id, MC_PENDING_CLEANUP_TIMEOUT);
    }

    std::set<uint64_t> reserved_; // ids that the running handler has emitted requests with
    uint64_t tick_ = 0;
    uint32_t running_ = 0;
};

} // namespace mc::machine::test
