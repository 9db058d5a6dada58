/* stale_balance: two bank cards for one account. Account and cards are machines on executors; each card is used at odd times, and
 * pays when the account has enough. The account must never be overdrawn, and no payment that it has the money for be refused. */
#include <mc/bridge.h>
#include <mc/mc.h>
#include <stdio.h>

enum { PRICE = 100, BALANCE = 5 * PRICE, CARDS = 2, PAYMENTS_EACH = 4 };
enum { PAY = 1, LOOK = 2, SEEN = 3, TAKE = 4 };

struct bank {
    mc_machine_runtime_t machines;
    mc_machine_id_t account;
    mc_machine_id_t cards[CARDS];
};

struct user {
    struct bank *bank;
    mc_machine_id_t card;
};

static mc_dispatch_result_t take(uint64_t balance, mc_machine_dispatch_txn_t *txn) {
    txn->has_next_state = 1;
    txn->next_state = balance - PRICE;
    return MC_DISPATCH_OK;
}

/* Its state is the balance. */
static mc_dispatch_result_t account(void *ctx, mc_machine_id_t self, uint64_t balance, const mc_machine_envelope_t *env,
                                    mc_machine_dispatch_txn_t *txn, uint64_t *fault) {
    (void)ctx, (void)self, (void)fault;
#ifdef FIXED
    /* Looks and takes in one dispatch. That is a transaction: nobody else's comes between. */
    if (env->kind == PAY && balance >= PRICE)
        return take(balance, txn);
#else
    /* Two dispatches: between them the other card may look, too, and see money that is spoken for. */
    if (env->kind == LOOK)
        __mc_machine_emit_reply(env->reply_cap_id, SEEN, balance, 0);
    if (env->kind == TAKE)
        return take(balance, txn);
#endif
    return MC_DISPATCH_OK;
}

static mc_dispatch_result_t card(void *ctx, mc_machine_id_t self, uint64_t state, const mc_machine_envelope_t *env,
                                 mc_machine_dispatch_txn_t *txn, uint64_t *fault) {
    const struct bank *bank = ctx;
    (void)self, (void)state, (void)txn, (void)fault;
#ifdef FIXED
    __mc_machine_emit_send(bank->account, env->kind, 0, 0);
#else
    if (env->kind == PAY)
        __mc_machine_emit_request(bank->account, LOOK, 0, 0, 0);
    if (env->kind == SEEN && env->payload0 >= PRICE)
        __mc_machine_emit_send(bank->account, TAKE, 0, 0);
#endif
    return MC_DISPATCH_OK;
}

static int32_t shop(void *argument) {
    const struct user *user = argument;
    csp_descr("shopper");
    for (int i = 0; i < PAYMENTS_EACH; ++i) {
        mc_machine_envelope_t pay = {.kind = PAY};
        mc_sleep((int64_t)(mc_random() % (uint64_t)(20 * MC_MS)));
        if (mc_machine_runtime_enqueue(&user->bank->machines, user->card, &pay) != MC_MAILBOX_ENQUEUE_OK)
            return MC_E_CLOSED;
    }
    return MC_OK;
}

static mc_machine_id_t spawn(struct bank *bank, mc_machine_dispatch_txn_fn handler) {
    mc_machine_id_t id = 0;
    mc_machine_runtime_spawn(&bank->machines, CARDS * PAYMENTS_EACH, &id);
    mc_machine_runtime_bind_dispatch(&bank->machines, id, handler, bank);
    return mc_machine_runtime_start(&bank->machines, id) ? id : 0;
}

int main(void) {
    struct bank bank;
    struct user users[CARDS];
    mc_task_t shoppers[CARDS];
    if (!csp_init_runtime(0))
        return 2;
    mc_machine_runtime_init(&bank.machines);
    bank.account = spawn(&bank, account);
    for (int i = 0; i < CARDS; ++i)
        bank.cards[i] = spawn(&bank, card);
    mc_machine_runtime_set_state(&bank.machines, bank.account, BALANCE);
    if (mc_machine_attach(&bank.machines, 0) != MC_OK)
        return 2;
    for (int i = 0; i < CARDS; ++i) {
        users[i] = (struct user){&bank, bank.cards[i]};
        if (mc_spawn(0, shop, &users[i], NULL, &shoppers[i]) != MC_OK)
            return 2;
    }
    for (int i = 0; i < CARDS; ++i) {
        int32_t paid = 0;
        if (mc_join(shoppers[i], MC_FOREVER, &paid) != MC_OK || paid != MC_OK)
            return 2;
    }
    if (mc_machine_run_until_idle(&bank.machines, MC_FOREVER) != MC_OK)
        return 2;
    const int64_t left = (int64_t)mc_machine_runtime_state(&bank.machines, bank.account);
    if (left < 0)
        mc_sim_fail("the account is overdrawn");
    if (left > 0)
        mc_sim_fail("there was money enough, and a payment was refused");
    mc_machine_runtime_drop(&bank.machines);
    csp_shutdown_runtime();
    puts("everything that the account had was paid, and no more");
    return 0;
}
