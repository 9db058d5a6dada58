// The work of the rows latency_*, for both programs: what bench/latency.hpp has for those in C++, whose head comment says
// why it is so. A program brings the channel, and the two ends, a thread each.

use crate::harness::require;
use crate::process::cpu_seconds;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

pub const CAPACITY: usize = 65_536; // of the channel
const WORK_NS: i64 = 10_000; // for each message
const LEAD_NS: i64 = 50_000_000; // from the moment when both ends are there to the start

/// Nanoseconds since a moment before all others.
#[derive(Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn now(self) -> i64 {
        self.0.elapsed().as_nanos() as i64
    }
}

/// Times in nanoseconds, with gaps that are distributed exponentially.
fn arrivals(count: u64, mean_gap_ns: f64) -> Vec<i64> {
    let (mut state, mut t) = (1_u64, 0.0_f64); // splitmix64
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        t -= (-((z >> 11) as f64) / (1_u64 << 53) as f64).ln_1p() * mean_gap_ns;
        t as i64
    };
    (0..count).map(|_| next()).collect()
}

/// The sender's: when to send what.
pub struct Plan {
    clock: Clock,
    start: i64,
    offsets: Vec<i64>,
}

impl Plan {
    /// The messages, each as soon as it is due; the iterator spins until then.
    pub fn due(&self) -> impl Iterator<Item = i64> + '_ {
        self.offsets.iter().map(move |offset| {
            let time = self.start + offset;
            while self.clock.now() < time {}
            time
        })
    }
}

/// The receiver's: how late messages came.
pub struct Receipts {
    clock: Clock,
    late: Vec<i64>,
    sum: i64,
    x: u64,
}

impl Receipts {
    pub fn count(&self) -> usize {
        self.late.capacity()
    }

    /// A message has come: notes how late it is, and works.
    pub fn take(&mut self, due: i64) {
        let now = self.clock.now();
        self.late.push(now - due);
        self.sum += due;
        while self.clock.now() - now < WORK_NS {
            for _ in 0..64 {
                self.x ^= self.x << 13;
                self.x ^= self.x >> 7;
                self.x ^= self.x << 17;
            }
        }
    }
}

/// Runs both ends, a thread each, and prints the row.
pub fn measure(
    messages: u64,
    percent: f64,
    send: impl FnOnce(&Plan) + Send + 'static,
    receive: impl FnOnce(&mut Receipts) + Send + 'static,
) {
    let clock = Clock(Instant::now());
    let offsets = arrivals(messages + messages / 10, WORK_NS as f64 * 100.0 / percent);
    let (count, sum_of_offsets) = (offsets.len(), offsets.iter().sum::<i64>());
    let mut receipts = Receipts { clock, late: Vec::with_capacity(count), sum: 0, x: 1 };
    let (begin, begins) = mpsc::channel();
    let (there, both) = mpsc::channel();
    let receiver_there = there.clone();
    let receiver = thread::spawn(move || {
        receiver_there.send(()).unwrap();
        receive(&mut receipts);
        (receipts, cpu_seconds(), clock.now())
    });
    let sender = thread::spawn(move || {
        there.send(()).unwrap();
        send(&Plan { clock, start: begins.recv().unwrap(), offsets });
    });
    both.iter().take(2).for_each(drop);
    let start = clock.now() + LEAD_NS;
    begin.send(start).unwrap();
    thread::sleep(Duration::from_nanos((start - clock.now()).max(0) as u64));
    let used_before = cpu_seconds();
    let (receipts, used, end) = receiver.join().unwrap();
    sender.join().unwrap();
    require(receipts.x != 0, "computing");
    require(receipts.sum - start * count as i64 == sum_of_offsets, "the sum of the times");
    print(receipts.late[messages as usize / 10..].to_vec(), (used - used_before) * 1e9 / (end - start) as f64);
}

fn print(mut late: Vec<i64>, processors: f64) {
    late.sort_unstable();
    require(late[0] >= 0, "receiving after sending");
    let per_mille_us = |part: usize| late[(late.len() * part + 999) / 1000 - 1] as f64 / 1000.0;
    println!("{:.4}\np50 {:.4}", per_mille_us(990), per_mille_us(500));
    println!("p999 {:.4}\nmax {:.4}", per_mille_us(999), per_mille_us(1000));
    println!("processors {:.4}", processors);
}
