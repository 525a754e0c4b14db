// Package cli is the command racflow. It decides nothing that other programs need: verbs read flags, call package engine,
// and show what it answers.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/sdk/support"
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

// builtin are the stages of the program; Run sets it.
var builtin engine.Builtin

// Run executes the command line of this process (os.Args) with the stages of the program, and returns the exit code:
// 0: all of it was done; 1: it could not start, or broke off; 2: a word or flag is unknown, and nothing was done; 3: it
// finished, and something failed or needs a look; 4: what a file expects does not hold; 130: interrupted. more are
// commands that the stages bring along.
func Run(stages engine.Builtin, more ...*cobra.Command) int {
	builtin = stages
	if err := support.NoDump(); err != nil { // the environment may hold secrets
		fmt.Fprintln(os.Stderr, "racflow: warning:", err)
	}
	return execute(interruptible(), os.Args[1:], more...)
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
func execute(ctx context.Context, args []string, more ...*cobra.Command) int {
	root := newRoot(more...)
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
