/* A fork of a process in which the library is at work: in the child every call that would need the runtime says so and
 * returns at once, what needs no runtime works, the child ends as usual, and the parent goes on. */
#define _GNU_SOURCE
#include <mc/mc.h>
#include <string.h>

#include "check.h"

static csp_writer writer;
static csp_reader reader;
static mc_chan_t channel;
static mc_task_t waiting, self;
static int logged;

static void count_log(void *user, int32_t level, int32_t code, const char *text) {
    (void)user, (void)level, (void)code, (void)text;
    logged++;
}

static int32_t nothing(void *user) {
    (void)user;
    return 0;
}
static void nothing_at_all(void *user) { (void)user; }

static int32_t wait_for_end(void *user) {
    (void)user;
    CHECK_EQ(csp_recv(reader, NULL), -1);
    return 6;
}

static void in_the_child(void *from_microthread) {
    uint64_t element = 1;
    uint32_t done = 0;
    mc_task_t task = 0;
    mc_chan_t other = 0;
    csp_writer w = NULL;
    csp_reader r = NULL;
    csp_chanop arm = {csp_wait(writer), NULL};

    CHECK_EQ(mc_spawn(0, nothing, NULL, NULL, &task), MC_E_FORKED);
    CHECK_EQ(mc_join(waiting, MC_FOREVER, NULL), MC_E_FORKED);
    CHECK_EQ(mc_join(waiting, MC_NOW, NULL), MC_E_FORKED);
    CHECK(mc_detach(waiting) < 0);
    CHECK_EQ(mc_chan_create(0, 8, 1, NULL, NULL, &other), MC_E_FORKED);
    CHECK_EQ(mc_send(channel, &element), MC_E_FORKED);
    CHECK_EQ(mc_recv(channel, &element), MC_E_FORKED);
    CHECK_EQ(mc_send_try(channel, &element), MC_E_FORKED);
    CHECK_EQ(mc_recv_try(channel, &element), MC_E_FORKED);
    CHECK_EQ(mc_send_until(channel, &element, MC_FOREVER), MC_E_FORKED);
    CHECK_EQ(mc_recv_until(channel, &element, MC_NOW), MC_E_FORKED);
    CHECK_EQ(mc_send_n(channel, &element, 1, &done), MC_E_FORKED);
    CHECK_EQ(mc_recv_n(channel, &element, 1, &done), MC_E_FORKED);
    CHECK(mc_chan_writer(channel, &w) < 0 && w == NULL);
    CHECK(mc_chan_reader(channel, &r) < 0 && r == NULL);
    CHECK(mc_chan_close(channel) < 0);
    CHECK(mc_chan_destroy(channel) < 0);
    CHECK(task == 0 && other == 0 && element == 1);

    CHECK_EQ(mc_epoch_pin(0), MC_E_FORKED);
    CHECK_EQ(mc_epoch_unpin(0), MC_E_FORKED);
    CHECK_EQ(mc_epoch_advance(0), MC_E_FORKED);
    CHECK_EQ(mc_epoch_barrier(0, MC_FOREVER), MC_E_FORKED);
    CHECK_EQ(mc_epoch_set_hook(0, NULL, NULL), MC_E_FORKED);
    CHECK_EQ(csp_spawn(nothing_at_all, NULL), 0);
    CHECK_EQ(csp_chan(&w, &r, NULL), 0);
    CHECK(w == NULL && r == NULL);
    CHECK_EQ(csp_send(writer, NULL), MC_E_FORKED);
    CHECK_EQ(csp_try_send(writer, NULL), MC_E_FORKED);
    CHECK_EQ(csp_send_until(writer, NULL, MC_FOREVER), MC_E_FORKED);
    CHECK_EQ(csp_recv(reader, NULL), MC_E_FORKED);
    CHECK_EQ(csp_try_recv(reader, NULL), MC_E_FORKED);
    CHECK_EQ(csp_recv_until(reader, NULL, MC_FOREVER), MC_E_FORKED);
    CHECK_EQ(csp_alt(&arm, 1, 0), MC_E_FORKED);
    CHECK_EQ(csp_prialt(&arm, 1, 1), MC_E_FORKED);
    CHECK_EQ(csp_alt_until(&arm, 1, MC_FOREVER), MC_E_FORKED);
    CHECK_EQ(csp_prialt_until(&arm, 1, MC_NOW), MC_E_FORKED);
    CHECK_EQ(csp_writer_close(writer), MC_E_FORKED);
    CHECK(csp_after(0) == NULL);
    CHECK(csp_tick(1) == NULL);
    CHECK(csp_skip() == NULL);
    CHECK(logged >= 5); /* spawn, chan, after, tick, skip: they have no code to return */

    CHECK_EQ(csp_run(), 0);
    csp_schedule();
    csp_yield();
    csp_descr("child %d", 1);
    csp_chdescr(writer, "parent's");
    csp_chuncount(reader);
    csp_writer_release(writer);
    csp_reader_release(reader);

    CHECK(mc_now() > 0 && mc_after(1) > 0);
    CHECK(mc_random() != mc_random());
    CHECK(strcmp(mc_strerror(MC_E_FORKED), mc_strerror(MC_OK)) != 0);
    CHECK_EQ(mc_abi_version(), MC_VERSION_MAJOR << 16 | MC_VERSION_MINOR);
    (void)from_microthread;
}

/* A fork on a microthread's stack: its child goes on there. */
static int32_t fork_inside(void *user) {
    self = mc_task_self();
    return in_child(in_the_child, user);
}

int main(void) {
    mc_task_t forker;
    int32_t result = -1;
    uint64_t element = 9;
    mc_set_log_hook(count_log, NULL);
    CHECK_EQ(csp_chan(&writer, &reader, NULL), 1);
    CHECK_EQ(mc_chan_create(0, 8, 1, NULL, NULL, &channel), MC_OK);
    CHECK_EQ(mc_send(channel, &element), MC_OK);
    CHECK_EQ(mc_spawn(0, wait_for_end, NULL, NULL, &waiting), MC_OK);
    csp_yield();

    CHECK_EQ(in_child(in_the_child, NULL), 0);
    CHECK_EQ(mc_spawn(0, fork_inside, &self, NULL, &forker), MC_OK);
    CHECK_EQ(mc_join(forker, MC_FOREVER, &result), MC_OK);
    CHECK_EQ(result, 0);
    CHECK_EQ(self, forker);

    csp_writer_release(writer);
    CHECK_EQ(mc_join(waiting, MC_FOREVER, &result), MC_OK);
    CHECK_EQ(result, 6);
    csp_reader_release(reader);
    CHECK_EQ(mc_recv(channel, &element), MC_OK);
    CHECK_EQ(element, 9);
    CHECK_EQ(mc_chan_destroy(channel), MC_OK);
    CHECK_EQ(csp__internal__channel_count(0) + csp__internal__channel_count(1), 0);
    CHECK_EQ(logged, 0);
    return 0;
}
