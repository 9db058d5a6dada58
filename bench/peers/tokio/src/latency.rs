// tokio's rows latency_1, latency_50, latency_95: messages at times that were drawn before, and what they wait.
//
// Each end has a thread with a runtime of its own (the runtime of one thread), so that the two are apart and no worker
// searches beside them; the sender spins, there is nothing to give its turn up to.
//
// Checked, each alternative measured beside the one taken:
//  - TODO

use crate::executors::one_thread;
use crate::harness::require;
use crate::process::cpu_seconds;
use std::sync::mpsc as threads;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{channel, Receiver, Sender};

const CAPACITY: usize = 65_536;
const WORK_NS: i64 = 10_000; // a message
const LEAD_NS: i64 = 50_000_000;

/// Times in nanoseconds, with gaps that are distributed exponentially.
fn arrivals(count: u64, mean_gap_ns: f64) -> Vec<i64> {
    let (mut state, mut t) = (1_u64, 0.0); // splitmix64
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        t += -(1.0 - (z >> 11) as f64 / (1_u64 << 53) as f64).ln() * mean_gap_ns;
        t as i64
    };
    (0..count).map(|_| next()).collect()
}

/// Nanoseconds since a moment before all others.
#[derive(Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn now(self) -> i64 {
        self.0.elapsed().as_nanos() as i64
    }
}

async fn send_at_times(clock: Clock, to: Sender<i64>, start: i64, offsets: Vec<i64>) {
    for offset in offsets {
        while clock.now() < start + offset {}
        to.send(start + offset).await.unwrap();
    }
}

fn work(clock: Clock, mut x: u64, since: i64) -> u64 {
    while clock.now() - since < WORK_NS {
        for _ in 0..64 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
    }
    x
}

/// Stores how long each message took; returns the sum of the intended times.
async fn receive_all(clock: Clock, mut from: Receiver<i64>, late: &mut [i64]) -> i64 {
    let (mut sum, mut x) = (0, 1);
    for late in late {
        let intended = from.recv().await.unwrap();
        let now = clock.now();
        *late = now - intended;
        sum += intended;
        x = work(clock, x, now);
    }
    require(x != 0, "computing");
    sum
}

fn latency(messages: u64, percent: f64) {
    let clock = Clock(Instant::now());
    let offsets = arrivals(messages + messages / 10, WORK_NS as f64 * 100.0 / percent);
    let (count, sum_of_offsets) = (offsets.len(), offsets.iter().sum::<i64>());
    let mut late = vec![0; count];
    let (to, from) = channel(CAPACITY);
    let (there, both) = threads::channel();
    let (begin, begins) = threads::channel();
    let receiver_there = there.clone();
    let receiver = thread::spawn(move || {
        let runtime = one_thread();
        receiver_there.send(()).unwrap();
        let sum = runtime.block_on(receive_all(clock, from, &mut late));
        (sum, late, cpu_seconds(), clock.now())
    });
    let sender = thread::spawn(move || {
        let runtime = one_thread();
        there.send(()).unwrap();
        runtime.block_on(send_at_times(clock, to, begins.recv().unwrap(), offsets));
    });
    both.iter().take(2).for_each(drop);
    let start = clock.now() + LEAD_NS;
    begin.send(start).unwrap();
    thread::sleep(Duration::from_nanos((start - clock.now()).max(0) as u64));
    let used_before = cpu_seconds();
    let (sum, late, used, end) = receiver.join().unwrap();
    sender.join().unwrap();
    require(sum - start * count as i64 == sum_of_offsets, "the sum of the intended times");
    print(late[messages as usize / 10..].to_vec(), (used - used_before) * 1e9 / (end - start) as f64);
}

fn print(mut late: Vec<i64>, processors: f64) {
    late.sort_unstable();
    require(late[0] >= 0, "sending at the intended time");
    let percentile_us = |p: f64| late[(late.len() as f64 * p).ceil() as usize - 1] as f64 / 1000.0;
    println!("{:.4}\np50 {:.4}", percentile_us(0.99), percentile_us(0.5));
    println!("p999 {:.4}\nmax {:.4}", percentile_us(0.999), percentile_us(1.0));
    println!("processors {:.4}", processors);
}

pub fn latency_1(messages: u64, _executors: usize) {
    latency(messages, 1.0);
}

pub fn latency_50(messages: u64, _executors: usize) {
    latency(messages, 50.0);
}

pub fn latency_95(messages: u64, _executors: usize) {
    latency(messages, 95.0);
}
