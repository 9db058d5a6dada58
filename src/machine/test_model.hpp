// A sequential reference of machines: what mc/machine.h promises, in the plainest words: maps, copies, and no memory of its
// own. A transaction is: copy everything, carry the effects out one by one, and take the copy back if one fails. A box
// lives while an envelope in a mailbox, a pending request or a machine's state mentions it; nothing is counted.
//
// history_test.cpp runs it beside the library. Each writes down what its handlers and hooks see, and what calls return. The
// library goes first: where it had no memory for something, the reference reads that in what the library has written
// down at this very place, and holds it to what a lack of memory may do there.
#pragma once

#include "machine/boxes.hpp"
#include "machine/test_history.hpp"

#include <mc/machine.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace mc::machine::test {

class Model {
public:
    using Envelope = mc_machine_envelope_t;
    std::vector<std::string> log;
    const std::vector<std::string> *told = nullptr; // the library's log of this call, when it lacked memory in it
    mc_machine_fault_policy_t policy = MC_FAULT_POLICY_MARK_FAULTED;
    uint64_t timeout = 0;

    struct Mail {
        Envelope envelope;
        uint64_t request = 0; // its serial number
    };
    struct Machine {
        int life = MC_MACHINE_CREATED;
        uint64_t bound = 1, tag = 0, state = 0;
        std::deque<Mail> mail;
        bool has_mailbox = false; // from the first envelope until the stop
    };
    struct Request {
        uint64_t id, serial;
        uint32_t requester, dst;
        uint64_t site, payload0, payload1, created;
        bool down; // the requester was, when it asked
    };
    struct State {
        std::vector<Machine> machines{1}; // by id
        std::deque<uint32_t> ready;
        std::vector<Request> requests;
        std::vector<std::vector<uint64_t>> subscriptions; // machine, kind, routing
        uint64_t next_id = 1, serials = 0, created = 0, stops = 0, ended[5] = {};
    } now;

    // Every box that is alive between calls, with its layout.
    std::map<uint64_t, uint64_t> boxes() const {
        std::map<uint64_t, uint64_t> all;
        auto note = [&](uint64_t word0, uint64_t word1) {
            if (is_box(word0, word1))
                all[word0] = word1 & MC_PAYLOAD_LAYOUT_ID_MASK;
        };
        for (const Machine &machine : now.machines) {
            for (const Mail &mail : machine.mail) {
                note(mail.envelope.payload0, mail.envelope.payload1);
                note(mail.envelope.origin_payload0, mail.envelope.origin_payload1);
            }
            if (const uint64_t layout = layout_of_state(machine.tag); layout != 0 && machine.state != 0)
                all[machine.state] = layout;
        }
        for (const Request &request : now.requests)
            note(request.payload0, request.payload1);
        return all;
    }

    void act(const Action &a) { say("result", {result_of(a)}); }

    // How the library's went; returns how it should.
    uint64_t step(const Plan &plan, uint64_t status) {
        if (told != nullptr && status == MC_STEP_IDLE)
            return status; // it has not begun
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
        const Row *row = row_of(at(id).tag, got.kind);
        const bool handled = at(id).tag == 0 || row != nullptr;
        uint64_t code = handled ? plan.code : uint64_t{MC_FAULT_CODE_DESCRIPTOR_ROW_MISSING};
        mc_dispatch_result_t result = handled ? plan.result : MC_DISPATCH_FAULT;
        std::vector<Action> effects;
        if (handled)
            effects = handle(id, plan, got);
        if (result == MC_DISPATCH_OK && at(id).life == MC_MACHINE_RUNNING) {
            if (!(told != nullptr && status == MC_STEP_FAULTED) && commit(id, effects)) {
                if (plan.has_next != 0) {
                    at(id).state = plan.next;
                    at(id).tag = tag_after(at(id).tag, row, plan.next_tag);
                }
                publish(id, effects);
                return end_step(id, MC_STEP_DID_WORK);
            }
            result = MC_DISPATCH_FAULT;
            code = MC_FAULT_CODE_TXN_COMMIT_REJECTED;
        }
        reserved_.clear();
        if (result == MC_DISPATCH_OK || at(id).life == MC_MACHINE_STOPPED)
            return end_step(id, MC_STEP_DID_WORK);
        const bool stops = result == MC_DISPATCH_STOP;
        (void)(stops || policy == MC_FAULT_POLICY_MARK_STOPPED ? stop(id) : mark_faulted(id));
        if (!stops)
            say("fault", {id, code});
        return end_step(id, stops ? MC_STEP_DID_WORK : MC_STEP_FAULTED);
    }

