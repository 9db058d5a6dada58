// tokio's rows about channels: tokio::sync::mpsc, whose smallest capacity, 1, stands for unbuffered.
//
// Checked, each alternative measured beside the one taken:
//  - rendezvous, stream and the choices: the runtime of one thread; one worker, and unconstrained, which spares a task
//    the count of its budget, take the same. One end in block_on takes half as long again.
//  - the choices: polling each channel once, from the one after the last choice on, so that all get their turn.
//    select! over four takes a quarter longer (alt4), over 64 two and a half times as long (alt64), as it polls from a
//    random branch on; select_all of futures-util over ReceiverStreams, which polls those alone that were woken, and
//    StreamMap and FuturesUnordered take a quarter longer over four and half as long again over 64.
//  - prialt4: polling from the first channel on; select! with biased does the same and takes a tenth longer.
//  - buffered_spsc on two: two tasks, which the scheduler places; mostly it keeps both on one worker. Apart, as in
//    rendezvous_cross, they take twice as long: that is the further line, apart. Unconstrained they take longer.
//  - buffered_mpsc4 on two: all tasks on two workers. Unconstrained, and the consumer in block_on beside two workers, were
//    as fast or faster by a tenth when the machine was busy, and not the same twice.

use crate::executors::{one_thread, runtime};
use crate::harness::{measured, millions_a_second, require, sum_below};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{channel, Receiver, Sender};
use tokio::task::yield_now;

const CAPACITY: usize = 128; // of the buffered rows

pub async fn send_pings(ping: Sender<i64>, mut pong: Receiver<i64>, round_trips: u64) {
    let mut sum = 0;
    for i in 0..round_trips {
        ping.send(i as i64).await.unwrap();
        sum += pong.recv().await.unwrap();
    }
    require(sum == sum_below(round_trips), "the sum of the pongs");
}

pub async fn return_pongs(mut ping: Receiver<i64>, pong: Sender<i64>, round_trips: u64) {
    for _ in 0..round_trips {
        pong.send(ping.recv().await.unwrap()).await.unwrap();
    }
}

fn ping_pong(runtime: &Runtime, messages: u64) {
    let (ping, pinged) = channel(1);
    let (pong, ponged) = channel(1);
    let sending = runtime.spawn(send_pings(ping, ponged, messages / 2));
    let returning = runtime.spawn(return_pongs(pinged, pong, messages / 2));
    runtime.block_on(sending).unwrap();
    runtime.block_on(returning).unwrap();
}

pub fn rendezvous(iterations: u64, _executors: usize) {
    let runtime = one_thread();
    println!("{:.3}", measured(iterations, |messages| ping_pong(&runtime, messages)));
}

async fn produce(to: Sender<i64>, messages: u64) {
    for i in 0..messages {
        to.send(i as i64).await.unwrap();
    }
}

async fn consume(mut from: Receiver<i64>) -> i64 {
    let mut sum = 0;
    while let Some(value) = from.recv().await {
        sum += value;
    }
    sum
}

/// Producers and a consumer, a task each.
fn collect(runtime: &Runtime, capacity: usize, messages: u64, producers: u64) {
    let (to, from) = channel(capacity);
    let each = messages / producers;
    for _ in 0..producers {
        runtime.spawn(produce(to.clone(), each));
    }
    drop(to);
    let sum = runtime.block_on(runtime.spawn(consume(from))).unwrap();
    require(sum == producers as i64 * sum_below(each), "the sum of the messages");
}

/// The consumer on the main thread, the producer on a worker.
fn collect_apart(runtime: &Runtime, messages: u64) {
    let (to, from) = channel(CAPACITY);
    runtime.spawn(produce(to, messages));
    require(runtime.block_on(consume(from)) == sum_below(messages), "the sum of the messages");
}

pub fn stream(iterations: u64, _executors: usize) {
    let runtime = one_thread();
    println!("{:.3}", measured(iterations, |messages| collect(&runtime, 1, messages, 1)));
}

fn buffered(iterations: u64, executors: usize, producers: u64) -> Runtime {
    let runtime = if executors == 1 { one_thread() } else { runtime(executors) };
    let ns = measured(iterations, |messages| collect(&runtime, CAPACITY, messages, producers));
    println!("{:.4}", millions_a_second(ns));
    runtime
}

pub fn buffered_spsc(iterations: u64, executors: usize) {
    let runtime = buffered(iterations, executors, 1);
    if executors > 1 {
        let ns = measured(iterations / 2, |messages| collect_apart(&runtime, messages));
        println!("apart {:.4}", millions_a_second(ns));
    }
}

pub fn buffered_mpsc4(iterations: u64, executors: usize) {
    buffered(iterations, executors, 4);
}

