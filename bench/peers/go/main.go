// Go's side of the benchmark, as its own users would write it for speed.
//
// The driver (bench/run) builds it with each Go that it measures and starts it, one process a row. Command form, as
// for every program of bench/: ROW ITERATIONS EXECUTORS | --version | --rows; see bench/harness.hpp. EXECUTORS is
// GOMAXPROCS.
//
// Checked, each alternative measured beside the one taken:
//   - spawn_join: an unbuffered done channel beats a WaitGroup and a channel made anew each time by a tenth; a
//     buffered one, and a function with arguments in place of the closure, cost the same.
//   - stream: ranging over the channel until it is closed, and counting the receives, cost the same.
//   - alt4: channels in variables and in an array cost the same. Go's select takes a random one of those that are
//     ready.
//   - prialt4: Go has no select with priorities; its idiom is a cascade of selects with default, which costs no more
//     than the plain select, so this row has the cascade.
//   - memory, memory_1m: the collector runs before both readings, and what it does not need goes back to the kernel:
//     without that it is 1 % more. All wait on one channel, as in the other programs: one each would add its 96 bytes.
//   - the collector's settings are left alone: only spawn_join leaves garbage, its closures.
//   - GOMAXPROCS(1) pinned to one CPU, and not pinned, take the same time; so do builds with and without cgo, and a
//     go.mod that names the newest language version.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

const warmUp = 10000

type row struct {
	name string
	run  func(iterations int) // prints its result
}

// measured runs pass twice, a short one to warm up and the measured one; it returns nanoseconds an operation.
func measured(iterations int, pass func(operations int)) float64 {
	pass(warmUp)
	start := time.Now()
	pass(iterations)
	return float64(time.Since(start).Nanoseconds()) / float64(iterations)
}

func timed(pass func(operations int)) func(int) {
	return func(iterations int) { fmt.Printf("%.3f\n", measured(iterations, pass)) }
}

func require(ok bool, what string) {
	if !ok {
		fmt.Fprintf(os.Stderr, "bench: %s failed\n", what)
		os.Exit(1)
	}
}

// sumBelow is the sum of 0 .. count - 1, which is what a stream of count messages adds up to.
func sumBelow(count int) int64 { return int64(count) * int64(count-1) / 2 }

func yieldAmong(count int) func(int) {
	return func(switches int) {
		var done sync.WaitGroup
		done.Add(count)
		for i := 0; i < count; i++ {
			go func() {
				for left := switches / count; left > 0; left-- {
					runtime.Gosched()
				}
				done.Done()
			}()
		}
		done.Wait()
	}
}

func rendezvous(messages int) {
	ping, pong, done := make(chan int64), make(chan int64), make(chan int64)
	roundTrips := messages / 2
	go func() {
		var sum int64
		for i := 0; i < roundTrips; i++ {
			ping <- int64(i)
			sum += <-pong
		}
		done <- sum
	}()
	go func() {
		for i := 0; i < roundTrips; i++ {
			pong <- <-ping
		}
	}()
	require(<-done == sumBelow(roundTrips), "the sum of the pongs")
}

func produce(channel chan<- int64, messages int) {
	for i := 0; i < messages; i++ {
		channel <- int64(i)
	}
}

func stream(messages int) {
	channel, done := make(chan int64), make(chan int64)
	go produce(channel, messages)
	go func() {
		var sum int64
		for i := 0; i < messages; i++ {
			sum += <-channel
		}
		done <- sum
	}()
	require(<-done == sumBelow(messages), "the sum of the stream")
}

// mergeFour starts four producers and a consumer that takes all their messages with consume.
func mergeFour(messages int, consume func(a, b, c, d <-chan int64, messages int) int64) {
	a, b, c, d, done := make(chan int64), make(chan int64), make(chan int64), make(chan int64), make(chan int64)
	each := messages / 4
	for _, channel := range []chan int64{a, b, c, d} {
		go produce(channel, each)
	}
	go func() { done <- consume(a, b, c, d, 4*each) }()
	require(<-done == 4*sumBelow(each), "the sum of the merged streams")
}

func selectAny(a, b, c, d <-chan int64, messages int) (sum int64) {
	for i := 0; i < messages; i++ {
		select {
		case v := <-a:
			sum += v
		case v := <-b:
			sum += v
		case v := <-c:
			sum += v
		case v := <-d:
			sum += v
		}
	}
	return sum
}

// selectAnyReady lets the senders run after each choice, so that the next one finds them waiting.
func selectAnyReady(a, b, c, d <-chan int64, messages int) (sum int64) {
	for i := 0; i < messages; i++ {
		sum += selectAny(a, b, c, d, 1)
		runtime.Gosched()
	}
	return sum
}

