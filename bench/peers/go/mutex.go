// Go's row mutex: goroutines count to a limit under one sync.Mutex, one goroutine or, with GOMAXPROCS 2, two.
// bench/mutex.hpp says what the work is and why; this is the same.
//
// Checked, each alternative measured beside the one taken:
//   - contended: goroutines that the scheduler places; it keeps them on both processors (the lesser share is near a half,
//     and both are busy). Locked to their threads they take the same with Go 1.19, and a quarter longer with 1.26.
//   - the steps outside are written out, as C++ and Rust compile them: Go unrolls no loop.
package main

import (
	"fmt"
	"runtime"
	"sync"
)

type guarded struct {
	mutex sync.Mutex
	count int
}

// countAlone counts until the count is at the limit; it returns how many turns were its own.
func (g *guarded) countAlone(limit int) (turns int) {
	for ; ; turns++ {
		g.mutex.Lock()
		if g.count == limit {
			g.mutex.Unlock()
			return turns
		}
		g.count++
		g.mutex.Unlock()
	}
}

func (g *guarded) countBesideAnother(limit int) (turns int) {
	x := uint64(1)
	for ; ; turns++ {
		g.mutex.Lock()
		if g.count == limit {
			g.mutex.Unlock()
			require(x != 0, "computing")
			return turns
		}
		g.count++
		g.mutex.Unlock()
		x = step(step(x))
	}
}

// step is one of a chain of dependent shifts (xorshift64, Marsaglia); never 0.
func step(x uint64) uint64 {
	x ^= x << 13
	x ^= x >> 7
	return x ^ x<<17
}

func mutexAlone(limit int) {
	done := make(chan int)
	go func() { done <- new(guarded).countAlone(limit) }()
	require(<-done == limit, "counting to the limit")
}

// mutexContended returns the lesser share, in percent.
func mutexContended(limit int) float64 {
	shared, done := new(guarded), make(chan int)
	for i := 0; i < 2; i++ {
		go func() { done <- shared.countBesideAnother(limit) }()
	}
	one, other := <-done, <-done
	require(one+other == limit, "counting each turn once")
	if other < one {
		one = other
	}
	return 100 * float64(one) / float64(limit)
}

func mutex(pairs int) {
	if runtime.GOMAXPROCS(0) == 1 {
		fmt.Printf("%.4f\n", measured(pairs, mutexAlone))
		return
	}
	share := 0.0
	fmt.Printf("%.4f\n", measured(pairs, func(limit int) { share = mutexContended(limit) }))
	fmt.Printf("lesser_share %.4f\n", share)
}
