package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	slots := make(chan struct{}, 2)
	var all sync.WaitGroup
	var inside, most int32
	for i := 0; i < 6; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			slots <- struct{}{}
			now := atomic.AddInt32(&inside, 1)
			for seen := atomic.LoadInt32(&most); now > seen; seen = atomic.LoadInt32(&most) {
				atomic.CompareAndSwapInt32(&most, seen, now)
			}
			time.Sleep(time.Millisecond)
			atomic.AddInt32(&inside, -1)
			<-slots
		}()
	}
	all.Wait()
	if most <= 2 {
		fmt.Println("never more than 2 at a time")
	}
}
