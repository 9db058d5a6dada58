package main

import "fmt"

func main() {
	jobs := make(chan int)
	results := make(chan int)
	for i := 0; i < 3; i++ {
		go func() {
			for job := range jobs {
				results <- job * job
			}
		}()
	}
	go func() {
		for job := 1; job <= 10; job++ {
			jobs <- job
		}
		close(jobs)
	}()
	sum := 0
	for i := 0; i < 10; i++ {
		sum += <-results
	}
	fmt.Println("sum of squares:", sum)
}
