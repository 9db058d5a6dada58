/* lock_order: two accounts, each with a mutex, and two standing orders that move money between them, one this way and one that
 * way. A transfer has both accounts locked, so that nobody sees money that is on neither of them.
 *
 * All transfers must come to their end, and no money may come or go. */
#include <mc/mc.h>
#include <stdio.h>

enum { TRANSFERS = 4, OPENING_CENTS = 100000 };

struct account {
    mc_mutex_t lock;
    int64_t cents;
};

struct standing_order {
    const char *name;
    struct account *from;
    struct account *to;
    int64_t cents;
};

static void transfer(const struct standing_order *order) {
    struct account *from = order->from;
    struct account *to = order->to;
#ifdef FIXED
    /* Both at once, in one order, whichever way the money goes. */
    const mc_mutex_t both[] = {from->lock, to->lock};
    mc_mutex_lock_all(both, 2, MC_FOREVER);
#else
    /* A transfer the other way locks them the other way round: each of the two has its first, and waits for the other's. */
    mc_mutex_lock(from->lock);
    mc_mutex_lock(to->lock);
#endif
    from->cents -= order->cents;
    to->cents += order->cents;
    mc_mutex_unlock(to->lock);
    mc_mutex_unlock(from->lock);
}

static int32_t carry_out(void *user) {
    const struct standing_order *order = user;
    csp_descr("%s", order->name);
    for (int i = 0; i < TRANSFERS; ++i) {
        mc_sleep((int64_t)(mc_random() % (uint64_t)(2 * MC_MS)));
        transfer(order);
    }
    return MC_OK;
}

int main(void) {
    struct account rent = {0, OPENING_CENTS};
    struct account wages = {0, OPENING_CENTS};
    struct standing_order orders[] = {{"wages to rent", &wages, &rent, 900}, {"rent to wages", &rent, &wages, 150}};
    if (!csp_init_runtime(0) || mc_mutex_create(0, &rent.lock) != MC_OK || mc_mutex_create(0, &wages.lock) != MC_OK)
        return 2;
    for (int i = 0; i < 2; ++i)
        if (mc_spawn(0, carry_out, &orders[i], NULL, NULL) != MC_OK)
            return 2;
    /* Until both have ended. When they wait for each other it is MC_E_DEADLOCK, and the log says who has what and wants what. */
    if (mc_runtime_wait_quiescent(0, MC_FOREVER) != MC_OK)
        return 1;
    if (rent.cents + wages.cents != 2 * OPENING_CENTS)
        mc_sim_fail("money has come from nowhere, or gone there");
    mc_mutex_destroy(wages.lock);
    mc_mutex_destroy(rent.lock);
    csp_shutdown_runtime();
    puts("all transfers were made");
    return 0;
}
