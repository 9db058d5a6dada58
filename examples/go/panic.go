package main

import "fmt"

func printer() {
	panic("out of paper")
}

func main() {
	failure := make(chan any)
	go func() {
		defer func() { failure <- recover() }()
		printer()
	}()
	if what := <-failure; what != nil {
		fmt.Println("recovered:", what)
	}
}
