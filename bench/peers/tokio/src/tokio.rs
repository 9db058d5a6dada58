// tokio's side of the benchmark, as its own users would write it for speed.
//
// The driver (bench/run) builds it and starts it, one process a row. EXECUTORS is the number of worker threads; for one,
// most rows have the runtime of one thread, which the head comment of each file speaks of.
mod arrivals;
mod channels;
mod executors;
mod harness;
mod latency;
mod mutex;
mod process;
mod tasks;
mod timers;

use harness::{run_program, Row};

const ROWS: &[Row] = &[
    Row { name: "yield2", least_executors: 1, run: tasks::yield2 },
    Row { name: "yield100", least_executors: 1, run: tasks::yield100 },
    Row { name: "rendezvous", least_executors: 1, run: channels::rendezvous },
    Row { name: "stream", least_executors: 1, run: channels::stream },
    Row { name: "buffered_spsc", least_executors: 1, run: channels::buffered_spsc },
    Row { name: "buffered_mpsc4", least_executors: 1, run: channels::buffered_mpsc4 },
    Row { name: "alt4", least_executors: 1, run: channels::alt4 },
    Row { name: "prialt4", least_executors: 1, run: channels::prialt4 },
    Row { name: "alt4_ready", least_executors: 1, run: channels::alt4_ready },
    Row { name: "alt4_ack", least_executors: 1, run: channels::alt4_ack },
    Row { name: "alt64", least_executors: 1, run: channels::alt64 },
    Row { name: "spawn_join", least_executors: 1, run: tasks::spawn_join },
    Row { name: "threadring", least_executors: 1, run: tasks::threadring },
    Row { name: "memory", least_executors: 1, run: tasks::memory },
    Row { name: "memory_1m", least_executors: 1, run: tasks::memory_1m },
    Row { name: "idle_cpu", least_executors: 1, run: tasks::idle_cpu },
    Row { name: "rendezvous_cross", least_executors: 2, run: executors::rendezvous_cross },
    Row { name: "skynet", least_executors: 1, run: executors::skynet },
    Row { name: "spawn_bulk", least_executors: 1, run: executors::spawn_bulk },
    Row { name: "mutex", least_executors: 1, run: mutex::mutex },
    Row { name: "timer_pair", least_executors: 1, run: timers::timer_pair },
    Row { name: "timers_1s", least_executors: 1, run: timers::timers_1s },
    Row { name: "hogs", least_executors: 1, run: timers::hogs },
    Row { name: "latency_1", least_executors: 2, run: |messages, _| latency::latency(messages, 1.0) },
    Row { name: "latency_50", least_executors: 2, run: |messages, _| latency::latency(messages, 50.0) },
    Row { name: "latency_95", least_executors: 2, run: |messages, _| latency::latency(messages, 95.0) },
];

fn main() {
    run_program(concat!("tokio ", env!("TOKIO_VERSION")), ROWS);
}
