package main

import "fmt"

func main() {
	numbers := make(chan int, 2)
	numbers <- 1
	numbers <- 2
	select {
	case numbers <- 3:
	default:
		fmt.Println("full")
	}
	fmt.Println(<-numbers)
	fmt.Println(<-numbers)
}