/// Channels to choose among. next: the one that the choice looks at first.
struct Choice<const N: usize> {
    from: [Receiver<i64>; N],
    next: usize,
}

impl<const N: usize> Choice<N> {
    /// And the senders of the channels.
    fn new() -> (Vec<Sender<i64>>, Choice<N>) {
        let mut to = Vec::new();
        let from = [(); N].map(|_| {
            let (sender, receiver) = channel(1);
            to.push(sender);
            receiver
        });
        (to, Choice { from, next: 0 })
    }

    /// Of whichever has one, all in their turn.
    fn receive(&mut self) -> Receive<'_, N, true> {
        Receive(self)
    }

    /// Of the first that has one.
    fn receive_first(&mut self) -> Receive<'_, N, false> {
        Receive(self)
    }
}

struct Receive<'a, const N: usize, const FAIR: bool>(&'a mut Choice<N>);

impl<const N: usize, const FAIR: bool> Future for Receive<'_, N, FAIR> {
    type Output = i64;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<i64> {
        let choice = &mut *self.0;
        for i in (choice.next..N).chain(0..choice.next) {
            if let Poll::Ready(Some(value)) = choice.from[i].poll_recv(context) {
                if FAIR {
                    choice.next = (i + 1) % N;
                }
                return Poll::Ready(value);
            }
        }
        Poll::Pending
    }
}

async fn take_any<const N: usize>(mut choice: Choice<N>, messages: u64) -> i64 {
    let mut sum = 0;
    for _ in 0..messages {
        sum += choice.receive().await;
    }
    sum
}

async fn take_first<const N: usize>(mut choice: Choice<N>, messages: u64) -> i64 {
    let mut sum = 0;
    for _ in 0..messages {
        sum += choice.receive_first().await;
    }
    sum
}

/// Lets the senders run after each choice, so that the next one finds them waiting.
async fn take_any_ready<const N: usize>(mut choice: Choice<N>, messages: u64) -> i64 {
    let mut sum = 0;
    for _ in 0..messages {
        sum += choice.receive().await;
        yield_now().await;
    }
    sum
}

/// Returns nanoseconds a message.
fn merge<const N: usize, F>(iterations: u64, take: fn(Choice<N>, u64) -> F) -> f64
where
    F: Future<Output = i64> + Send + 'static,
{
    let runtime = one_thread();
    measured(iterations, |messages| {
        let (count, each) = (N as u64, messages / N as u64);
        let (to, choice) = Choice::new();
        for sender in to {
            runtime.spawn(produce(sender, each));
        }
        let sum = runtime.block_on(runtime.spawn(take(choice, count * each))).unwrap();
        require(sum == N as i64 * sum_below(each), "the sum of the merged streams");
    })
}

pub fn alt4(iterations: u64, _executors: usize) {
    println!("{:.3}", merge::<4, _>(iterations, take_any));
}

pub fn prialt4(iterations: u64, _executors: usize) {
    println!("{:.3}", merge::<4, _>(iterations, take_first));
}

pub fn alt4_ready(iterations: u64, _executors: usize) {
    println!("{:.3}", merge::<4, _>(iterations, take_any_ready));
}

pub fn alt64(iterations: u64, _executors: usize) {
    println!("{:.4}", merge::<64, _>(iterations, take_any) / 64.0);
}

async fn send_in_turn(to: Vec<Sender<i64>>, mut ack: Receiver<i64>, messages: u64) -> i64 {
    let mut sum = 0;
    for i in 0..messages {
        to[i as usize % to.len()].send(i as i64).await.unwrap();
        sum += ack.recv().await.unwrap();
    }
    sum
}

async fn acknowledge<const N: usize>(mut choice: Choice<N>, ack: Sender<i64>, messages: u64) -> i64 {
    let mut sum = 0;
    for _ in 0..messages {
        let value = choice.receive().await;
        sum += value;
        ack.send(value).await.unwrap();
    }
    sum
}

fn exchange_among_four(runtime: &Runtime, messages: u64) {
    let (to, choice) = Choice::<4>::new();
    let (ack, acked) = channel(1);
    let sending = runtime.spawn(send_in_turn(to, acked, messages));
    let taking = runtime.spawn(acknowledge(choice, ack, messages));
    require(runtime.block_on(sending).unwrap() == sum_below(messages), "the sum of the acknowledgements");
    require(runtime.block_on(taking).unwrap() == sum_below(messages), "the sum of the messages");
}

pub fn alt4_ack(iterations: u64, _executors: usize) {
    let runtime = one_thread();
    println!("{:.3}", measured(iterations, |messages| exchange_among_four(&runtime, messages)));
}
