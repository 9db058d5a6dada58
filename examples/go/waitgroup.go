package main

import (
	"fmt"
	"sync"
	"sync/atomic"
)

func main() {
	var all sync.WaitGroup
	var done int32
	for i := 0; i < 10; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			atomic.AddInt32(&done, 1)
		}()
	}
	all.Wait()
	fmt.Println(done, "done")
}
