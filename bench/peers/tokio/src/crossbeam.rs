// crossbeam-channel's side of the benchmark: channels between threads, which spin for a while before they sleep.
//
// The driver (bench/run) builds it and starts it, one process a row. It schedules nothing, so it has only the row whose
// two ends are on processors of their own.
//
// Checked, each alternative measured beside the one taken:
//  - the version: the last that spins before it sleeps, and was not withdrawn. With 0.5.15 both ends sleep at once, and
//    a message takes nine times as long.
//  - bounded(0), its rendezvous, one thread beside the main one. Both threads of its own: the same.
mod harness;

use crossbeam_channel::{bounded, Receiver, Sender};
use harness::{measured, require, run_program, sum_below, Row};
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

const ROWS: &[Row] = &[Row { name: "rendezvous_cross", least_executors: 2, run: rendezvous_cross }];

fn main() {
    run_program("crossbeam-channel 0.5.11", ROWS);
}
