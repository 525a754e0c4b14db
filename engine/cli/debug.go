package cli

import (
	"bufio"
	"context"
	"io"
	"sync"

	"github.com/racflow/racflow/engine"
)

// debugging says which process a debugger can be attached to, and waits until one is or, at
// a terminal, until Enter is pressed.
type debugging struct {
	print    func(format string, args ...any)
	attached func(ctx context.Context, pid int) error
	keys     io.Reader // the terminal; nil: there is none

	once  sync.Once
	enter chan struct{}
}

func (d *debugging) wait(ctx context.Context, stage string, pid int) error {
	or := ""
	if d.keys != nil {
		or = ", or press Enter to go on without"
		d.once.Do(d.listen)
	}
	d.print("%s is process %d, without confinement and time limits; attach a debugger (dlv attach %[2]d, gdb -p %[2]d)%s", stage, pid, or)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := make(chan error, 1)
	go func() { seen <- d.attached(ctx, pid) }()
	select {
	case err := <-seen:
		if err == nil {
			d.print("a debugger is attached to %s", stage)
		}
		return err
	case <-d.enter: // nil: there is no terminal
		return nil
	}
}

// listen reads the terminal for as long as the command runs: nothing takes back a read.
func (d *debugging) listen() {
	d.enter = make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(d.keys); lines.Scan(); {
			d.enter <- struct{}{}
		}
	}()
}

// debuggingAt is for the command's own terminal, unless that is read as the input.
func debuggingAt(print func(string, ...any), stdin io.Reader) func(context.Context, string, int) error {
	d := &debugging{print: print, attached: engine.DebuggerAttached}
	if isTerminal(stdin) {
		d.keys = stdin
	}
	return d.wait
}
