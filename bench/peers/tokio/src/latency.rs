// tokio's rows latency_1, latency_50, latency_95; arrivals.rs has the work.
//
// Each end has a runtime of its own, of one thread, so that the two are apart and no worker searches beside them; the
// sender spins, and has nobody to give its turn up to.
//
// Not tried: the ends as tasks of one runtime, whose workers wake and search for what the spinning sender has.

use crate::arrivals::{measure, CAPACITY};
use crate::executors::one_thread;
use tokio::sync::mpsc::channel;

pub fn latency(messages: u64, percent: f64) {
    let (to, mut from) = channel(CAPACITY);
    measure(
        messages,
        percent,
        move |plan| {
            one_thread().block_on(async {
                for time in plan.due() {
                    to.send(time).await.unwrap();
                }
            })
        },
        move |receipts| {
            one_thread().block_on(async {
                for _ in 0..receipts.count() {
                    receipts.take(from.recv().await.unwrap());
                }
            })
        },
    );
}