func selectFirst(a, b, c, d <-chan int64, messages int) (sum int64) {
	for i := 0; i < messages; i++ {
		select {
		case v := <-a:
			sum += v
			continue
		default:
		}
		select {
		case v := <-b:
			sum += v
			continue
		default:
		}
		select {
		case v := <-c:
			sum += v
			continue
		default:
		}
		select {
		case v := <-a:
			sum += v
		case v := <-b:
			sum += v
		case v := <-c:
			sum += v
		case v := <-d:
			sum += v
		}
	}
	return sum
}

func spawnJoin(count int) {
	done := make(chan struct{})
	for i := 0; i < count; i++ {
		go func() { done <- struct{}{} }()
		<-done
	}
}

func residentBytes() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	var pages, resident int
	if err == nil {
		_, err = fmt.Sscan(string(text), &pages, &resident)
	}
	require(err == nil, "reading /proc/self/statm")
	return float64(resident) * float64(os.Getpagesize())
}

func pageTableBytes() float64 {
	text, err := os.ReadFile("/proc/self/status")
	require(err == nil, "reading /proc/self/status")
	var kib float64
	if at := strings.Index(string(text), "VmPTE:"); at >= 0 {
		fmt.Sscan(string(text[at+len("VmPTE:"):]), &kib)
	}
	return kib * 1024
}

// block prints the memory that count blocked goroutines take; it returns the nanoseconds that making one took.
func block(count int) float64 {
	channel := make(chan int64)
	blocked := 0
	debug.FreeOSMemory()
	resident, tables := residentBytes(), pageTableBytes()
	start := time.Now()
	for i := 0; i < count; i++ {
		go func() {
			blocked++
			<-channel
		}()
	}
	for blocked < count {
		runtime.Gosched()
	}
	took := time.Since(start)
	debug.FreeOSMemory()
	fmt.Printf("%.1f\n", (residentBytes()-resident)/float64(count))
	fmt.Printf("page_tables %.1f\n", (pageTableBytes()-tables)/float64(count))
	return float64(took.Nanoseconds()) / float64(count)
}

func memory(count int) { block(count) }

func memory1m(count int) { fmt.Printf("create %.1f\n", block(count)) }

var rows = []row{
	{"yield2", timed(yieldAmong(2))},
	{"yield100", timed(yieldAmong(100))},
	{"rendezvous", timed(rendezvous)},
	{"stream", timed(stream)},
	{"alt4", timed(func(n int) { mergeFour(n, selectAny) })},
	{"prialt4", timed(func(n int) { mergeFour(n, selectFirst) })},
	{"alt4_ready", timed(func(n int) { mergeFour(n, selectAnyReady) })},
	{"spawn_join", timed(spawnJoin)},
	{"memory", memory},
	{"memory_1m", memory1m},
	{"buffered_spsc", bufferedSpsc},
	{"buffered_mpsc4", bufferedMpsc4},
	{"alt4_ack", timed(alt4Ack)},
	{"alt64", alt64},
	{"threadring", timed(threadRing)},
	{"rendezvous_cross", timed(rendezvousCross)},
	{"skynet", skynet},
	{"spawn_bulk", spawnBulk},
	{"mutex", mutex},
	{"timer_pair", timerPair},
	{"timers_1s", timers1s},
	{"hogs", hogs},
	{"latency_1", latencyAt(1)},
	{"latency_50", latencyAt(50)},
	{"latency_95", latencyAt(95)},
	{"idle_cpu", idleCPU},
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: PROGRAM ROW ITERATIONS EXECUTORS | --version | --rows")
	os.Exit(2)
}

func runRow(name, iterationsText, executorsText string) {
	iterations, err1 := strconv.Atoi(iterationsText)
	executors, err2 := strconv.Atoi(executorsText)
	if err1 != nil || err2 != nil || iterations < 1 || executors < 1 {
		usage()
	}
	runtime.GOMAXPROCS(executors)
	for _, row := range rows {
		if row.name == name {
			row.run(iterations)
			return
		}
	}
	usage()
}

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "--version":
		fmt.Printf("Go %s\nbuild release\n", strings.TrimPrefix(runtime.Version(), "go"))
	case len(os.Args) == 2 && os.Args[1] == "--rows":
		for _, row := range rows {
			fmt.Println(row.name)
		}
	case len(os.Args) == 4:
		runRow(os.Args[1], os.Args[2], os.Args[3])
	default:
		usage()
	}
}
