package main

import (
	"fmt"
	"sync"
)

func main() {
	var once sync.Once
	served := make(chan bool)
	for i := 0; i < 3; i++ {
		go func() {
			once.Do(func() { fmt.Println("loaded") })
			served <- true
		}()
	}
	for i := 0; i < 3; i++ {
		<-served
	}
	fmt.Println("3 served")
}
