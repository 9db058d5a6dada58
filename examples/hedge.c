/* hedge: asks several replicas at once and takes the first answer. The others are cancelled, and when ask() returns, none of
 * them is left, whether there was an answer, an error or none in time.
 *
 * The replicas are microthreads that sleep as long as a slow network would; one has died and never answers. They run in a
 * runtime of their own with two executors, and ask() may be called from any thread, as from main here. */
#include <mc/mc.h>
#include <stdio.h>

#define MS(n) ((n)*MC_MS)

enum { most_replicas = 8 };

struct replica {
    const char *name;
    int64_t latency_ns; /* MC_FOREVER: it has died */
    int32_t status;     /* what it answers with: MC_OK, or an error */
};

struct question {
    mc_group_t group;
    mc_chan_t answer; /* room for one: who comes second finds it full */
};

struct request { /* of one replica */
    struct question *question;
    const struct replica *replica;
};

static int32_t ask_one(void *user) {
    const struct request *request = user;
    const struct replica *replica = request->replica;
    if (mc_sleep(replica->latency_ns) != MC_OK)
        return MC_OK; /* cancelled: somebody else was faster, or it is too late */
    if (replica->status != MC_OK)
        return replica->status; /* an error: the group cancels the others */
    if (mc_send_try(request->question->answer, &replica) == MC_OK)
        mc_group_cancel(request->question->group, 0);
    return MC_OK;
}

/* MC_OK with the replica that was first, the first error of one, or MC_E_TIMEDOUT. At most most_replicas, else MC_E_LIMIT. */
static int32_t ask(mc_runtime_t rt, const struct replica *replicas, int count, int64_t timeout_ns,
                   const struct replica **first) {
    struct question question;
    struct request requests[most_replicas];
    int32_t error = MC_OK;
    if (count > most_replicas)
        return MC_E_LIMIT;
    int32_t status = mc_chan_create(rt, sizeof *first, 1, NULL, NULL, &question.answer);
    if (status != MC_OK)
        return status;
    status = mc_group_create(rt, mc_after(timeout_ns), &question.group);
    if (status == MC_OK) {
        for (int i = 0; i < count && status == MC_OK; ++i) {
            mc_spawn_options options = MC_SPAWN_OPTIONS_INIT;
            options.name = replicas[i].name;
            requests[i].question = &question;
            requests[i].replica = &replicas[i];
            status = mc_group_spawn(question.group, ask_one, &requests[i], &options);
        }
        if (status != MC_OK)
            mc_group_cancel(question.group, status);
        mc_group_wait(question.group, MC_FOREVER, &error); /* requests stay ours until here */
        mc_group_destroy(question.group);
        if (status == MC_OK)
            status = error;
        if (status == MC_OK && mc_recv_try(question.answer, first) != MC_OK)
            status = MC_E_TIMEDOUT;
    }
    mc_chan_destroy(question.answer);
    return status;
}

static void show(const char *what, int32_t status, const struct replica *first) {
    if (status == MC_OK)
        printf("%s: %s\n", what, first->name);
    else
        printf("%s: %s\n", what, mc_strerror(status));
}

int main(void) {
    const struct replica healthy[] = {{"oslo", MS(2000), MC_OK}, {"rome", MS(20), MC_OK}, {"lima", MC_FOREVER, MC_OK}};
    const struct replica broken[] = {{"oslo", MS(2000), MC_OK}, {"rome", MS(20), MC_E_IO}};
    const struct replica slow[] = {{"oslo", MS(2000), MC_OK}, {"lima", MC_FOREVER, MC_OK}};
    const struct replica *first = NULL;
    mc_runtime_options options = MC_RUNTIME_OPTIONS_INIT;
    mc_runtime_t rt;
    options.executors = 2;
    int32_t status = mc_runtime_create(&options, &rt);
    if (status == MC_OK)
        status = mc_runtime_start(rt);
    if (status != MC_OK) {
        fprintf(stderr, "hedge: no runtime: %s\n", mc_strerror(status));
        return 1;
    }
    status = ask(rt, healthy, 3, MS(1500), &first);
    show("one is fast", status, first);
    status = ask(rt, broken, 2, MS(1500), &first);
    show("one fails", status, first);
    status = ask(rt, slow, 2, MS(50), &first);
    show("none in time", status, first);
    status = mc_runtime_shutdown(rt, MS(1000));
    if (status == MC_OK)
        status = mc_runtime_destroy(rt);
    return status == MC_OK ? 0 : 1;
}
