// C++ exceptions that leave a callback end at the library's boundary: never in a C caller, never in another microthread.
//   - out of tx: logged; the message counts as transferred on both sides;
//   - out of an entry: logged; the result is MC_E_CRASHED; other microthreads go on;
//   - out of drop: logged; the element counts as dropped.
// Exceptions that stay inside a microthread work as everywhere, also across a switch in the middle of handling one.
#include <mc/mc.h>
#include <stdexcept>
#include <string>

#include "check.h"

namespace {

int logged, thrown, dropped;

void count_log(void *, int32_t, int32_t, const char *) { ++logged; }

void throwing_tx(void *, void *) {
    ++thrown;
    throw std::runtime_error("tx");
}

void send_and_release(void *writer) {
    int number = 1;
    CHECK_EQ(csp_send(static_cast<csp_writer>(writer), &number), 1);
    CHECK_EQ(csp_send(static_cast<csp_writer>(writer), &number), 1);
    csp_writer_release(static_cast<csp_writer>(writer));
}

void leaves_tx() {
    csp_writer w;
    csp_reader r;
    int number = 0;
    CHECK_EQ(csp_chan(&w, &r, throwing_tx), 1);
    CHECK_EQ(csp_spawn(send_and_release, w), 1); // it waits: tx runs on our stack
    CHECK_EQ(csp_recv(r, &number), 1);
    CHECK_EQ(csp_recv(r, &number), 1); // and now perhaps on the sender's
    CHECK_EQ(csp_recv(r, &number), -1);
    CHECK_EQ(thrown, 2);
    CHECK_EQ(logged, 2);
    csp_reader_release(r);
}

int32_t crashes(void *) { throw std::string("entry"); }
void crashes_detached(void *) { throw 42; }
int32_t survives(void *) {
    for (int i = 0; i < 10; ++i)
        csp_yield();
    return 3;
}

void leaves_entry() {
    mc_task_t crashing, surviving;
    int32_t result = 0;
    logged = 0;
    CHECK_EQ(mc_spawn(0, survives, nullptr, nullptr, &surviving), MC_OK);
    CHECK_EQ(mc_spawn(0, crashes, nullptr, nullptr, &crashing), MC_OK);
    CHECK_EQ(csp_spawn(crashes_detached, nullptr), 1);
    CHECK_EQ(mc_join(crashing, MC_FOREVER, &result), MC_OK);
    CHECK_EQ(result, MC_E_CRASHED);
    CHECK_EQ(mc_join(surviving, MC_FOREVER, &result), MC_OK);
    CHECK_EQ(result, 3);
    CHECK(logged >= 1);
}

void throwing_drop(void *, void *, uint64_t) {
    ++dropped;
    throw std::logic_error("drop");
}

void leaves_drop() {
    mc_chan_t channel;
    uint64_t element = 1;
    CHECK_EQ(mc_chan_create(0, sizeof element, 4, throwing_drop, nullptr, &channel), MC_OK);
    for (int i = 0; i < 4; ++i)
        CHECK_EQ(mc_send(channel, &element), MC_OK);
    CHECK_EQ(mc_recv(channel, nullptr), MC_OK);
    CHECK_EQ(dropped, 1);
    CHECK_EQ(mc_chan_destroy(channel), MC_OK);
    CHECK_EQ(dropped, 4);
}

// A visitor that throws is told no more.
int told;
void throwing_visitor(void *, const mc_machine_descriptor_state *) {
    ++told;
    throw std::logic_error("visitor");
}

void leaves_visitor() {
    static const uint8_t bytes[28 + 2 * 28] = {'M', 'C', 'H', 'D', 1, 0, 0, 0, 0, 0, 0, 0, 2};
    mc_machine_descriptor_visitor visitor = MC_MACHINE_DESCRIPTOR_VISITOR_INIT;
    visitor.state = throwing_visitor;
    char error[] = "untouched";
    CHECK_EQ(mc_machine_descriptor_parse(bytes, sizeof bytes, &visitor, nullptr, error, sizeof error), MC_E_CRASHED);
    CHECK_EQ(told, 1);
    CHECK_EQ(error[0], 'u');
}

// Two microthreads handle an exception each at the same time, and switch while they do.
int32_t handles(void *user) {
    const int mine = *static_cast<int *>(user);
    for (int i = 0; i < 50; ++i) {
        try {
            throw mine + i;
        } catch (int caught) {
            CHECK_EQ(caught, mine + i);
            csp_yield();
            try {
                throw;
            } catch (int again) {
                CHECK_EQ(again, mine + i);
            }
            CHECK_EQ(std::uncaught_exceptions(), 0);
            csp_yield();
        }
    }
    return mine;
}

void stays_inside() {
    int numbers[3] = {1000, 2000, 3000};
    mc_task_t tasks[3];
    int32_t result = 0;
    for (int i = 0; i < 3; ++i)
        CHECK_EQ(mc_spawn(0, handles, &numbers[i], nullptr, &tasks[i]), MC_OK);
    for (int i = 0; i < 3; ++i) {
        CHECK_EQ(mc_join(tasks[i], MC_FOREVER, &result), MC_OK);
        CHECK_EQ(result, numbers[i]);
    }
}

} // namespace

int main() {
    mc_set_log_hook(count_log, nullptr);
    leaves_tx();
    leaves_entry();
    leaves_drop();
    leaves_visitor();
    stays_inside();
    CHECK_EQ(csp__internal__channel_count(0) + csp__internal__channel_count(1), 0);
    return 0;
}
