/* Ways to leave a program in the middle of everything: each ends at once with the status that was asked for. */
#include "csp_program.h"

#include <pthread.h>
#include <signal.h>

static csp_writer w;
static csp_reader r;

static void make_a_world(void) {
    CHECK_EQ(csp_chan(&w, &r, copy_int), 1);
    spawn_endless(r, 10);
    csp_after(3600 * MC_SEC);
    csp_tick(MC_MS);
}

static int returns_from_main(void) {
    make_a_world();
    return 10;
}

static void exits(void *data) {
    (void)data;
    exit(11);
}

static int exits_in_a_microthread(void) {
    make_a_world();
    csp_spawn(exits, NULL);
    return 1;
}

static void *exits_in_thread(void *data) {
    csp_yield();
    exits(data);
    return NULL;
}

static int exits_in_another_thread(void) {
    make_a_world();
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, exits_in_thread, NULL), 0);
    csp_recv(r, NULL);
    return 1;
}

/* A handler at exit releases what the program held; it was registered before the library was used, so it runs late. */
static void release_at_exit(void) {
    csp_writer_release(w);
    csp_reader_release(r);
    CHECK_EQ(csp__internal__channel_count(0), 0);
    _exit(12);
}

static int releases_at_exit(void) {
    CHECK_EQ(atexit(release_at_exit), 0);
    CHECK_EQ(csp_chan(&w, &r, copy_int), 1);
    return 1;
}

/* The same on a microthread's stack, with others waiting on what is released. */
static void close_at_exit(void) {
    csp_writer_close(w);
    _exit(13);
}

static int releases_at_exit_in_a_microthread(void) {
    CHECK_EQ(atexit(close_at_exit), 0);
    make_a_world();
    csp_spawn(exits, NULL);
    return 1;
}

/* The owner's thread ends, main goes on. */
static void *owns_for_a_while(void *data) {
    (void)data;
    make_a_world();
    return NULL;
}

static int outlives_the_owner(void) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, owns_for_a_while, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(csp_run(), 1); /* the spinning ones go on here */
    return 14;
}

int main(void) {
    alarm(60);
#if !SANITIZED /* leaks are meant */
    CHECK_EQ(run_child(returns_from_main), 10);
    CHECK_EQ(run_child(exits_in_a_microthread), 11);
    CHECK_EQ(run_child(exits_in_another_thread), 11);
    CHECK_EQ(run_child(outlives_the_owner), 14);
#else
    (void)returns_from_main, (void)exits_in_a_microthread, (void)exits_in_another_thread, (void)outlives_the_owner;
#endif
    CHECK_EQ(run_child(releases_at_exit), 12);
    CHECK_EQ(run_child(releases_at_exit_in_a_microthread), 13);
    return 0;
}
