// Command racflow runs pipelines of retrieval-augmented classification and
// contextual retrieval that are written in HCL files.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/plugins"
	"github.com/racflow/racflow/sdk/nodump"
)

// Exit codes; README lists them for people.
const (
	exitOK          = 0
	exitFailed      = 1 // could not start, or broke off
	exitUsage       = 2 // a word or flag of the command line is unknown, and nothing was done
	exitItemsFailed = 3 // finished, but some items or rows failed or lack a voter
	exitUnexpected  = 4 // finished, and what a file expects does not hold
	exitInterrupted = 130
)

// exitError ends the command with a code; a nil err has been reported already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// builtin are the built-in stages. Where another racflow has started this process
// to run one of them, nothing else of the program happens.
var builtin = engine.Serve(plugins.All())

func main() {
	if err := nodump.Set(); err != nil { // the environment may hold secrets
		fmt.Fprintln(os.Stderr, "racflow: warning:", err)
	}
	os.Exit(execute(interruptible(), os.Args[1:]))
}

// interruptible returns a context that ends with the first signal to stop. From
// then on a signal does what it does to any process: it ends it at once, should
// the work not notice its context. Stages end when their engine is gone.
func interruptible() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		cancel()
	}()
	return ctx
}

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(singleDash(args))
	err := root.ExecuteContext(ctx)
	var exit *exitError
	var found *engine.DiagnosticsError
	code := exitFailed
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &found):
		writeDiagnostics(os.Stderr, found)
		err = nil
	case errors.As(err, &exit):
		code, err = exit.code, exit.err
	case strings.HasPrefix(err.Error(), "unknown command "): // of a command that takes no words
		code = exitUsage
	}
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "racflow: interrupted")
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(os.Stderr, "racflow:", message(err))
	}
	return code
}
