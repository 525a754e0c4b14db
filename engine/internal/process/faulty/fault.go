package faulty

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/racflow/racflow/sdk"
)

// config is the config of every stage in the package.
type config struct {
	Harmless bool          `config:"harmless" doc:"Make no fault."`
	Every    int           `config:"every" doc:"End the process with the call that takes its rows beyond so many."`
	Slow     time.Duration `config:"slow" doc:"How long the stage takes to open."`
	Token    string        `config:"token,secret" doc:"A secret."`
	Nap      string        `config:"nap" default:"60" doc:"How many seconds a child sleeps: a number that a test finds among all processes."`
}

// faulty is the base of all stages in the package.
type faulty struct {
	config
	kind sdk.Kind
	mu   sync.Mutex
	rows int // received so far
}

func open(kind sdk.Kind, c config) *faulty {
	time.Sleep(c.Slow)
	return &faulty{config: c, kind: kind}
}

// Fingerprint implements sdk.Fingerprinter. It is constant: other rows get the same results with and without faults.
func (f *faulty) Fingerprint() string { return "faulty-1" }

// of returns the fault that a text requests from a kind of stage; empty: none.
func of(kind sdk.Kind, text string) string {
	for word := range strings.FieldsSeq(text) {
		fault, found := strings.CutPrefix(word, "!")
		if !found {
			continue
		}
		if to, its, given := strings.Cut(fault, ":"); !given {
			return fault
		} else if to == string(kind) {
			return its
		}
	}
	return ""
}

// asked returns the fault that a text requests from this stage; empty: none.
func (f *faulty) asked(text string) string {
	if f.Harmless {
		return ""
	}
	return of(f.kind, text)
}

// work commits those faults requested by the texts of a call that affect the process.
func (f *faulty) work(ctx context.Context, texts []string) error {
	f.mu.Lock()
	f.rows += len(texts)
	over := f.Every > 0 && f.rows > f.Every
	f.mu.Unlock()
	if over && !f.Harmless {
		os.Exit(0)
	}
	for _, text := range texts {
		if err := f.make(ctx, f.asked(text)); err != nil {
			return err
		}
	}
	return nil
}

func (f *faulty) make(ctx context.Context, fault string) error {
	switch fault {
	case "exit":
		fmt.Fprintln(os.Stderr, "no more cheese, says", f.Token)
		os.Exit(3)
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal may take effect late
	case "abort":
		_ = syscall.Kill(os.Getpid(), syscall.SIGABRT)
		select {}
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {}
	case "hang":
		<-ctx.Done()
		return ctx.Err()
	case "deaf":
		select {}
	case "panic":
		panic("out of cheese")
	case "aside":
		go aside(f.Token)
		select {}
	case "flood":
		line := strings.Repeat("x", 1<<20) + "\n"
		for range 16 {
			_, _ = os.Stderr.WriteString(line)
			_, _ = os.NewFile(1, "stdout").WriteString(line)
		}
	case "fork", "setsid": // the child keeps the output open, maybe in a session of its own
		child := exec.Command("sleep", f.Nap) //nolint:gosec,noctx // a number of the test; it outlives the call
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: fault == "setsid"}
		if err := child.Start(); err != nil {
			return err
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "memory":
		held = make([]byte, 4<<30)
		for i := 0; i < len(held); i += os.Getpagesize() {
			held[i] = 1
		}
		os.Exit(4) // nothing has ended the process
	case "fail":
		return errors.New("nothing to say to this")
	}
	return nil
}

// held keeps the memory of the fault "memory".
var held []byte

// aside panics in a goroutine that no call waits for.
func aside(token string) { panic("out of cheese, aside, with " + token) }

// number returns the number that a row requests, or else otherwise.
func (f *faulty) number(text string, otherwise float64) float64 {
	switch f.asked(text) {
	case "nan":
		return math.NaN()
	case "inf":
		return math.Inf(1)
	case "huge":
		return 1e308
	case "negative":
		return -7
	}
	return otherwise
}

// count returns the number of results to send for the texts.
func (f *faulty) count(texts []string) int {
	n := len(texts)
	for _, text := range texts {
		switch f.asked(text) {
		case "few":
			return n - 1
		case "many":
			return n + 1
		}
	}
	return n
}

// sized returns all, cut or padded to n elements.
func sized[T any](all []T, n int) []T {
	var none T
	for len(all) < n {
		all = append(all, none)
	}
	return all[:n]
}
