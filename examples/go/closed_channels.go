package main

import "fmt"

func attempt(what string, f func()) {
	defer func() {
		if recover() != nil {
			fmt.Println(what + ": no")
		}
	}()
	f()
	fmt.Println(what + ": yes")
}

func main() {
	numbers := make(chan int, 2)
	numbers <- 1
	numbers <- 2
	attempt("close", func() { close(numbers) })
	attempt("send on a closed channel", func() { numbers <- 3 })
	attempt("close it again", func() { close(numbers) })
	var none chan int
	attempt("close nil", func() { close(none) })
	for n := range numbers {
		fmt.Println("still in it:", n)
	}
	n, ok := <-numbers
	fmt.Println("after that:", n, ok)
}
