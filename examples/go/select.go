package main

import "fmt"

func powers(out chan<- int, quit <-chan struct{}) {
	power := 1
	for {
		select {
		case out <- power:
			power *= 3
		case <-quit:
			fmt.Println("quit")
			return
		}
	}
}

func main() {
	numbers := make(chan int)
	quit := make(chan struct{})
	go func() {
		for i := 0; i < 5; i++ {
			fmt.Println(<-numbers)
		}
		close(quit)
	}()
	powers(numbers, quit)
}
