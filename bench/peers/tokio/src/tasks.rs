// tokio's rows about tasks themselves: how they take turns, start, wait, and what they take when nothing happens.
//
// Checked, each alternative measured beside the one taken:
//  - yield2, yield100: the runtime of one thread; one worker takes two fifths longer, unconstrained tasks the same.
//  - spawn_join: from a task; from block_on it takes half as long again, on one worker the same.
//  - memory, memory_1m: mpsc has one receiver, so each task waits on a oneshot channel of its own, 328 bytes with it.
//    Receivers of one broadcast or watch channel, a Notify, or a Mutex around one mpsc receiver take 450, an mpsc
//    channel each 1,290. The senders are kept in a vector, whose 8 bytes are among those 328.
//  - threadring: the runtime of one thread; one worker, and unconstrained, take the same.
//  - idle_cpu: the main thread sleeps outside the runtime.

use crate::executors::{one_thread, runtime};
use crate::harness::{measured, nanoseconds, require};
use crate::process::{cpu_seconds, memory_now};
use std::cell::Cell;
use std::process::exit;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{channel, Receiver, Sender};
use tokio::sync::oneshot;
use tokio::task::{yield_now, JoinHandle};

async fn yield_in_turn(turns: u64) {
    for _ in 0..turns {
        yield_now().await;
    }
}

fn yield_among(runtime: &Runtime, switches: u64, count: u64) {
    let tasks: Vec<_> = (0..count).map(|_| runtime.spawn(yield_in_turn(switches / count))).collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
}

pub fn yield2(iterations: u64, _executors: usize) {
    let runtime = one_thread();
    println!("{:.3}", measured(iterations, |switches| yield_among(&runtime, switches, 2)));
}

pub fn yield100(iterations: u64, _executors: usize) {
    let runtime = one_thread();
    println!("{:.3}", measured(iterations, |switches| yield_among(&runtime, switches, 100)));
}

async fn spawn_and_join(count: u64) {
    for _ in 0..count {
        tokio::spawn(async {}).await.unwrap();
    }
}

pub fn spawn_join(iterations: u64, _executors: usize) {
    let runtime = one_thread();
    println!("{:.3}", measured(iterations, |count| runtime.block_on(runtime.spawn(spawn_and_join(count))).unwrap()));
}

thread_local! {
    static BLOCKED: Cell<u64> = const { Cell::new(0) };
}

async fn block(on: oneshot::Receiver<i64>) {
    BLOCKED.with(|blocked| blocked.set(blocked.get() + 1));
    let _ = on.await; // for ever
}

async fn start_blocked(count: u64, senders: &mut Vec<oneshot::Sender<i64>>) {
    for _ in 0..count {
        let (sender, receiver) = oneshot::channel();
        senders.push(sender);
        tokio::spawn(block(receiver));
    }
    while BLOCKED.with(Cell::get) < count {
        yield_now().await;
    }
}

/// Prints the memory that count blocked tasks take; returns the nanoseconds that making one took.
fn block_all(count: u64) -> f64 {
    let runtime = one_thread();
    let mut senders = Vec::with_capacity(count as usize);
    let before = memory_now();
    let start = Instant::now();
    runtime.block_on(start_blocked(count, &mut senders));
    let took = start.elapsed();
    let after = memory_now();
    println!("{:.1}", (after.resident_bytes - before.resident_bytes) / count as f64);
    println!("page_tables {:.1}", (after.page_table_bytes - before.page_table_bytes) / count as f64);
    std::mem::forget((runtime, senders)); // how long it takes to end them is not the question
    nanoseconds(took) / count as f64
}

pub fn memory(count: u64, _executors: usize) {
    block_all(count);
}

pub fn memory_1m(count: u64, _executors: usize) {
    println!("create {:.1}", block_all(count));
}

/// Channels in a ring: what each member receives from and sends to.
fn ring(members: u64) -> (Vec<Sender<u64>>, Vec<Receiver<u64>>) {
    let (mut to, from): (Vec<_>, Vec<_>) = (0..members).map(|_| channel(1)).unzip();
    to.rotate_left(1);
    (to, from)
}

/// Hands the token on, one less each time, until there is none to come. True if it was the last to have it.
async fn hand_on(mut from: Receiver<u64>, to: Sender<u64>) -> bool {
    while let Some(token) = from.recv().await {
        if token == 0 {
            return true;
        }
        to.send(token - 1).await.unwrap();
    }
    false
}

async fn send_around(hops: u64) {
    const MEMBERS: u64 = 503;
    let (to, from) = ring(MEMBERS);
    let first = to[MEMBERS as usize - 1].clone();
    let members: Vec<JoinHandle<bool>> =
        from.into_iter().zip(to).map(|(from, to)| tokio::spawn(hand_on(from, to))).collect();
    first.send(hops).await.unwrap();
    drop(first);
    let mut last = None;
    for (number, member) in members.into_iter().enumerate() {
        if member.await.unwrap() {
            last = Some(number as u64);
        }
    }
    require(last == Some(hops % MEMBERS), "the end of the token's way");
}

pub fn threadring(iterations: u64, _executors: usize) {
    let runtime = one_thread();
    println!("{:.3}", measured(iterations, |hops| runtime.block_on(runtime.spawn(send_around(hops))).unwrap()));
}

async fn hand_on_for_ever(mut from: Receiver<u64>, to: Sender<u64>, done: Sender<u64>) {
    while let Some(token) = from.recv().await {
        let next = if token > 0 { to.send(token - 1).await } else { done.send(token).await };
        next.unwrap();
    }
}

async fn burst(messages: u64) {
    const MEMBERS: u64 = 1000;
    const TOKENS: u64 = 10;
    let (to, from) = ring(MEMBERS);
    let (done, mut dones) = channel(1);
    let starts: Vec<_> = to.iter().step_by((MEMBERS / TOKENS) as usize).cloned().collect();
    for (from, to) in from.into_iter().zip(to) {
        tokio::spawn(hand_on_for_ever(from, to, done.clone()));
    }
    for start in starts {
        start.send(messages / TOKENS).await.unwrap();
    }
    for _ in 0..TOKENS {
        dones.recv().await.unwrap();
    }
    std::mem::forget(dones);
}

/// Prints the milliseconds of processor time that a second takes in which all are blocked.
pub fn idle_cpu(messages: u64, executors: usize) {
    const SECONDS: u64 = 2;
    let runtime = runtime(executors);
    runtime.block_on(burst(messages));
    thread::sleep(Duration::from_millis(10));
    let before = cpu_seconds();
    thread::sleep(Duration::from_secs(SECONDS));
    println!("{:.4}", (cpu_seconds() - before) * 1000.0 / SECONDS as f64);
    exit(0);
}
