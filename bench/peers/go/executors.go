// Go's rows that need several executors, or compare one with several. GOMAXPROCS is set before they run.
//
// Checked, each alternative measured beside the one taken:
//   - rendezvous_cross: both goroutines locked to their threads, which is Go's way to keep them apart. Left to itself
//     the scheduler mostly runs both on one thread (350 ns a message), which is not what the row asks.
//   - skynet: channels that hold all ten sums take the same time.
//   - spawn_bulk: a WaitGroup beats a channel by a tenth; `go done.Done()` and a closure that calls it cost the same.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

func rendezvousCross(messages int) {
	ping, pong, done := make(chan int64), make(chan int64), make(chan int64)
	roundTrips := messages / 2
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		var sum int64
		for i := 0; i < roundTrips; i++ {
			ping <- int64(i)
			sum += <-pong
		}
		done <- sum
	}()
	go func() {
		runtime.LockOSThread()
		for i := 0; i < roundTrips; i++ {
			pong <- <-ping
		}
	}()
	require(<-done == sumBelow(roundTrips), "the sum of the pongs")
}

// skynetNode starts ten nodes and sends its parent the sum of what they send it; a leaf sends its own number.
func skynetNode(parent chan<- int64, first int64, leaves int) {
	if leaves == 1 {
		parent <- first
		return
	}
	const fanOut = 10
	sums := make(chan int64)
	each := leaves / fanOut
	for i := 0; i < fanOut; i++ {
		go skynetNode(sums, first+int64(i*each), each)
	}
	var sum int64
	for i := 0; i < fanOut; i++ {
		sum += <-sums
	}
	parent <- sum
}

func skynet(leaves int) {
	start := time.Now()
	result := make(chan int64)
	go skynetNode(result, 0, leaves)
	sum := <-result
	fmt.Printf("%.4f\n", float64(time.Since(start).Nanoseconds())/1e6)
	require(sum == sumBelow(leaves), "skynet's sum")
}

func spawnBulk(count int) {
	start := time.Now()
	var done sync.WaitGroup
	done.Add(count)
	for i := 0; i < count; i++ {
		go done.Done()
	}
	done.Wait()
	fmt.Printf("%.4f\n", float64(time.Since(start).Nanoseconds())/float64(count))
}
