package conformance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/remote"
)

// opened is what a check does with a running stage, which is fitted before, where it wants to be.
func opened(run func(context.Context, *remote.Stage, sdk.Stage) error) func(T, *Subject) error {
	return func(t T, s *Subject) error {
		p, err := startFitted(t, s)
		if err != nil {
			return err
		}
		return run(t.Context(), p.Stage, s.Stage)
	}
}

// own is what a check does unless another machine answers: that is not the stage's own.
func own(run func(context.Context, *remote.Stage, sdk.Stage) error) func(T, *Subject) error {
	return func(t T, s *Subject) error {
		if s.Stage.Network {
			t.Skipf("what the stage returns is another machine's")
		}
		return opened(run)(t, s)
	}
}

func startFitted(t T, s *Subject) (*Process, error) {
	setup := s.Setup(t)
	p, err := s.Open(t, setup)
	if err != nil || !p.Stage.Fits() {
		return p, err
	}
	if setup.StateDir, err = fit(t, p.Stage, s.Stage); err != nil {
		return nil, err
	}
	p.Close()
	return s.Open(t, setup) // in a new process, as the engine does
}

// endsWhenCancelled is the check that a stage ends its work on a call with a large
// input that is no longer wanted: then a call with a small one has its turn.
func endsWhenCancelled[In any](large, small func() In, call func(context.Context, *remote.Stage, sdk.Kind, In) error) Check {
	return Check{
		Name: "gives up when cancelled", Within: Long,
		Why: "When a person stops a run, or a call's time is over, the stage has to be free for the next call.",
		Fix: "Look at the call's context between rows, and return its error.",
		Run: func(t T, s *Subject) error {
			p, err := startFitted(t, s)
			if err != nil {
				return err
			}
			input, probe, alone := large(), small(), remote.Alone(t.Context())
			if err := call(alone, p.Stage, s.Stage.Kind, probe); err != nil {
				return err
			}
			select {
			case <-p.Arrived: // the probe
			default:
			}
			cancelled, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan struct{})
			go func() { defer close(ended); _ = call(cancelled, p.Stage, s.Stage.Kind, input) }()
			arrived := p.Arrived
			if arrived == nil { // another process: by then it has the call, or the check finds nothing
				sent := make(chan struct{})
				time.AfterFunc(100*time.Millisecond, func() { close(sent) })
				arrived = sent
			}
			select {
			case <-arrived:
			case <-ended:
			}
			time.AfterFunc(5*time.Millisecond, cancel)
			<-ended
			alone, cancel = context.WithTimeout(alone, s.Options.Promptly)
			defer cancel()
			if err := call(alone, p.Stage, s.Stage.Kind, probe); err != nil {
				return fmt.Errorf("%v after a cancelled call: %w", s.Options.Promptly, err)
			}
			return nil
		},
	}
}

// sameResults checks that a batch has the same results again and again, and each of
// its parts the same alone, all at the same time. differ says how two results differ.
func sameResults[In, Out any](all []In, again int, parts iter.Seq2[int, int], call func([]In) ([]Out, error), differ func(got, want Out) string) error {
	want, err := call(all)
	if err != nil {
		return err
	}
	var calls errgroup.Group
	compare := func(lo, hi int, where string) {
		calls.Go(func() error {
			got, err := call(all[lo:hi])
			for i := range got {
				if d := differ(got[i], want[lo+i]); err == nil && d != "" {
					err = fmt.Errorf("row %d %s: %s", lo+i, where, d)
				}
			}
			return err
		})
	}
	for range again {
		compare(0, len(all), "of the same batch")
	}
	for lo, hi := range parts {
		compare(lo, hi, "alone, not in its batch")
	}
	return calls.Wait()
}

// eachRow yields each of n rows as a part.
func eachRow(n int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for i := 0; i < n && yield(i, i+1); i++ {
		}
	}
}

// equal is a difference for sameResults.
func equal[T any](got, want T) string {
	if reflect.DeepEqual(got, want) {
		return ""
	}
	return fmt.Sprintf("got %.200v, before it was %.200v", got, want)
}

// flatten makes texts of results. Errors of single rows are results, too.
func flatten[T any](rows []T, err error) ([]string, error) {
	failed, ok := err.(sdk.RowErrors)
	if err != nil && !ok {
		return nil, err
	}
	all := make([]string, len(rows))
	for i := range rows {
		if unusable := new(remote.NumberError); errors.As(failed[i], &unusable) {
			return nil, fmt.Errorf("row %d: %w", i, unusable)
		}
		all[i] = fmt.Sprintf("%+v %v", rows[i], failed[i])
	}
	return all, nil
}
