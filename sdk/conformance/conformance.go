package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance/internal/harness"
	"github.com/racflow/racflow/sdk/conformance/internal/stores"
	"github.com/racflow/racflow/sdk/wire"
)

// Foreign makes collections as another program would, for a store that attaches them.
type Foreign = stores.Foreign

// AttachedChecks returns the lines of the table for a store with sdk.Attaches, on collections that
// foreign makes. They come beside Checks: the store has collections of its own, too.
func AttachedChecks(foreign Foreign) (all []Check) {
	for _, c := range stores.Cases {
		all = append(all, Check{Name: "attached/" + c.Name, Why: c.Why, Fix: c.Fix, Within: Longest, Run: func(t T, s *Subject) error {
			c.Run(t, s, foreign)
			return nil
		}})
	}
	return all
}

// opened is what a check does with a running stage, which is fitted before, where it wants to be.
func opened(run func(context.Context, *wire.Stage, sdk.Stage) error) func(T, *Subject) error {
	return func(t T, s *Subject) error {
		p, err := startFitted(t, s)
		if err != nil {
			return err
		}
		return run(t.Context(), p.Stage, s.Stage)
	}
}

// own is what a check does unless another machine answers: that is not the stage's own.
func own(run func(context.Context, *wire.Stage, sdk.Stage) error) func(T, *Subject) error {
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
func endsWhenCancelled[In any](large, small func() In, call func(context.Context, *wire.Stage, sdk.Kind, In) error) Check {
	return Check{
		Name: "gives up when cancelled", Within: Long,
		Why: "When a person stops a run, or a call's time is over, the stage has to be free for the next call.",
		Fix: "Look at the call's context between rows, and return its error.",
		Run: func(t T, s *Subject) error {
			p, err := startFitted(t, s)
			if err != nil {
				return err
			}
			input, probe, alone := large(), small(), wire.Alone(t.Context())
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
		if unusable := new(wire.NumberError); errors.As(failed[i], &unusable) {
			return nil, fmt.Errorf("row %d: %w", i, unusable)
		}
		all[i] = fmt.Sprintf("%+v %v", rows[i], failed[i])
	}
	return all, nil
}

// What the table runs on and reports to.
type (
	// T is what a check reports to; a testing.T with another Run is one.
	T = harness.T
	// Subject is a stage under test, and how it is started.
	Subject = harness.Subject
	// Process is a stage that runs.
	Process = harness.Process
	// Setup says how a stage is started.
	Setup = harness.Setup
	// Starter starts a stage.
	Starter = harness.Starter
	// Options are what the suite takes into account at the stage at hand.
	Options = harness.Options
)

// NewOptions returns the defaults.
func NewOptions() *Options { return harness.NewOptions() }

// Deadlines of checks. They are long, for machines that are busy with other things.
const (
	Long    = 2 * time.Minute
	Longest = 5 * time.Minute
)

// Check is one line of the table.
type Check struct {
	Name   string
	Why    string        // what the engine relies on
	Fix    string        // what to do where it fails
	Within time.Duration // its deadline
	Run    func(T, *Subject) error
}

// Checks returns the lines of the table for a stage, in the order in which to read them.
func Checks(stage sdk.Stage) []Check {
	checks := []Check{description, unknownArgument}
	switch stage.Kind {
	case sdk.KindChunk:
		return append(checks, chunkChecks...)
	case sdk.KindEnrich:
		return append(checks, enrichChecks...)
	case sdk.KindEmbed:
		checks = append(checks, embedChecks...)
	case sdk.KindStore:
		return append(checks, storeChecks()...)
	default:
		checks = append(checks, batchChecks...)
	}
	if stage.Kind == sdk.KindRerank {
		checks = append(checks, scoresFall)
	}
	if stage.Fits {
		checks = append(checks, carriedOver)
	}
	return checks
}

// Run runs checks as parts of t, one after the other, and says of each that fails why it is there
// and what to do.
func Run(t T, s *Subject, checks []Check) {
	for _, c := range checks {
		t.Run(c.Name, func(t T) {
			c.run(t, s)
			if t.Failed() {
				t.Logf("why: %s\nto do: %s", c.Why, c.Fix)
			}
		})
	}
}

func (c Check) run(t T, s *Subject) {
	harness.Check(t, s.Options, c.Name, c.Within, func(t T) {
		if err := c.Run(t, s); err != nil {
			t.Errorf("%v", err)
		}
	})
}

func storeChecks() (all []Check) {
	for _, topic := range stores.Topics {
		topic.Cases(func(name string, run func(T, *Subject)) {
			all = append(all, Check{Name: name, Why: topic.Why, Fix: topic.Fix, Within: Longest, Run: func(t T, s *Subject) error {
				run(t, s)
				return nil
			}})
		})
	}
	return all
}

// description checks that people and other processes can understand what a
// stage says of itself.
var description = Check{
	Name: "description", Within: Long,
	Why: "Documents, completion and checks of a pipeline file are made from what a stage says of itself.",
	Fix: "Give the stage and each of its arguments a sentence, and a secret no default.",
	Run: func(_ T, subject *Subject) error {
		s := subject.Stage
		var errs []error
		if strings.TrimSpace(s.Doc) == "" {
			errs = append(errs, errors.New("the stage has no doc"))
		}
		for _, a := range s.Arguments {
			if strings.TrimSpace(a.Doc) == "" {
				errs = append(errs, fmt.Errorf("argument %s has no doc", a.Name))
			}
			if a.Secret && a.Default != nil {
				errs = append(errs, fmt.Errorf("argument %s is secret and has a default", a.Name))
			}
		}
		p := sdk.Plugin{Name: "test", Version: "0.0.0", Stages: []sdk.Stage{s}}
		got, err := wire.DecodePlugin(wire.EncodePlugin(p))
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		if g := got.Stages[0]; g.Reads != s.Reads || !sameArguments(g.Arguments, s.Arguments) {
			errs = append(errs, fmt.Errorf("the description changes on its way: %+v", g))
		}
		return errors.Join(errs...)
	},
}

func sameArguments(a, b []sdk.Argument) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

// unknownArgument checks that a stage refuses an argument that it lacks.
var unknownArgument = Check{
	Name: "config", Within: Long,
	Why: "A mistake in a file is shown at its line, so a stage has to name the argument that it refuses.",
	Fix: "Answer Configure with an error that names the argument; the SDKs do.",
	Run: func(t T, s *Subject) error {
		given := map[string]any{}
		if s.Config != "" {
			if err := json.Unmarshal([]byte(s.Config), &given); err != nil {
				return fmt.Errorf("the test's config: %w", err)
			}
		}
		given["no_such_argument"] = 1
		raw, err := json.Marshal(given)
		if err != nil {
			return err
		}
		_, err = s.Open(t, Setup{Config: string(raw), StateDir: t.TempDir()})
		var refused *sdk.ArgumentError
		if !errors.As(err, &refused) || refused.Argument != "no_such_argument" {
			return fmt.Errorf("an unknown argument gave %v, not an error that names it", err)
		}
		return nil
	},
}
