// Command fakemodel serves the fake model for use by hand, until it is interrupted:
//
//	go run ./testscripts/agents/fakemodel [-address 127.0.0.1:8080] [-log FILE]
//
// It prints the base URL that an agent's configuration wants.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/pintle/pintle/internal/fakemodel"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintf(os.Stderr, "fakemodel: %v\n", err)
		os.Exit(1)
	}
}

func serve() error {
	var o fakemodel.Options
	flag.StringVar(&o.Address, "address", "127.0.0.1:0", "where to listen")
	flag.StringVar(&o.Log, "log", "", "a file to which each request is appended as a line of JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := fakemodel.Open(o)
	if err != nil {
		return err
	}
	fmt.Println(s.URL())
	<-ctx.Done()
	return s.Close()
}
