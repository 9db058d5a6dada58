package main

import "fmt"

func main() {
	sums := make(chan int)
	for _, part := range [][]int{{3, 1, 4, 1}, {5, 9, 2, 6}} {
		go func(part []int) {
			sum := 0
			for _, n := range part {
				sum += n
			}
			sums <- sum
		}(part)
	}
	a := <-sums
	b := <-sums
	fmt.Println("the sum is", a+b)
}
