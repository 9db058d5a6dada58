package main

import (
	"fmt"
	"sync"
)

func main() {
	merged := make(chan int)
	var sources sync.WaitGroup
	for start := 0; start < 30; start += 10 {
		sources.Add(1)
		go func(start int) {
			defer sources.Done()
			for i := 1; i <= 3; i++ {
				merged <- start + i
			}
		}(start)
	}
	go func() {
		sources.Wait()
		close(merged)
	}()
	count, sum := 0, 0
	for n := range merged {
		count++
		sum += n
	}
	fmt.Println(count, "numbers, sum", sum)
}
