// What the Rust programs share: the command line (bench/harness.hpp has the form), the clock, a check that fails the
// row.

use std::process::exit;
use std::time::{Duration, Instant};

const WARM_UP: u64 = 10_000;

/// Prints its result: the value, then further lines.
pub type Run = fn(iterations: u64, executors: usize);

pub struct Row {
    pub name: &'static str,
    pub least_executors: usize,
    pub run: Run,
}

pub fn require(ok: bool, what: &str) {
    if !ok {
        eprintln!("bench: {} failed", what);
        exit(1);
    }
}

/// Runs pass twice, a short one to warm up and the measured one; returns nanoseconds an operation.
pub fn measured(iterations: u64, mut pass: impl FnMut(u64)) -> f64 {
    pass(WARM_UP);
    let start = Instant::now();
    pass(iterations);
    nanoseconds(start.elapsed()) / iterations as f64
}

pub fn nanoseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

pub fn millions_a_second(ns_a_message: f64) -> f64 {
    1000.0 / ns_a_message
}

/// The sum of 0 .. count - 1.
pub fn sum_below(count: u64) -> i64 {
    (count * (count - 1) / 2) as i64
}

fn usage(rows: &[Row]) -> ! {
    eprintln!("usage: PROGRAM ROW ITERATIONS EXECUTORS | --version | --rows");
    eprintln!("rows: {}", rows.iter().map(|row| row.name).collect::<Vec<_>>().join(" "));
    exit(2)
}

fn run_row(rows: &[Row], name: &str, iterations: &str, executors: &str) {
    let row = rows.iter().find(|row| row.name == name).unwrap_or_else(|| usage(rows));
    match (iterations.parse(), executors.parse()) {
        (Ok(iterations), Ok(executors)) if iterations > 0 && executors >= row.least_executors => {
            (row.run)(iterations, executors)
        }
        _ => usage(rows),
    }
}

/// The main function of each program. Name: with its version.
pub fn run_program(name: &str, rows: &[Row]) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--version"] => {
            println!("{}\nbuild {}", name, if cfg!(debug_assertions) { "debug" } else { "release" })
        }
        ["--rows"] => rows.iter().for_each(|row| println!("{}", row.name)),
        [row, iterations, executors] => run_row(rows, row, iterations, executors),
        _ => usage(rows),
    }
}
