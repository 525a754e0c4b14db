// Command modelserver is a server that behaves like a service of language models, for authors of
// plugins in any language. It answers OpenAI's endpoints for chats, texts and embeddings, with named
// behaviours, and prints its address.
//
//	go run ./examples/modelserver -behaviour thinks-in-tags,refuses-temperature
//
// The server is package modelserver of the SDK, which tests in Go use directly. It accepts any model
// name and computes nothing: all answers are the same.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := serve(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "modelserver:", err)
		os.Exit(1)
	}
}

// serve serves until its context ends, and then reports the number of requests.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("modelserver", flag.ContinueOnError)
	flags.SetOutput(stderr)
	named := flags.String("behaviour", "", "`NAMES` of behaviours, separated by commas; -list shows them")
	address := flags.String("listen", "127.0.0.1:0", "`ADDRESS` to listen on; port 0 is a free one")
	answer := flags.String("answer", "", "the `TEXT` of each answer; empty: the first label that a request allows, or \"answer\"")
	latency := flags.Duration("latency", 0, "`TIME` until each reply")
	list := flags.Bool("list", false, "show the behaviours")
	markdown := flags.Bool("markdown", false, "show them as a page that also says what racflow does about them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; behaviours are given as -behaviour NAME,NAME", flags.Arg(0))
	}
	if *markdown {
		fmt.Fprint(stdout, modelserver.Table())
		return nil
	}
	if *list {
		for _, b := range modelserver.Behaviours() {
			fmt.Fprintf(stdout, "%-30s %s\n", b.Name, b.Server)
		}
		return nil
	}
	o := modelserver.Options{Latency: *latency, Probes: true}
	if *answer != "" {
		o.Answer = func(modelserver.Ask, int) string { return *answer }
	}
	for _, name := range strings.FieldsFunc(*named, func(r rune) bool { return r == ',' || r == ' ' }) {
		if _, err := modelserver.Find(name); err != nil {
			return err
		}
		o = o.With(name)
	}
	s, err := modelserver.Listen(o, *address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer s.Close()
	fmt.Fprintln(stdout, s.URL)
	<-ctx.Done()
	fmt.Fprintf(stderr, "%d requests, at most %d at once\n", s.Calls(), s.MostAtOnce())
	return nil
}
