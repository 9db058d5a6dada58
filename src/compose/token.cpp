#include "compose/token.hpp"

#include "machine/step.hpp"
#include "sched/primitive.hpp"

namespace mc::compose {
namespace {

base::Slab<Token> &token_slab() noexcept {
    static constinit base::Slab<Token> slab;
    return slab;
}

} // namespace

Token *Token::make() noexcept {
    Token *token = token_slab().acquire();
    if (token == nullptr)
        return nullptr;
    if (token->dispatch_ == nullptr)
        token->dispatch_ = base::create<Engine::Dispatch>(nullptr);
    if (token->dispatch_ != nullptr)
        return token;
    token_slab().release(token);
    return nullptr;
}

void Token::give_back(Token *token) noexcept { token_slab().release(token); }

void Token::open(MachineHost &host, machine::Machine *machine, mc_machine_polled *out) noexcept {
    host_ = &host;
    machine_ = machine;
    txn_ = {};
    subscriptions_.clear();
    const int64_t opened_ns = opened_ns_ = host.now_ns();
    (void)host.uses_.fetch_add(1, sync::relaxed); // the caller's pin keeps it from ending
    const uint64_t handle = base::issue_handle(this, base::HandleKind::txn);
    out->token = handle;
    out->state = dispatch_->state;
    out->machine = dispatch_->machine;
    out->reserved = 0;
    out->envelope = dispatch_->envelope;
    {
        const base::SpinGuard guard(host.tokens_lock_);
        host.tokens_.push_back(this);
        // Within the lock: who closes the host finds it in the list and open, or has been there before, and we see that it is closed.
        // release: pairs with change. From here on it is anybody's who has the handle.
        word_.store(make_word(base::handle_generation(handle), State::open), sync::release);
    }
    if (const int64_t timeout_ns = host.token_timeout_ns_.load(sync::relaxed); timeout_ns != 0)
        host.set_alarm(host.expiry_, later(opened_ns, timeout_ns));
    if (host.is_closed())
        expire(handle);
}

// act(token, effects), with the token to itself. When its host has been closed meanwhile, whoever did that has not found it, since it
// was busy.
template <class Act> int32_t Token::use(uint64_t handle, Act act) noexcept {
    Token *token = base::resolve_handle(token_slab(), base::HandleKind::txn, handle);
    const uint32_t of = base::handle_generation(handle);
    if (token == nullptr || !token->change(of, State::open, State::busy))
        return MC_E_STALE;
    const int32_t status = act(*token, *token->dispatch_);
    const MachineHost &host = *token->host_; // type-stable
    (void)token->change(of, State::busy, State::open);
    if (host.has_been_closed()) [[unlikely]]
        expire(handle);
    return status;
}

int32_t Token::send(uint64_t handle, uint32_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1) noexcept {
    return use(handle, [=](Token &, Engine::Dispatch &to) {
        return to.send(dst, kind, payload0, payload1) ? MC_OK : MC_E_NOMEM;
    });
}

int32_t Token::request(uint64_t handle, uint32_t dst, uint64_t kind, uint64_t payload0, uint64_t payload1,
                       uint64_t site, uint64_t *pending) noexcept {
    return use(handle, [=](Token &, Engine::Dispatch &to) {
        const uint64_t id = to.request(dst, kind, payload0, payload1, site);
        if (id == 0)
            return MC_E_NOMEM;
        if (pending != nullptr)
            *pending = id;
        return MC_OK;
    });
}

int32_t Token::reply(uint64_t handle, uint64_t cap, uint64_t kind, uint64_t payload0, uint64_t payload1) noexcept {
    return use(handle, [=](Token &, Engine::Dispatch &to) {
        return to.reply(cap, kind, payload0, payload1) ? MC_OK : MC_E_NOMEM;
    });
}

int32_t Token::publish(uint64_t handle, uint64_t kind, uint64_t routing, uint64_t payload0,
                       uint64_t payload1) noexcept {
    if ((payload1 & MC_PAYLOAD_LAYOUT_OWNED_MASK) != 0)
        return MC_E_INVAL;
    return use(handle, [=](Token &, Engine::Dispatch &to) {
        return to.publish(kind, routing, payload0, payload1) ? MC_OK : MC_E_NOMEM;
    });
}

int32_t Token::subscribe(uint64_t handle, uint64_t kind, uint64_t routing, mc_subscription_op_t op) noexcept {
    return use(handle, [=](Token &token, Engine::Dispatch &to) {
        if (!token.subscriptions_.reserve(1))
            return MC_E_NOMEM;
        token.subscriptions_.push({op, to.machine, kind, routing});
        return MC_OK;
    });
}

int32_t Token::set_state(uint64_t handle, uint64_t state) noexcept {
    return use(handle, [=](Token &token, Engine::Dispatch &) {
        token.txn_.has_next_state = 1;
        token.txn_.next_state = state;
        return MC_OK;
    });
}

// The token behind the handle, ended by the caller; null: it has ended, or another thread is using it.
Token *Token::end(uint64_t handle) noexcept {
    Token *token = base::resolve_handle(token_slab(), base::HandleKind::txn, handle);
    return token != nullptr && token->change(base::handle_generation(handle), State::open, State::ended) ? token
                                                                                                         : nullptr;
}

void Token::expire(uint64_t handle) noexcept {
    if (Token *token = end(handle); token != nullptr)
        (void)token->finish(MC_DISPATCH_FAULT, MC_FAULT_CODE_TOKEN_EXPIRED);
}

int32_t Token::commit(uint64_t handle) noexcept {
    Token *token = end(handle);
    return token == nullptr ? MC_E_STALE : token->finish(MC_DISPATCH_OK, 0);
}

int32_t Token::abort(uint64_t handle, uint64_t fault_code) noexcept {
    Token *token = end(handle);
    if (token == nullptr)
        return MC_E_STALE;
    (void)token->finish(MC_DISPATCH_FAULT, fault_code);
    return MC_OK;
}

// By who has ended it.
int32_t Token::finish(mc_dispatch_result_t result, uint64_t code) noexcept {
    MachineHost &host = *host_;
    {
        const base::SpinGuard guard(host.tokens_lock_);
        host.tokens_.remove(this);
    }
    txn_.subscriptions = subscriptions_.begin();
    txn_.subscriptions_len = subscriptions_.size();
    host.engine_->finish_polled(*dispatch_, *machine_, result, code, txn_);
    host.engine_->leave(*dispatch_);
    int32_t status = MC_OK;
    if (!dispatch_->committed)
        switch (dispatch_->refusal) {
        case machine::Refusal::full:
            status = MC_E_AGAIN;
            break;
        case machine::Refusal::late:
            status = MC_E_NOENT;
            break;
        case machine::Refusal::gone:
            status = MC_E_CLOSED;
            break;
        default:
            status = MC_E_CRASHED;
        }
    if (base::retire_handle(this))
        token_slab().release(this);
    host.one_less();
    host.unpin();
    return status;
}

} // namespace mc::compose