    static uint64_t tag_after(uint64_t tag, const Row *row, uint64_t of_handler) {
        return tag == 0 ? 0 : of_handler != 0 ? of_handler : row->next_tag != 0 ? row->next_tag : tag;
    }

private:
    void say(const char *what, std::initializer_list<uint64_t> numbers) { log.push_back(text(what, numbers)); }
    // The library says so at this place, and may.
    bool lacked_memory(const std::string &line) const {
        return told != nullptr && log.size() < told->size() && (*told)[log.size()] == line;
    }
    Machine &at(uint32_t id) { return now.machines[id]; }
    bool known(uint32_t id) const { return id != 0 && id < now.machines.size(); }
    static Envelope envelope(uint64_t src, const Action &a) {
        return {a.kind, src, 0, 0, a.payload0, a.payload1, 0, 0, 0};
    }
    // 0, or why not, for an envelope more.
    int refusal(uint32_t dst) {
        if (!known(dst))
            return MC_DEAD_LETTER_UNKNOWN_MACHINE;
        if (at(dst).life >= MC_MACHINE_FAULTED)
            return at(dst).life == MC_MACHINE_FAULTED ? MC_DEAD_LETTER_FAULTED_MACHINE : MC_DEAD_LETTER_STOPPED_MACHINE;
        return at(dst).mail.size() < at(dst).bound ? 0 : MC_DEAD_LETTER_MAILBOX_FULL;
    }
    // Likewise, and then it is a dead letter. Without memory as without room.
    int refused(uint32_t dst, const Envelope &e) {
        int why = refusal(dst);
        if (why == 0 && lacked_memory(text("dead", {dst, MC_DEAD_LETTER_MAILBOX_FULL}, e)))
            why = MC_DEAD_LETTER_MAILBOX_FULL;
        if (why != 0)
            log.push_back(text("dead", {dst, static_cast<uint64_t>(why)}, e));
        return why;
    }
    void wake(uint32_t id) {
        if (id != running_ && at(id).life == MC_MACHINE_RUNNING && !at(id).mail.empty() &&
            std::find(now.ready.begin(), now.ready.end(), id) == now.ready.end())
            now.ready.push_back(id);
    }
    void deliver(uint32_t dst, const Envelope &e, uint64_t request = 0) {
        at(dst).mail.push_back({e, request});
        at(dst).has_mailbox = true;
        wake(dst);
    }
    Request *find(uint64_t id) {
        const auto place =
            std::find_if(now.requests.begin(), now.requests.end(), [&](const Request &r) { return r.id == id; });
        return place == now.requests.end() ? nullptr : &*place;
    }
    uint64_t mint() {
        while (find(now.next_id) != nullptr || reserved_.count(now.next_id) != 0)
            ++now.next_id;
        return now.next_id++;
    }
    void add_request(uint64_t id, uint32_t src, const Action &a) {
        const bool down = known(src) && at(src).life >= MC_MACHINE_FAULTED;
        now.requests.push_back({id, ++now.serials, src, a.machine, a.site, a.payload0, a.payload1, tick_, down});
        ++now.created;
        Envelope e = envelope(src, a);
        e.reply_cap_id = id;
        deliver(a.machine, e, now.serials);
    }
    void answer_request(const Request &request, uint32_t src, const Action &a) {
        deliver(request.requester,
                {a.kind, src, 0, request.id, a.payload0, a.payload1, request.payload0, request.payload1, request.site});
        std::erase_if(now.requests, [id = request.id](const Request &r) { return r.id == id; });
    }
    void say_ended(const Request &request, mc_pending_cleanup_reason_t reason) {
        ++now.ended[reason];
        say("request", {request.requester, request.id, request.site, static_cast<uint64_t>(reason)});
    }
    // Without a reply: the box is gone, wherever the request is.
    void end_request(const Request gone, mc_pending_cleanup_reason_t reason) {
        std::erase_if(now.requests, [&](const Request &r) { return r.id == gone.id; });
        if (is_box(gone.payload0, gone.payload1))
            for (Mail &mail : at(gone.dst).mail)
                if (mail.request == gone.serial)
                    mail.envelope.payload0 = mail.envelope.payload1 = 0;
        say_ended(gone, reason);
    }
    template <class Which> void end_requests(Which which, mc_pending_cleanup_reason_t reason) {
        for (const Request &request : std::vector<Request>(now.requests))
            if (which(request))
                end_request(request, reason);
    }
    void go_down(uint32_t id, int life, mc_pending_cleanup_reason_t reason) {
        at(id).life = life;
        end_requests([=](const Request &r) { return r.requester == id && !r.down; }, reason);
    }

