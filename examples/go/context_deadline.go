package main

import (
	"context"
	"fmt"
	"time"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	answers := make(chan int)
	select {
	case answer := <-answers:
		fmt.Println("answer", answer)
	case <-ctx.Done():
		if ctx.Err() == context.DeadlineExceeded {
			fmt.Println("deadline exceeded")
		}
	}
}
