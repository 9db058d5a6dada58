/* starvation: a control room takes messages from two channels. Alarms go before readings, but a reading that has come is not left
 * lying for ever: at most MOST_PASSED_OVER alarms are taken before it. */
#include <mc/mc.h>
#include <stdatomic.h>
#include <stdio.h>

enum { SENSORS = 3, BURSTS = 3, ALARMS_A_BURST = 4, READINGS = 6, MOST_PASSED_OVER = 5 };
enum { ALARM = 1, READING = 2 };

struct room {
    mc_chan_t alarms;
    mc_chan_t readings;
    atomic_int readings_waiting; /* counted when they are in the channel: at least so many lie there */
};

static void idle(void) { mc_sleep((int64_t)(mc_random() % (uint64_t)(20 * MC_MS))); }

static int32_t sense(void *user) {
    const struct room *room = user;
    const int alarm = ALARM;
    csp_descr("sensor");
    for (int i = 0; i < BURSTS; ++i) {
        idle();
        for (int j = 0; j < ALARMS_A_BURST; ++j)
            mc_send(room->alarms, &alarm);
    }
    return MC_OK;
}

static int32_t meter(void *user) {
    struct room *room = user;
    const int reading = READING;
    csp_descr("meter");
    for (int i = 0; i < READINGS; ++i) {
        idle();
        mc_send(room->readings, &reading);
        atomic_fetch_add(&room->readings_waiting, 1);
    }
    return MC_OK;
}

static void watch(struct room *room, csp_reader alarms, csp_reader readings) {
    int message = 0;
    int passed_over = 0; /* how often in a row a reading waited and an alarm was taken */
    /* From arm 0 on alarms go first, from arm 1 on readings do. */
    const csp_chanop arms[] = {
        {csp_wait(alarms), &message}, {csp_wait(readings), &message}, {csp_wait(alarms), &message}};
    for (int turn = 0; turn < SENSORS * BURSTS * ALARMS_A_BURST + READINGS; ++turn) {
        const int reading_waits = atomic_load(&room->readings_waiting) > 0;
#ifdef FIXED
        /* Readings have a turn of their own in MOST_PASSED_OVER + 1, whatever else there is. */
        const int first = turn % (MOST_PASSED_OVER + 1) == MOST_PASSED_OVER ? 1 : 0;
#else
        /* A reading is taken when there is no alarm: those who send alarms decide how long it waits. */
        const int first = 0;
#endif
        csp_prialt(arms + first, 2, 0);
        passed_over = message == ALARM && reading_waits ? passed_over + 1 : 0;
        if (message == READING)
            atomic_fetch_sub(&room->readings_waiting, 1);
        if (passed_over > MOST_PASSED_OVER)
            mc_sim_fail("a reading was left lying, one alarm after another was taken");
    }
}

int main(void) {
    struct room room = {.readings_waiting = 0};
    mc_task_t tasks[SENSORS + 1];
    csp_reader alarms, readings;
    if (!csp_init_runtime(0) || mc_chan_create(0, sizeof(int), 16, NULL, NULL, &room.alarms) != MC_OK ||
        mc_chan_create(0, sizeof(int), 16, NULL, NULL, &room.readings) != MC_OK ||
        mc_chan_reader(room.alarms, &alarms) != MC_OK || mc_chan_reader(room.readings, &readings) != MC_OK)
        return 2;
    for (int i = 0; i <= SENSORS; ++i)
        if (mc_spawn(0, i == SENSORS ? meter : sense, &room, NULL, &tasks[i]) != MC_OK)
            return 2;
    watch(&room, alarms, readings);
    for (int i = 0; i <= SENSORS; ++i)
        mc_join(tasks[i], MC_FOREVER, NULL);
    csp_reader_release(readings);
    csp_reader_release(alarms);
    mc_chan_destroy(room.readings);
    mc_chan_destroy(room.alarms);
    csp_shutdown_runtime();
    puts("no reading was left lying");
    return 0;
}
