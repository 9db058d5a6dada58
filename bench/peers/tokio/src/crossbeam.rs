// crossbeam-channel's side of the benchmark: channels between threads, which spin for a while before they sleep.
//
// The driver (bench/run) builds it and starts it, one process a row. It schedules nothing, so it has only the rows whose
// ends are on two processors, a thread each.
//
// Checked, each alternative measured beside the one taken:
//  - the version, 0.5.11: the last that spins before it sleeps, and was not withdrawn. From 0.5.15 on both ends of a
//    rendezvous sleep at once, and a message takes many times as long; with 0.5.17 the buffered rows are the same.
//  - bounded(0), its rendezvous, one thread beside the main one. Both threads of its own: the same.
mod arrivals;
mod harness;
#[allow(dead_code)] // the memory of a process of threads is no row
mod process;

use crossbeam_channel::{bounded, Receiver, Sender};
use harness::{measured, millions_a_second, require, run_program, sum_below, Row};
use std::thread;

fn send_pings(ping: Sender<i64>, pong: Receiver<i64>, round_trips: u64) {
    let mut sum = 0;
    for i in 0..round_trips {
        ping.send(i as i64).unwrap();
        sum += pong.recv().unwrap();
    }
    require(sum == sum_below(round_trips), "the sum of the pongs");
}

fn return_pongs(ping: Receiver<i64>, pong: Sender<i64>, round_trips: u64) {
    for _ in 0..round_trips {
        pong.send(ping.recv().unwrap()).unwrap();
    }
}

fn ping_pong(messages: u64) {
    let (ping, pinged) = bounded(0);
    let (pong, ponged) = bounded(0);
    let returning = thread::spawn(move || return_pongs(pinged, pong, messages / 2));
    send_pings(ping, ponged, messages / 2);
    returning.join().unwrap();
}

fn rendezvous_cross(iterations: u64, _executors: usize) {
    println!("{:.3}", measured(iterations, ping_pong));
}

fn produce(channel: Sender<i64>, messages: u64) {
    for i in 0..messages {
        channel.send(i as i64).unwrap();
    }
}

/// A thread for each producer; main consumes until all have ended.
fn collect(messages: u64, producers: u64) {
    const CAPACITY: usize = 128;
    let (channel, receiver) = bounded(CAPACITY);
    let each = messages / producers;
    for _ in 0..producers {
        let channel = channel.clone();
        thread::spawn(move || produce(channel, each));
    }
    drop(channel);
    let sum: i64 = receiver.iter().sum();
    require(sum == producers as i64 * sum_below(each), "the sum of the messages");
}

fn buffered_spsc(iterations: u64, _executors: usize) {
    println!("{:.4}", millions_a_second(measured(iterations, |messages| collect(messages, 1))));
}

fn buffered_mpsc4(iterations: u64, _executors: usize) {
    println!("{:.4}", millions_a_second(measured(iterations, |messages| collect(messages, 4))));
}

fn latency(messages: u64, percent: f64) {
    let (to, from) = bounded(arrivals::CAPACITY);
    arrivals::measure(
        messages,
        percent,
        move |plan| plan.due().for_each(|time| to.send(time).unwrap()),
        move |receipts| (0..receipts.count()).for_each(|_| receipts.take(from.recv().unwrap())),
    );
}

const ROWS: &[Row] = &[
    Row { name: "buffered_spsc", least_executors: 2, run: buffered_spsc },
    Row { name: "buffered_mpsc4", least_executors: 2, run: buffered_mpsc4 },
    Row { name: "latency_1", least_executors: 2, run: |messages, _| latency(messages, 1.0) },
    Row { name: "latency_50", least_executors: 2, run: |messages, _| latency(messages, 50.0) },
    Row { name: "latency_95", least_executors: 2, run: |messages, _| latency(messages, 95.0) },
    Row { name: "rendezvous_cross", least_executors: 2, run: rendezvous_cross },
];

fn main() {
    run_program(concat!("crossbeam-channel ", env!("CROSSBEAM_CHANNEL_VERSION")), ROWS);
}
