package main

import (
	"context"
	"fmt"
)

func count(ctx context.Context, out chan<- int) {
	defer close(out)
	for n := 1; ; n++ {
		select {
		case out <- n:
		case <-ctx.Done():
			return
		}
	}
}

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	numbers := make(chan int)
	go count(ctx, numbers)
	fmt.Println(<-numbers)
	fmt.Println(<-numbers)
	cancel()
	if ctx.Err() == context.Canceled {
		fmt.Println("canceled")
	}
}
