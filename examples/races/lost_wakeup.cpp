// lost_wakeup: a catalogue is loaded in the background, and requests that come before it is there wait for an event. The event is
// made by hand, of a flag and a channel: wait() returns once set() has been called, whether that was before or is yet to come.
//
// No request may wait for ever.
#include <mc/mc.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace {

// For one task that sets it and one that waits.
class Event {
public:
    Event() { mc_chan_create(0, 0, wake_ups_kept, nullptr, nullptr, &wake_up_); }
    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;
    ~Event() { mc_chan_destroy(wake_up_); }

    void set() {
        is_set_ = true;
        mc_send_try(wake_up_, nullptr); // there may be nobody to wake
    }

    void wait() {
        if (!is_set_)
            mc_recv(wake_up_, nullptr);
    }

private:
#ifdef FIXED
    // The channel keeps the wake-up for the one who has seen the flag down and does not receive yet.
    static constexpr uint32_t wake_ups_kept = 1;
#else
    // Without a buffer only one who receives at that very moment gets it. Who has just seen the flag down, and is on the way into
    // mc_recv, misses it, and there is no other.
    static constexpr uint32_t wake_ups_kept = 0;
#endif
    std::atomic<bool> is_set_{false};
    mc_chan_t wake_up_ = 0;
};

struct Catalogue {
    Event loaded;
    int pages = 0; // written before loaded is set
};

constexpr int all_pages = 120;

int64_t at_most(int64_t ns) { return static_cast<int64_t>(mc_random() % static_cast<uint64_t>(ns)); }

int32_t load(void *user) {
    csp_descr("loader");
    auto &catalogue = *static_cast<Catalogue *>(user);
    mc_sleep(at_most(2 * MC_MS)); // the disk
    catalogue.pages = all_pages;
    catalogue.loaded.set();
    return MC_OK;
}

int32_t request(void *user) {
    csp_descr("request");
    auto &catalogue = *static_cast<Catalogue *>(user);
    mc_sleep(at_most(2 * MC_MS)); // comes when it comes
    catalogue.loaded.wait();
    if (catalogue.pages != all_pages)
        mc_sim_fail("a request has seen a catalogue that was not loaded");
    return MC_OK;
}

} // namespace

int main() {
    if (csp_init_runtime(0) == 0)
        return 2;
    for (int day = 0; day < 3; ++day) {
        Catalogue catalogue;
        if (mc_spawn(0, request, &catalogue, nullptr, nullptr) != MC_OK ||
            mc_spawn(0, load, &catalogue, nullptr, nullptr) != MC_OK)
            return 2;
        // Until both have ended. When one waits for what will never come it is MC_E_DEADLOCK, and the log says who and for what.
        if (mc_runtime_wait_quiescent(0, MC_FOREVER) != MC_OK)
            std::exit(1); // the catalogue stays: a request still waits at it
    }
    csp_shutdown_runtime();
    std::puts("every request was served");
    return 0;
}
