package main

import (
	"fmt"
	"time"
)

func main() {
	answers := make(chan int)
	select {
	case answer := <-answers:
		fmt.Println("answer", answer)
	case <-time.After(20 * time.Millisecond):
		fmt.Println("too late")
	}
}