    // --- calls

    uint64_t result_of(const Action &a) {
        switch (a.what) {
        case What::send:
            return result_of_refusal(send(a.machine, envelope(0, a)));
        case What::ask: {
            if (refused(a.machine, envelope(a.other, a)) != 0)
                return 0;
            const uint64_t id = mint();
            add_request(id, a.other, a);
            return id;
        }
        case What::reply:
            return reply(a);
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
            if (lacked_memory(text("result", {0})))
                return 0;
            now.machines.push_back(
                {MC_MACHINE_CREATED, std::max<uint64_t>(a.number, 1), first_tag(now.machines.size()), 0, {}, false});
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
    static uint64_t result_of_refusal(int why) {
        return why <= 1 ? static_cast<uint64_t>(why) : why == MC_DEAD_LETTER_MAILBOX_FULL ? 3 : 2;
    }
    int send(uint32_t dst, const Envelope &e) {
        const int why = refused(dst, e);
        if (why == 0)
            deliver(dst, e);
        return why;
    }
    uint64_t reply(const Action &a) {
        Envelope e = envelope(a.other, a);
        if (find(a.number) == nullptr) {
            log.push_back(text("dead", {0, MC_DEAD_LETTER_REPLY_CAP_UNKNOWN}, e));
            return MC_REPLY_CAP_UNKNOWN;
        }
        const Request request = *find(a.number);
        e.pending_id = request.id;
        e.origin_request_site_key = request.site;
        if (const int down = known(request.requester) ? at(request.requester).life : 0; down >= MC_MACHINE_FAULTED)
            end_request(request, down == MC_MACHINE_STOPPED ? MC_PENDING_CLEANUP_REQUESTER_STOPPED
                                                            : MC_PENDING_CLEANUP_REQUESTER_FAULTED);
        switch (refused(request.requester, e)) {
        case 0:
            answer_request(request, a.other, a);
            say_ended(request, MC_PENDING_CLEANUP_COMPLETED);
            return MC_REPLY_OK;
        case MC_DEAD_LETTER_UNKNOWN_MACHINE:
            return MC_REPLY_DEST_UNKNOWN;
        case MC_DEAD_LETTER_MAILBOX_FULL:
            return MC_REPLY_FULL;
        default:
            return MC_REPLY_DEST_NOT_RUNNING;
        }
    }
    uint64_t stop(uint32_t id) {
        if (!known(id) || at(id).life == MC_MACHINE_STOPPED)
            return known(id);
        go_down(id, MC_MACHINE_STOPPED, MC_PENDING_CLEANUP_REQUESTER_STOPPED);
        std::erase_if(now.subscriptions, [&](const auto &s) { return s[0] == id; });
        at(id).mail.clear();
        at(id).has_mailbox = false;
        at(id).state = 0;
        ++now.stops;
        return 1;
    }
    uint64_t mark_faulted(uint32_t id) {
        if (!known(id) || at(id).life == MC_MACHINE_STOPPED)
            return 0;
        if (at(id).life != MC_MACHINE_FAULTED)
            go_down(id, MC_MACHINE_FAULTED, MC_PENDING_CLEANUP_REQUESTER_FAULTED);
        return 1;
    }

    // --- a handler, and its transaction

    // What it does at once; the effects that are left, in their order: kind by kind, the filled in before the emitted.
    std::vector<Action> handle(uint32_t id, const Plan &plan, const Envelope &got) {
        log.push_back(text("handle", {id, at(id).state}, got));
        std::vector<Action> effects;
        for (Action a : plan.actions) {
            if (a.way == Way::direct) {
                act(a);
                continue;
            }
            if (a.way == Way::emitted) {
                const bool staged = !(a.what == What::publish && (a.payload1 & MC_PAYLOAD_LAYOUT_OWNED_MASK) != 0) &&
                                    !lacked_memory(text("emit", {0}));
                if (staged && a.what == What::ask)
                    reserved_.insert(a.number = mint());
                say("emit", {staged && a.what == What::ask ? a.number : staged});
                if (!staged)
                    continue;
            }
            effects.push_back(a);
        }
        const auto place = [](const Action &a) {
            return 2 * static_cast<int>(a.what == What::unsubscribe ? What::subscribe : a.what) -
                   (a.way == Way::filled ? 1 : 0);
        };
        std::stable_sort(effects.begin(), effects.end(),
                         [&](const Action &a, const Action &b) { return place(a) < place(b); });
        return effects;
    }
    bool commit(uint32_t self, const std::vector<Action> &effects) {
        const State before = now;
        std::vector<Request> completed;
        reserved_.clear();
        for (const Action &a : effects)
            if (!carry_out(self, a, before, &completed)) {
                now = before;
                return false;
            }
        for (const Request &request : completed)
            say_ended(request, MC_PENDING_CLEANUP_COMPLETED);
        return true;
    }
    bool carry_out(uint32_t self, const Action &a, const State &before, std::vector<Request> *completed) {
        const std::vector<uint64_t> subscription{a.machine, a.kind, a.number};
        const Request *request = find(a.number);
        switch (a.what) {
        case What::unsubscribe:
            std::erase(now.subscriptions, subscription);
            return true;
        case What::subscribe:
            if (std::count(now.subscriptions.begin(), now.subscriptions.end(), subscription) == 0)
                now.subscriptions.push_back(subscription);
            return known(a.machine) && at(a.machine).life <= MC_MACHINE_RUNNING;
        case What::send:
            if (refusal(a.machine) != 0)
                return false;
            deliver(a.machine, envelope(a.way == Way::filled ? a.other : self, a));
            return true;
        case What::ask:
            if (refusal(a.machine) != 0 || request != nullptr)
                return false;
            add_request(a.number != 0 ? a.number : mint(), self, a);
            return true;
        case What::reply:
            // One that this transaction makes cannot be answered in it.
            if (request == nullptr || request->serial > before.serials || refusal(request->requester) != 0)
                return false;
            completed->push_back(*request);
            answer_request(completed->back(), self, a);
            return true;
        default: // to be published when the rest is done
            return true;
        }
    }
    // Who has no room, or is down, misses it.
    void publish(uint32_t self, const std::vector<Action> &effects) {
        for (const Action &a : effects)
            for (const auto &s : now.subscriptions)
                if (a.what == What::publish && s[1] == a.kind && s[2] == a.number)
                    (void)send(static_cast<uint32_t>(s[0]), envelope(self, a));
    }
    uint64_t end_step(uint32_t id, uint64_t status) {
        reserved_.clear();
        running_ = 0;
        wake(id);
        end_requests([&](const Request &r) { return timeout != 0 && tick_ - r.created >= timeout; },
                     MC_PENDING_CLEANUP_TIMEOUT);
        return status;
    }

    std::set<uint64_t> reserved_; // ids that the running handler has emitted requests with
    uint64_t tick_ = 0;
    uint32_t running_ = 0;
};

} // namespace mc::machine::test
