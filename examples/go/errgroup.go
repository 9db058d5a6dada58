package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

func fetch(ctx context.Context, page string) error {
	if page == "lost" {
		return errors.New("not found")
	}
	select {
	case <-time.After(time.Minute):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func main() {
	group, ctx := errgroup.WithContext(context.Background())
	for _, page := range []string{"news", "shop", "lost"} {
		page := page
		group.Go(func() error { return fetch(ctx, page) })
	}
	fmt.Println("first error:", group.Wait())
}
