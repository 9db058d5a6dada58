// Go's rows latency_1, latency_50, latency_95: messages at times that were drawn before, and what they wait.
//
// Checked, each alternative measured beside the one taken:
//   - the sender locked to its thread, which it never leaves, the receiver wherever the scheduler has it. Neither locked,
//     and the receiver alone, have a 99th percentile that is a third to twice as high; both locked, the same or a tenth
//     higher. (On a machine on which others ran.)
package main

import (
	"fmt"
	"math"
	"runtime"
	"sort"
	"time"
)

const (
	latencyCapacity = 65536
	workNs          = 10000
	lead            = 50 * time.Millisecond
)

// arrivals are count times in nanoseconds, with gaps that are distributed exponentially.
func arrivals(count int, meanGapNs float64) []int64 {
	times := make([]int64, count)
	state, t := uint64(1), 0.0 // splitmix64
	for i := range times {
		state += 0x9E3779B97F4A7C15
		z := state
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		z ^= z >> 31
		t -= math.Log1p(-float64(z>>11)/(1<<53)) * meanGapNs
		times[i] = int64(t)
	}
	return times
}

// clock reads nanoseconds since a moment before all others.
type clock struct{ base time.Time }

func (c clock) now() int64 { return int64(time.Since(c.base)) }

func sendAtTimes(clock clock, channel chan<- int64, start int64, offsets []int64) {
	for _, offset := range offsets {
		for clock.now() < start+offset {
		}
		channel <- start + offset
	}
}

// work computes until workNs after since.
func (c clock) work(x uint64, since int64) uint64 {
	for c.now()-since < workNs {
		for i := 0; i < 32; i++ {
			x = step(step(x))
		}
	}
	return x
}

// receiveAll stores how long each message took; it returns the sum of the intended times.
func receiveAll(clock clock, channel <-chan int64, late []int64) (sum int64) {
	x := uint64(1)
	for i := range late {
		intended := <-channel
		now := clock.now()
		late[i] = now - intended
		sum += intended
		x = clock.work(x, now)
	}
	require(x != 0, "computing")
	return sum
}

// percentileUs is of sorted nanoseconds.
func percentileUs(late []int64, p float64) float64 {
	return float64(late[int(math.Ceil(float64(len(late))*p))-1]) / 1000
}

func printLatencies(late []int64, processors float64) {
	sort.Slice(late, func(i, j int) bool { return late[i] < late[j] })
	require(late[0] >= 0, "sending at the intended time")
	fmt.Printf("%.4f\np50 %.4f\n", percentileUs(late, 0.99), percentileUs(late, 0.5))
	fmt.Printf("p999 %.4f\nmax %.4f\n", percentileUs(late, 0.999), percentileUs(late, 1))
	fmt.Printf("processors %.4f\n", processors)
}

func sumOf(values []int64) (sum int64) {
	for _, value := range values {
		sum += value
	}
	return sum
}

// latencyAt has a load of so many percent.
func latencyAt(percent float64) func(int) {
	return func(messages int) {
		offsets := arrivals(messages+messages/10, workNs*100/percent)
		late := make([]int64, len(offsets))
		clock, channel := clock{time.Now()}, make(chan int64, latencyCapacity)
		there, start, done := make(chan bool), make(chan int64), make(chan int64)
		go func() {
			there <- true
			done <- receiveAll(clock, channel, late)
		}()
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			there <- true
			sendAtTimes(clock, channel, <-start, offsets)
		}()
		<-there
		<-there
		begin := clock.now() + int64(lead)
		start <- begin
		sleepThread(lead)
		before := cpuSeconds()
		sum := <-done
		used, took := cpuSeconds()-before, float64(clock.now()-begin)/1e9
		require(sum-begin*int64(len(offsets)) == sumOf(offsets), "the sum of the intended times")
		printLatencies(late[messages/10:], used/took)
	}
}
