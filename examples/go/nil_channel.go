package main

import "fmt"

func count(from, to int) <-chan int {
	out := make(chan int)
	go func() {
		for n := from; n < to; n++ {
			out <- n
		}
		close(out)
	}()
	return out
}

func main() {
	left, right := count(0, 3), count(10, 15)
	sum := 0
	for left != nil || right != nil {
		select {
		case n, ok := <-left:
			if !ok {
				left = nil
			}
			sum += n
		case n, ok := <-right:
			if !ok {
				right = nil
			}
			sum += n
		}
	}
	fmt.Println("sum", sum)
}
