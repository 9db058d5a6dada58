// tokio's row mutex: tasks count to a limit under one tokio::sync::Mutex, one task or, on two workers, two.
// bench/mutex.hpp says what the work is and why; this is the same.
//
// tokio::sync::Mutex, which a task may hold while it waits, and which is handed over first come, first served.
//
// Checked, each alternative measured beside the one taken:
//  - alone: the runtime of one thread; one worker, and unconstrained, which spares the budget of tasks its count, take the
//    same.
//  - contended: one in block_on on the main thread, the other on a worker, so they are apart; both on workers take twice
//    as long. Unconstrained, a sixth less.

use crate::executors::{one_thread, runtime};
use crate::harness::{measured, require};
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use tokio::task::unconstrained;

const STEPS_OUTSIDE: u32 = 2;

/// Counts until the count is at the limit; returns how many turns were its own.
async fn count_to<const STEPS: u32>(limit: u64, counted: Arc<Mutex<u64>>) -> u64 {
    let (mut turns, mut x) = (0, 1_u64);
    loop {
        {
            let mut count = counted.lock().await;
            if *count == limit {
                break;
            }
            *count += 1;
        }
        turns += 1;
        for _ in 0..STEPS {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
    }
    require(x != 0, "computing");
    turns
}

fn alone(runtime: &Runtime, limit: u64) {
    let counted = Arc::new(Mutex::new(0));
    let turns = runtime.block_on(runtime.spawn(count_to::<0>(limit, counted))).unwrap();
    require(turns == limit, "counting to the limit");
}

/// Returns the lesser share, in percent.
fn contend(runtime: &Runtime, limit: u64) -> f64 {
    let counted = Arc::new(Mutex::new(0));
    let other = runtime.spawn(unconstrained(count_to::<STEPS_OUTSIDE>(limit, counted.clone())));
    let one = runtime.block_on(unconstrained(count_to::<STEPS_OUTSIDE>(limit, counted)));
    let other = runtime.block_on(other).unwrap();
    require(one + other == limit, "counting each turn once");
    100.0 * one.min(other) as f64 / limit as f64
}

pub fn mutex(pairs: u64, executors: usize) {
    if executors == 1 {
        let runtime = one_thread();
        println!("{:.4}", measured(pairs, |limit| alone(&runtime, limit)));
        return;
    }
    let (runtime, mut share) = (runtime(executors), 0.0);
    println!("{:.4}", measured(pairs, |limit| share = contend(&runtime, limit)));
    println!("lesser_share {:.4}", share);
}
