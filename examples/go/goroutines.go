package main

import "fmt"

func main() {
	done := make(chan struct{})
	go func() {
		fmt.Println("beside main")
		close(done)
	}()
	<-done
	fmt.Println("main, after it")
}
