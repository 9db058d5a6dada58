package main

import (
	"fmt"
	"time"
)

func main() {
	ticker := time.NewTicker(5 * time.Millisecond)
	for i := 1; i <= 3; i++ {
		<-ticker.C
		fmt.Println("tick", i)
	}
	ticker.Stop()
}
