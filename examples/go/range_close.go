package main

import "fmt"

func main() {
	squares := make(chan int)
	go func() {
		for i := 1; i <= 4; i++ {
			squares <- i * i
		}
		close(squares)
	}()
	for square := range squares {
		fmt.Println(square)
	}
	if _, ok := <-squares; !ok {
		fmt.Println("no more")
	}
}
