package main

import "fmt"

type tree struct {
	left, right *tree
	value       int
}

func insert(t *tree, value int) *tree {
	if t == nil {
		return &tree{value: value}
	}
	if value < t.value {
		t.left = insert(t.left, value)
	} else {
		t.right = insert(t.right, value)
	}
	return t
}

func grow(values ...int) *tree {
	var t *tree
	for _, value := range values {
		t = insert(t, value)
	}
	return t
}

func walk(t *tree, out chan<- int, stop <-chan struct{}) bool {
	if t == nil {
		return true
	}
	if !walk(t.left, out, stop) {
		return false
	}
	select {
	case out <- t.value:
	case <-stop:
		return false
	}
	return walk(t.right, out, stop)
}

func inOrder(t *tree, stop <-chan struct{}) <-chan int {
	out := make(chan int)
	go func() {
		walk(t, out, stop)
		close(out)
	}()
	return out
}

func same(a, b *tree) bool {
	stop := make(chan struct{})
	defer close(stop) // or the walkers would wait for ever
	left, right := inOrder(a, stop), inOrder(b, stop)
	for {
		x, more := <-left
		y, moreToo := <-right
		if x != y || more != moreToo {
			return false
		}
		if !more {
			return true
		}
	}
}

func main() {
	fmt.Println(same(grow(5, 2, 8, 1, 9), grow(1, 2, 5, 8, 9)))
	fmt.Println(same(grow(5, 2, 8, 1, 9), grow(1, 3, 5, 8, 9)))
	fmt.Println(same(grow(5, 2, 8), grow(8, 5)))
}
