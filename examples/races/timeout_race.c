/* timeout_race: a till asks a price server for the price of one article after another. It waits for each answer for 20 ms, many
 * times longer than the server takes; if there is none by then, it goes without that price.
 *
 * No article may get another one's price. */
#include <mc/mc.h>
#include <stdio.h>

#define PATIENCE_NS (20 * MC_MS)
enum { ARTICLES = 5 };

struct answer {
    int article;
    int cents;
};

struct server {
    mc_chan_t questions; /* articles */
    mc_chan_t answers;
};

static int price_of(int article) { return 100 + 7 * article; }

static int32_t serve(void *user) {
    const struct server *server = user;
    csp_descr("price server");
    for (int article; mc_recv(server->questions, &article) == MC_OK;) {
        mc_sleep(MC_MS / 10); /* looks it up */
        const struct answer answer = {article, price_of(article)};
        mc_send(server->answers, &answer);
    }
    return mc_chan_close(server->answers);
}

/* MC_OK with the price, or MC_E_TIMEDOUT. */
static int32_t ask(const struct server *server, int article, int *cents) {
    const int64_t deadline_ns = mc_after(PATIENCE_NS);
    struct answer answer;
    int32_t status = mc_send_until(server->questions, &article, deadline_ns);
    if (status != MC_OK)
        return status;
    status = mc_recv_until(server->answers, &answer, deadline_ns);
#ifdef FIXED
    /* Answers to questions that were given up still come, sooner or later: each says what it answers. */
    while (status == MC_OK && answer.article != article)
        status = mc_recv_until(server->answers, &answer, deadline_ns);
#else
    /* Too late for this question, throw it away. But it need not be there yet: then the next question gets it for its own. */
    if (status == MC_E_TIMEDOUT)
        mc_recv_try(server->answers, &answer);
#endif
    if (status == MC_OK)
        *cents = answer.cents;
    return status;
}

int main(void) {
    struct server server;
    mc_task_t task;
    int priced = 0;
    if (!csp_init_runtime(0) || mc_chan_create(0, sizeof(int), 1, NULL, NULL, &server.questions) != MC_OK ||
        mc_chan_create(0, sizeof(struct answer), 1, NULL, NULL, &server.answers) != MC_OK ||
        mc_spawn(0, serve, &server, NULL, &task) != MC_OK)
        return 2;
    for (int article = 0; article < ARTICLES; ++article) {
        int cents;
        if (ask(&server, article, &cents) != MC_OK)
            continue;
        if (cents != price_of(article))
            mc_sim_fail("an article was sold at the price of another one");
        ++priced;
    }
    mc_chan_close(server.questions);
    while (mc_recv(server.answers, NULL) == MC_OK) /* the server may still want to get rid of one */
        ;
    mc_join(task, MC_FOREVER, NULL);
    mc_chan_destroy(server.answers);
    mc_chan_destroy(server.questions);
    csp_shutdown_runtime();
    printf("%d of %d articles got their price, the others none\n", priced, ARTICLES);
    return 0;
}
