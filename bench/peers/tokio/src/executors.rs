// tokio's rows that need several executors, or compare one with several.
//
// Checked, each alternative measured beside the one taken:
//  - rendezvous_cross: mpsc::channel(1), the smallest that there is. One end is the future that block_on runs on
//    the main thread, the other a task, which runs on a worker: so they are apart. Of two tasks the scheduler runs
//    both on one worker (a message in a hundred at most crosses, 320 ns each), and cannot be told not to; two
//    runtimes of one thread each, or one worker beside the main thread, take two and a half times as long: the second
//    worker searches, awake, and takes the task.
//  - skynet: join handles; a bounded mpsc channel a node takes half as long again. For one executor the runtime of one
//    thread, which takes a tenth to a quarter less than that of one worker.
//  - spawn_bulk: a vector of join handles; a JoinSet, and a channel that closes with its last sender, take a fifth to a
//    third longer.

use crate::channels::{return_pongs, send_pings};
use crate::harness::{measured, nanoseconds, require, sum_below};
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

pub fn runtime(executors: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(executors).enable_time().build().unwrap()
}

pub fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

fn ping_pong(runtime: &Runtime, messages: u64) {
    let (ping, pinged) = mpsc::channel(1);
    let (pong, ponged) = mpsc::channel(1);
    let returning = runtime.spawn(return_pongs(pinged, pong, messages / 2));
    runtime.block_on(send_pings(ping, ponged, messages / 2));
    runtime.block_on(returning).unwrap();
}

pub fn rendezvous_cross(iterations: u64, executors: usize) {
    let runtime = runtime(executors);
    println!("{:.3}", measured(iterations, |messages| ping_pong(&runtime, messages)));
}

/// Starts ten and gives the sum of what they give; a leaf gives its own number.
async fn skynet_sum(first: i64, leaves: u64) -> i64 {
    const FAN_OUT: u64 = 10;
    let each = leaves / FAN_OUT;
    let start = |i: u64| {
        let first = first + (i * each) as i64;
        if each == 1 {
            tokio::spawn(async move { first })
        } else {
            tokio::spawn(skynet_node(first, each))
        }
    };
    let children: Vec<_> = (0..FAN_OUT).map(start).collect();
    let mut sum = 0;
    for child in children {
        sum += child.await.unwrap();
    }
    sum
}

fn skynet_node(first: i64, leaves: u64) -> Pin<Box<dyn Future<Output = i64> + Send>> {
    Box::pin(skynet_sum(first, leaves)) // boxed: it contains itself
}

pub fn skynet(leaves: u64, executors: usize) {
    let runtime = if executors == 1 { one_thread() } else { runtime(executors) };
    let start = Instant::now();
    let root = async move { tokio::spawn(skynet_node(0, leaves)).await };
    let sum = runtime.block_on(root).unwrap();
    println!("{:.4}", nanoseconds(start.elapsed()) / 1e6);
    require(sum == sum_below(leaves), "skynet's sum");
}

async fn spawn_all_join_all(count: u64) {
    let tasks: Vec<_> = (0..count).map(|i| tokio::spawn(async move { i as i64 })).collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    require(sum == sum_below(count), "the sum of the results");
}

pub fn spawn_bulk(count: u64, executors: usize) {
    let runtime = runtime(executors);
    let start = Instant::now();
    runtime.block_on(runtime.spawn(spawn_all_join_all(count))).unwrap();
    println!("{:.4}", nanoseconds(start.elapsed()) / count as f64);
}
