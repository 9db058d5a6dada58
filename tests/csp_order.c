/* The order of single-processor mode as a C program sees it: children and receivers run at once, senders that were found
 * and everything else wait for their turn, main is one of them. */
#include "csp_program.h"

static char trace[256];
static csp_writer w;
static csp_reader r;

static void mark(const char *word) {
    strcat(trace, word);
    strcat(trace, " ");
}

static void child(void *data) { mark(data); }

static void yields(void *data) {
    mark(data);
    csp_yield();
    mark(data);
}

static void receives(void *data) {
    int value = 0;
    while (csp_recv(r, &value) == 1)
        mark(data);
    mark("end");
}

static void sends(void *data) {
    int value = 1;
    CHECK_EQ(csp_send(w, &value), 1);
    mark(data);
}

static int32_t at_tail(void *user) {
    mark(user);
    return 0;
}

static void expect(const char *words) {
    if (strcmp(trace, words) != 0)
        fprintf(stderr, "expected: %s\nhappened: %s\n", words, trace);
    CHECK(strcmp(trace, words) == 0);
    trace[0] = '\0';
}

int main(void) {
    int value = 7;
    CHECK_EQ(csp_chan(&w, &r, copy_int), 1);

    CHECK_EQ(csp_spawn(child, "a"), 1);
    mark("main");
    CHECK_EQ(csp_spawn(yields, "b"), 1);
    mark("main");
    CHECK_EQ(mc_spawn(0, at_tail, "c", NULL, NULL), MC_OK);
    mark("main");
    csp_yield();
    expect("a main b main main b c ");

    CHECK_EQ(csp_spawn(receives, "r"), 1);
    CHECK_EQ(csp_send(w, &value), 1);
    mark("main");
    CHECK_EQ(csp_try_send(w, &value), 1);
    mark("main");
    CHECK_EQ(csp_run(), 0);
    expect("r main main r ");

    csp_writer_release(w);
    mark("main");
    csp_schedule();
    expect("main end ");
    csp_reader_release(r);

    CHECK_EQ(csp_chan(&w, &r, copy_int), 1);
    CHECK_EQ(csp_spawn(sends, "s"), 1);
    CHECK_EQ(csp_spawn(sends, "t"), 1);
    CHECK_EQ(csp_recv(r, &value), 1);
    mark("main");
    CHECK_EQ(csp_recv(r, NULL), 1);
    mark("main");
    CHECK_EQ(csp_run(), 0);
    expect("main main s t ");
    csp_writer_release(w);
    csp_reader_release(r);
    return 0;
}
