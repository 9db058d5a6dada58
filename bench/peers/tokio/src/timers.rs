// tokio's rows about time. Lateness is what a task sees: the clock when it goes on, less its deadline.
//
// Checked, each alternative measured beside the one taken:
//  - timer_pair: a Sleep that is polled once, which starts it, and dropped, in a task; on the runtime of one
//    thread, and in block_on, it takes a tenth longer. A Sleep that is kept and reset takes a third: that is the
//    further line, reused. Unconstrained: a timer that is polled when its task's budget is spent would not start.
//  - timers_1s, hogs: sleep_until. Its clock ticks in milliseconds, rounded up, which is most of the lateness.
//  - hogs: yield_now after each microsecond of computing, as libmcrt's hogs call mc_checkpoint: without it no task is
//    taken off its worker.

use crate::executors::runtime;
use crate::harness::{measured, nanoseconds, require};
use crate::process::cpu_seconds;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};
use tokio::task::{unconstrained, yield_now};
use tokio::time::{sleep, sleep_until, Sleep};

const ARMED: u64 = 10_000;
const TIMEOUT: Duration = Duration::from_secs(3600); // of all; the armed ones began a millisecond after another

/// Polls a timer once, which starts it; ready at once.
struct Start<'a>(Pin<&'a mut Sleep>);

impl Future for Start<'_> {
    type Output = bool;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        Poll::Ready(self.0.as_mut().poll(context).is_pending())
    }
}

async fn armed_timers() -> Vec<Pin<Box<Sleep>>> {
    let mut timers = Vec::new();
    for i in 0..ARMED {
        let mut timer = Box::pin(sleep(TIMEOUT - Duration::from_millis(i)));
        require(Start(timer.as_mut()).await, "starting a timer");
        timers.push(timer);
    }
    timers
}

async fn start_and_drop(pairs: u64) {
    for _ in 0..pairs {
        let timer = sleep(TIMEOUT);
        tokio::pin!(timer);
        require(Start(timer).await, "starting a timer");
    }
}

async fn reset_one(pairs: u64) {
    let timer = sleep(TIMEOUT);
    tokio::pin!(timer);
    require(Start(timer.as_mut()).await, "starting a timer");
    for _ in 0..pairs {
        timer.as_mut().reset(tokio::time::Instant::now() + TIMEOUT);
    }
}

pub fn timer_pair(pairs: u64, executors: usize) {
    let runtime = runtime(executors);
    let timers = runtime.block_on(unconstrained(armed_timers()));
    let fresh = measured(pairs, |n| runtime.block_on(runtime.spawn(unconstrained(start_and_drop(n)))).unwrap());
    let reused = measured(pairs, |n| runtime.block_on(runtime.spawn(unconstrained(reset_one(n)))).unwrap());
    println!("{:.3}\nreused {:.3}", fresh, reused);
    drop(timers);
}

fn mean_ms(late: &[Duration]) -> f64 {
    nanoseconds(late.iter().sum()) / late.len() as f64 / 1e6
}

/// The least value that this part of a thousand of all does not exceed. Sorts.
fn per_mille_ms(late: &mut [Duration], part: usize) -> f64 {
    late.sort_unstable();
    nanoseconds(late[(late.len() * part + 999) / 1000 - 1]) / 1e6
}

/// Fails the row when the deadline has not come.
fn lateness(deadline: Instant) -> Duration {
    let late = Instant::now().checked_duration_since(deadline);
    require(late.is_some(), "sleeping until the deadline");
    late.unwrap()
}

async fn sleep_once(deadline: Instant) -> Duration {
    sleep_until(deadline.into()).await;
    lateness(deadline)
}

fn sleep_thread_until(deadline: Instant) {
    thread::sleep(deadline.saturating_duration_since(Instant::now()));
}

/// All tasks are started, and asleep, before the second that is measured begins.
pub fn timers_1s(count: u64, executors: usize) {
    const COPRIME: u64 = 7919; // with every power of ten: deadlines are dealt out in no order
    const SECOND: Duration = Duration::from_secs(1);
    let runtime = runtime(executors);
    let begin = Instant::now() + SECOND;
    let start = async move {
        let deadline = |i| begin + Duration::from_nanos(i * COPRIME % count * 1_000_000_000 / count);
        (0..count).map(|i| tokio::spawn(sleep_once(deadline(i)))).collect::<Vec<_>>()
    };
    let sleepers = runtime.block_on(runtime.spawn(start)).unwrap();
    require(Instant::now() < begin, "starting all tasks in time");
    sleep_thread_until(begin);
    let before = cpu_seconds();
    sleep_thread_until(begin + SECOND);
    let used = cpu_seconds() - before;
    let mut late: Vec<Duration> = sleepers.into_iter().map(|sleeper| runtime.block_on(sleeper).unwrap()).collect();
    println!("{:.4}\nmean {:.4}", used, mean_ms(&late));
    println!("p99 {:.4}\nmax {:.4}", per_mille_ms(&mut late, 990), per_mille_ms(&mut late, 1000));
}

/// A chain of dependent shifts, which no compiler shortens (xorshift64, Marsaglia); never 0.
fn compute(mut x: u64, steps: u64) -> u64 {
    for _ in 0..steps {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

fn steps_a_microsecond() -> u64 {
    const STEPS: u64 = 1_000_000;
    let mut x = 1;
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        x = compute(x, STEPS);
        best = best.min(nanoseconds(start.elapsed()));
    }
    require(x != 0, "computing");
    ((STEPS as f64 * 1000.0 / best) as u64).max(1)
}

const TICK: Duration = Duration::from_millis(1);
const FIRST_TICKS: u64 = 100; // not measured: until every executor has a hog

async fn hog(stop: Arc<AtomicBool>, steps: u64) -> u64 {
    let (mut x, mut rounds) = (1, 0);
    while !stop.load(Ordering::Relaxed) {
        x = compute(x, steps);
        rounds += 1;
        yield_now().await;
    }
    require(x != 0 && rounds != 0, "computing");
    rounds
}

async fn tick(stop: Arc<AtomicBool>, ticks: u64) -> Vec<Duration> {
    let mut late = Vec::with_capacity(ticks as usize);
    let mut deadline = Instant::now();
    for i in 0..FIRST_TICKS + ticks {
        deadline += TICK;
        sleep_until(deadline.into()).await;
        if i >= FIRST_TICKS {
            late.push(lateness(deadline));
        }
    }
    stop.store(true, Ordering::Relaxed);
    late
}

/// Prints the 99.9th percentile of the ticker's lateness, in milliseconds. computing: processors' worth that the hogs
/// computed.
pub fn hogs(ticks: u64, executors: usize) {
    let steps = steps_a_microsecond();
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = runtime(executors);
    let start = Instant::now();
    let hogs: Vec<_> = (0..executors).map(|_| runtime.spawn(hog(stop.clone(), steps))).collect();
    let mut late = runtime.block_on(runtime.spawn(tick(stop, ticks))).unwrap();
    let microseconds: u64 = hogs.into_iter().map(|hog| runtime.block_on(hog).unwrap()).sum();
    let computing = microseconds as f64 * 1000.0 / nanoseconds(start.elapsed());
    println!("{:.4}\nmean {:.4}", per_mille_ms(&mut late, 999), mean_ms(&late));
    println!("max {:.4}\ncomputing {:.4}", per_mille_ms(&mut late, 1000), computing);
}
