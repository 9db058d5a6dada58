package main

import "fmt"

func look(letters <-chan int) {
	select {
	case letter := <-letters:
		fmt.Println("letter", letter)
	default:
		fmt.Println("nothing")
	}
}

func main() {
	letters := make(chan int, 1)
	look(letters)
	letters <- 7
	look(letters)
	look(letters)
}
