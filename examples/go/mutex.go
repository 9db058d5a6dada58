package main

import (
	"fmt"
	"sync"
)

func main() {
	var mutex sync.Mutex
	var all sync.WaitGroup
	visits := map[string]int{}
	for i := 0; i < 100; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			mutex.Lock()
			defer mutex.Unlock()
			visits["home"]++
		}()
	}
	all.Wait()
	fmt.Println(visits["home"])
}
