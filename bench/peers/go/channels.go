// Go's rows about channels beyond the plain rendezvous: buffered ones, larger choices, a ring, and what a process takes
// whose goroutines all wait.
//
// Checked, each alternative measured beside the one taken:
//   - buffered_spsc on two: goroutines that the scheduler places, sometimes both on one thread; locked to their threads,
//     which keeps them apart, they take three times as long: that is the further line, apart.
//   - alt64: the select statement of select64.go; reflect.Select takes half as long again.
//   - idle_cpu: main sleeps in the kernel; with time.Sleep the process takes the same.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const capacity = 128

func millionsASecond(nsAMessage float64) float64 { return 1000 / nsAMessage }

// collect has producers with messages for one consumer, a goroutine each.
func collect(messages, producers int, lockThreads bool) {
	channel, done := make(chan int64, capacity), make(chan int64)
	each := messages / producers
	for i := 0; i < producers; i++ {
		go func() {
			if lockThreads {
				runtime.LockOSThread() // the thread ends with the goroutine
			}
			produce(channel, each)
		}()
	}
	go func() {
		if lockThreads {
			runtime.LockOSThread()
		}
		var sum int64
		for i := 0; i < producers*each; i++ {
			sum += <-channel
		}
		done <- sum
	}()
	require(<-done == int64(producers)*sumBelow(each), "the sum of the messages")
}

func bufferedSpsc(messages int) {
	ns := measured(messages, func(messages int) { collect(messages, 1, false) })
	fmt.Printf("%.4f\n", millionsASecond(ns))
	if runtime.GOMAXPROCS(0) > 1 {
		ns := measured(messages/4, func(messages int) { collect(messages, 1, true) })
		fmt.Printf("apart %.4f\n", millionsASecond(ns))
	}
}

func bufferedMpsc4(messages int) {
	ns := measured(messages, func(messages int) { collect(messages, 4, false) })
	fmt.Printf("%.4f\n", millionsASecond(ns))
}

func sendInTurn(to [4]chan int64, ack <-chan int64, messages int) (sum int64) {
	for i := 0; i < messages; i++ {
		to[i%4] <- int64(i)
		sum += <-ack
	}
	return sum
}

func acknowledge(a, b, c, d <-chan int64, ack chan<- int64, messages int) (sum int64) {
	for i := 0; i < messages; i++ {
		var v int64
		select {
		case v = <-a:
		case v = <-b:
		case v = <-c:
		case v = <-d:
		}
		sum += v
		ack <- v
	}
	return sum
}

func alt4Ack(messages int) {
	a, b, c, d, ack := make(chan int64), make(chan int64), make(chan int64), make(chan int64), make(chan int64)
	acked, taken := make(chan int64), make(chan int64)
	go func() { acked <- sendInTurn([4]chan int64{a, b, c, d}, ack, messages) }()
	go func() { taken <- acknowledge(a, b, c, d, ack, messages) }()
	require(<-acked == sumBelow(messages), "the sum of the acknowledgements")
	require(<-taken == sumBelow(messages), "the sum of the messages")
}

func mergeAll(messages int) {
	from, done := new(channels64), make(chan int64)
	each := messages / len(from)
	for i := range from {
		from[i] = make(chan int64)
		go produce(from[i], each)
	}
	go func() { done <- selectAny64(from, len(from)*each) }()
	require(<-done == int64(len(from))*sumBelow(each), "the sum of the merged streams")
}

func alt64(messages int) {
	fmt.Printf("%.4f\n", measured(messages, mergeAll)/float64(len(channels64{})))
}

const ringMembers = 503

// ringMember hands tokens on, each one less, until there is none to come.
func ringMember(number int, in <-chan int, out chan<- int, last chan<- int, ended *sync.WaitGroup) {
	for token := range in {
		if token == 0 {
			last <- number
			break
		}
		out <- token - 1
	}
	close(out)
	ended.Done()
}

func threadRing(hops int) {
	var ring [ringMembers]chan int
	for i := range ring {
		ring[i] = make(chan int)
	}
	last := make(chan int, 1)
	var ended sync.WaitGroup
	ended.Add(ringMembers)
	for i := range ring {
		go ringMember(i, ring[i], ring[(i+1)%ringMembers], last, &ended)
	}
	ring[0] <- hops
	ended.Wait()
	require(<-last == hops%ringMembers, "the end of the token's way")
}

// idleMember is as ringMember, but goes on for ever.
func idleMember(in <-chan int, out chan<- int, done chan<- int) {
	for token := range in {
		if token > 0 {
			out <- token - 1
		} else {
			done <- token
		}
	}
}

const (
	idleMembers = 1000
	idleTokens  = 10
)

// sleepThread sleeps in the kernel: no timer of the scheduler runs meanwhile.
func sleepThread(duration time.Duration) {
	left := syscall.NsecToTimespec(int64(duration))
	for syscall.Nanosleep(&left, &left) == syscall.EINTR {
	}
}

// idleCPU prints the milliseconds of processor time that a second takes in which everybody is blocked.
func idleCPU(messages int) {
	var ring [idleMembers]chan int
	for i := range ring {
		ring[i] = make(chan int)
	}
	done := make(chan int)
	for i := range ring {
		go idleMember(ring[i], ring[(i+1)%idleMembers], done)
	}
	for i := 0; i < idleMembers; i += idleMembers / idleTokens {
		ring[i] <- messages / idleTokens
	}
	for i := 0; i < idleTokens; i++ {
		<-done
	}
	const seconds = 2
	sleepThread(10 * time.Millisecond)
	before := cpuSeconds()
	sleepThread(seconds * time.Second)
	fmt.Printf("%.4f\n", (cpuSeconds()-before)*1000/seconds)
}
