// Go's rows about time. Lateness is what a goroutine sees: the clock when it goes on, less its deadline.
//
// Checked, each alternative measured beside the one taken:
//   - timer_pair: NewTimer and Stop, since csp_after gives a channel too; AfterFunc and Stop, which give none, take a
//     third to a half less. A timer that is kept and Reset takes a quarter: that is the further line, reused. A timeout
//     shorter than those of all that are armed costs up to two thirds more.
//   - timers_1s, hogs: time.Sleep; a Ticker drops the ticks that it is late for, and would hide lateness.
//   - hogs: runtime.Gosched after each microsecond of computing, as libmcrt's hogs call mc_checkpoint; without it Go's
//     own preemption takes a hog off its thread after 10 ms, and the ticker is 10 ms late on average.
package main

import (
	"fmt"
	"math"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	armed   = 10000
	timeout = time.Hour // of all, as in a server; the armed ones began a millisecond after another
)

func timerPair(pairs int) {
	timers := make([]*time.Timer, armed)
	for i := range timers {
		timers[i] = time.NewTimer(timeout - time.Duration(i)*time.Millisecond)
	}
	fresh := measured(pairs, func(operations int) {
		for i := 0; i < operations; i++ {
			require(time.NewTimer(timeout).Stop(), "stopping a timer")
		}
	})
	timer := time.NewTimer(timeout)
	reused := measured(pairs, func(operations int) {
		for i := 0; i < operations; i++ {
			timer.Reset(timeout)
			require(timer.Stop(), "stopping a timer")
		}
	})
	fmt.Printf("%.3f\nreused %.3f\n", fresh, reused)
	for _, timer := range timers {
		require(timer.Stop(), "stopping a timer") // and all are alive until here
	}
}

func meanMs(late []time.Duration) float64 {
	var sum time.Duration
	for _, each := range late {
		sum += each
	}
	return float64(sum) / float64(len(late)) / 1e6
}

// perMilleMs is the least value that this part of a thousand of all does not exceed. It sorts.
func perMilleMs(late []time.Duration, part int) float64 {
	sort.Slice(late, func(i, j int) bool { return late[i] < late[j] })
	return float64(late[(len(late)*part+999)/1000-1]) / 1e6
}

func cpuSeconds() float64 {
	var used syscall.Rusage
	require(syscall.Getrusage(syscall.RUSAGE_SELF, &used) == nil, "getrusage")
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// timers1s starts all goroutines, and has them asleep, before the second that is measured begins.
func timers1s(count int) {
	const coprime = 7919 // with every power of ten: deadlines are dealt out in no order
	begin := time.Now().Add(time.Second)
	late := make([]time.Duration, count)
	var done sync.WaitGroup
	done.Add(count)
	for i := 0; i < count; i++ {
		deadline := begin.Add(time.Duration(i*coprime%count) * time.Second / time.Duration(count))
		go func(i int) {
			time.Sleep(time.Until(deadline))
			late[i] = time.Since(deadline)
			done.Done()
		}(i)
	}
	require(time.Now().Before(begin), "starting all goroutines in time")
	time.Sleep(time.Until(begin))
	before := cpuSeconds()
	time.Sleep(time.Until(begin.Add(time.Second)))
	used := cpuSeconds() - before
	done.Wait()
	p99 := perMilleMs(late, 990)
	require(late[0] >= 0, "sleeping until the deadline")
	fmt.Printf("%.4f\nmean %.4f\np99 %.4f\nmax %.4f\n", used, meanMs(late), p99, perMilleMs(late, 1000))
}

// compute is a chain of dependent shifts, which no compiler shortens (xorshift64, Marsaglia); never 0.
func compute(x uint64, steps int) uint64 {
	for ; steps > 0; steps-- {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

func stepsAMicrosecond() int {
	const steps = 1000000
	x, best := uint64(1), math.Inf(1)
	for i := 0; i < 5; i++ {
		start := time.Now()
		x = compute(x, steps)
		best = math.Min(best, float64(time.Since(start).Nanoseconds()))
	}
	require(x != 0, "computing")
	return int(steps * 1000 / best)
}

const (
	tick       = time.Millisecond
	firstTicks = 100 // not measured: until every executor has a hog
)

// hogs prints the 99.9th percentile of the ticker's lateness, in milliseconds. computing: processors' worth that the
// hogs computed.
func hogs(ticks int) {
	steps := stepsAMicrosecond()
	late := make([]time.Duration, ticks)
	var stop, microseconds int64
	var done sync.WaitGroup
	executors := runtime.GOMAXPROCS(0)
	done.Add(executors + 1)
	start := time.Now()
	for i := 0; i < executors; i++ {
		go func() {
			x, rounds := uint64(1), int64(0)
			for ; atomic.LoadInt64(&stop) == 0; rounds++ {
				x = compute(x, steps)
				runtime.Gosched()
			}
			require(x != 0 && rounds != 0, "computing")
			atomic.AddInt64(&microseconds, rounds)
			done.Done()
		}()
	}
	go func() {
		deadline := time.Now()
		for i := -firstTicks; i < ticks; i++ {
			deadline = deadline.Add(tick)
			time.Sleep(time.Until(deadline))
			if i >= 0 {
				late[i] = time.Since(deadline)
			}
		}
		atomic.StoreInt64(&stop, 1)
		done.Done()
	}()
	done.Wait()
	computing := float64(microseconds) * 1000 / float64(time.Since(start).Nanoseconds())
	p999 := perMilleMs(late, 999)
	require(late[0] >= 0, "sleeping until the deadline")
	fmt.Printf("%.4f\nmean %.4f\nmax %.4f\ncomputing %.4f\n", p999, meanMs(late), perMilleMs(late, 1000), computing)
}
