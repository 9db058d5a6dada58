package main

import (
	"fmt"
	"sync"
)

func main() {
	var lock sync.RWMutex
	price := 3
	read := make(chan int)
	leave := make(chan struct{})
	for i := 0; i < 3; i++ {
		go func() {
			lock.RLock()
			read <- price
			<-leave
			lock.RUnlock()
		}()
	}
	sum := 0
	for i := 0; i < 3; i++ {
		sum += <-read
	}
	fmt.Println("3 read it at a time:", sum)
	close(leave)
	lock.Lock()
	price++
	lock.Unlock()
	fmt.Println("now it is", price)
}
