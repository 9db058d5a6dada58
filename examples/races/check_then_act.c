/* check_then_act: two clerks sell the seats of a flight, each to customers of his own who come at odd times. How many seats are
 * left stands on a card, which lies in a channel with room for one: who wants to look at it or to change it takes it out.
 * Tickets go into another channel, to the gate, where each seat may turn up only once. */
#include <mc/mc.h>
#include <stdio.h>

enum { SEATS = 5, CLERKS = 2, CUSTOMERS_EACH = 4 };

struct flight {
    mc_chan_t card;    /* holds how many seats are left; nothing while somebody has taken it out */
    mc_chan_t tickets; /* numbers of seats */
};

static void sell_one(const struct flight *flight) {
    int left;
    mc_recv(flight->card, &left);
#ifdef FIXED
    /* Nobody can look at the card until this ticket is on its way and the seat is off the card. */
    if (left > 0) {
        mc_send(flight->tickets, &left);
        --left;
    }
    mc_send(flight->card, &left);
#else
    /* Put back too early: until it is taken out again, the other clerk may look at it too and sell the same seat. */
    mc_send(flight->card, &left);
    if (left > 0) {
        mc_send(flight->tickets, &left);
        mc_recv(flight->card, &left);
        --left;
        mc_send(flight->card, &left);
    }
#endif
}

static int32_t clerk(void *user) {
    csp_descr("clerk");
    for (int i = 0; i < CUSTOMERS_EACH; ++i) {
        mc_sleep((int64_t)(mc_random() % (uint64_t)(5 * MC_MS)));
        sell_one(user);
    }
    return MC_OK;
}

static void board(mc_chan_t tickets) {
    int sold_before[SEATS + 1] = {0};
    int boarded = 0;
    for (int seat; mc_recv_try(tickets, &seat) == MC_OK; ++boarded)
        if (sold_before[seat]++ != 0)
            mc_sim_fail("one seat was sold to two passengers");
    if (boarded != SEATS)
        mc_sim_fail("there were customers enough, and a seat is empty");
}

int main(void) {
    const int all_seats = SEATS;
    struct flight flight;
    mc_task_t clerks[CLERKS];
    if (!csp_init_runtime(0) || mc_chan_create(0, sizeof(int), 1, NULL, NULL, &flight.card) != MC_OK ||
        mc_chan_create(0, sizeof(int), CLERKS * CUSTOMERS_EACH, NULL, NULL, &flight.tickets) != MC_OK ||
        mc_send(flight.card, &all_seats) != MC_OK)
        return 2;
    for (int i = 0; i < CLERKS; ++i)
        if (mc_spawn(0, clerk, &flight, NULL, &clerks[i]) != MC_OK)
            return 2;
    for (int i = 0; i < CLERKS; ++i)
        mc_join(clerks[i], MC_FOREVER, NULL);
    board(flight.tickets);
    mc_chan_destroy(flight.tickets);
    mc_chan_destroy(flight.card);
    csp_shutdown_runtime();
    puts("each seat was sold once");
    return 0;
}
