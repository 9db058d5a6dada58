package main

import (
	"fmt"
	"sort"
)

var site = map[string][]string{
	"/":          {"/news", "/shop"},
	"/news":      {"/", "/shop", "/lost"},
	"/shop":      {"/shop/cart", "/"},
	"/shop/cart": {"/shop"},
}

type page struct {
	url   string
	links []string
	found bool
}

func fetch(url string, out chan<- page) {
	links, found := site[url]
	out <- page{url, links, found}
}

func main() {
	pages := make(chan page)
	seen := map[string]bool{"/": true}
	var lines []string
	go fetch("/", pages)
	for pending := 1; pending > 0; pending-- {
		page := <-pages
		if page.found {
			lines = append(lines, "found "+page.url)
		} else {
			lines = append(lines, "missing "+page.url)
		}
		for _, link := range page.links {
			if !seen[link] {
				seen[link] = true
				pending++
				go fetch(link, pages)
			}
		}
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Println(line)
	}
}
