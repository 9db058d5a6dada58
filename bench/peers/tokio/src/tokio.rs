// tokio's side of the benchmark, as its own users would write it for speed.
//
// The driver (bench/run) builds it and starts it, one process a row. EXECUTORS is the number of worker threads;
// executors.rs and timers.rs have the rows.
mod executors;
mod harness;
mod mutex;
mod timers;

use harness::{run_program, Row};

const ROWS: &[Row] = &[
    Row { name: "rendezvous_cross", least_executors: 2, run: executors::rendezvous_cross },
    Row { name: "skynet", least_executors: 1, run: executors::skynet },
    Row { name: "spawn_bulk", least_executors: 1, run: executors::spawn_bulk },
    Row { name: "mutex", least_executors: 1, run: mutex::mutex },
    Row { name: "timer_pair", least_executors: 1, run: timers::timer_pair },
    Row { name: "timers_1s", least_executors: 1, run: timers::timers_1s },
    Row { name: "hogs", least_executors: 1, run: timers::hogs },
];

fn main() {
    run_program("tokio 1.38.2", ROWS);
}
