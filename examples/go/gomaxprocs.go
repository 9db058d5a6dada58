package main

import (
	"fmt"
	"runtime"
)

func main() {
	runtime.GOMAXPROCS(2)
	sums := make(chan int)
	for part := 0; part < 4; part++ {
		go func(part int) {
			sum := 0
			for n := part; n < 1000; n += 4 {
				sum += n
			}
			sums <- sum
		}(part)
	}
	fmt.Println(<-sums + <-sums + <-sums + <-sums)
}
