package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance/internal/harness"
	"github.com/racflow/racflow/sdk/conformance/internal/stores"
	"github.com/racflow/racflow/sdk/wire"
)

// The parts of the table, its subjects and its results.
type (
	// Check is one line of the table. Its method On runs it.
	Check = harness.Check
	// T is what a check reports to, similar to a testing.T.
	T = harness.T
	// Result is the outcome of one check.
	Result = harness.Result
	// Status is how a check ended.
	Status = harness.Status
	// Subject is a stage under test, and how to start it.
	Subject = harness.Subject
	// Process is a running stage.
	Process = harness.Process
	// Setup holds the settings with which a stage starts.
	Setup = harness.Setup
	// Starter starts a stage.
	Starter = harness.Starter
	// Options are the settings of the suite for the stage under test.
	Options = harness.Options
	// Foreign makes collections as another program would, for a store that attaches them.
	Foreign = stores.Foreign
)

// How a check can end.
const (
	Passed  = harness.Passed
	Failed  = harness.Failed
	Skipped = harness.Skipped
)

// Deadlines of checks. They are long, for machines that are busy with other things.
const (
	Long    = harness.Long
	Longest = harness.Longest
)

// NewOptions returns the defaults.
func NewOptions() *Options { return harness.NewOptions() }

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
		return append(checks, stores.Checks()...)
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

// AttachedChecks returns the lines of the table for a store with sdk.Attaches, on collections that
// foreign makes. Run them in addition to Checks: the store has collections of its own, too.
func AttachedChecks(foreign Foreign) []Check { return stores.AttachedChecks(foreign) }

// opened makes a check that runs on a started stage. If the stage is a Fitter, it is fitted first.
func opened(run func(context.Context, *wire.Stage, sdk.Stage) error) func(*T, *Subject) error {
	return func(t *T, s *Subject) error {
		p, err := startFitted(t, s)
		if err != nil {
			return err
		}
		return run(t.Context(), p.Stage, s.Stage)
	}
}

// own makes a check of the stage's own results. It skips stages whose results another machine
// computes.
func own(run func(context.Context, *wire.Stage, sdk.Stage) error) func(*T, *Subject) error {
	return func(t *T, s *Subject) error {
		if s.Stage.Network {
			t.Skipf("what the stage returns is another machine's")
		}
		return opened(run)(t, s)
	}
}

func startFitted(t *T, s *Subject) (*Process, error) {
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

// gaveUp checks that a stage stops working on a cancelled call with many rows, and then serves a call
// with few rows.
func gaveUp(many, few int) Check {
	return Check{
		Name: "gives up when cancelled", Within: Long,
		Why: "When a person stops a run, or a call's time is over, the stage has to be free for the next call.",
		Fix: "Look at the call's context between rows, and return its error.",
		Run: func(t *T, s *Subject) error {
			p, err := startFitted(t, s)
			if err != nil {
				return err
			}
			kind, rows := s.Stage.Kind, numbered(s.Stage.Kind, 0, many, 0)
			return harness.GivesUp(t, s.Options, many, few, func(ctx context.Context, n int) error {
				_, err := call(ctx, p.Stage, kind, part(rows, 0, n))
				return err
			})
		},
	}
}

// sameResults checks that a batch has the same results on every repetition, and that each part alone
// has the same results as in the batch. All calls run at the same time.
func sameResults(ctx context.Context, s *wire.Stage, kind sdk.Kind, all any, again int, parts [][2]int) error {
	want, err := call(ctx, s, kind, all)
	if err != nil {
		return err
	}
	var calls errgroup.Group
	compare := func(lo, hi int, where string) {
		calls.Go(func() error {
			got, err := call(ctx, s, kind, part(all, lo, hi))
			for i := range got {
				if err == nil {
					err = got[i].differs(want[lo+i], fmt.Sprintf("row %d %s", lo+i, where))
				}
			}
			return err
		})
	}
	for range again {
		compare(0, len(want), "of the same batch")
	}
	for _, p := range parts {
		compare(p[0], p[1], "alone, not in its batch")
	}
	return calls.Wait()
}

// eachRow divides n rows into parts of one row.
func eachRow(n int) (parts [][2]int) {
	for i := range n {
		parts = append(parts, [2]int{i, i + 1})
	}
	return parts
}

// description checks that people and other processes can understand how a stage describes itself.
var description = Check{
	Name: "description", Within: Long,
	Why: "Documents, completion and checks of a pipeline file are made from what a stage says of itself.",
	Fix: "Give the stage and each of its arguments a sentence, and a secret no default.",
	Run: func(_ *T, subject *Subject) error {
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

// unknownArgument checks that a stage refuses an argument that it does not have.
var unknownArgument = Check{
	Name: "config", Within: Long,
	Why: "A mistake in a file is shown at its line, so a stage has to name the argument that it refuses.",
	Fix: "Answer Configure with an error that names the argument; the SDKs do.",
	Run: func(t *T, s *Subject) error {
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

// fit fits a stage, in two batches, and returns the folder with the result.
func fit(t *T, s *wire.Stage, stage sdk.Stage) (string, error) {
	rows := trainingRows()
	err := s.Fit(t.Context(), func(yield func([]sdk.TrainingRow, error) bool) {
		_ = yield(rows[:7], nil) && yield(rows[7:], nil)
	})
	if err != nil {
		return "", fmt.Errorf("fit: %w", err)
	}
	if stage.Kind == sdk.KindEmbed {
		state, err := s.State()
		if err != nil {
			return "", err
		}
		return wire.StateDir(t.TempDir(), state)
	}
	files, err := os.ReadDir(s.StateDir)
	if err == nil && len(files) == 0 {
		err = errors.New("fit has written nothing into the state_dir")
	}
	return s.StateDir, err
}

// carriedOver checks that a later process returns the same results as the fitted one. A process that
// was not fitted must work, too; it may fail rows.
var carriedOver = Check{
	Name: "what was learnt is carried over", Within: Longest,
	Why: "A stage is fitted once; every later process works by what is in its state_dir.",
	Fix: "Write all that Fit learns into state_dir, and read it when the stage opens.",
	Run: func(t *T, s *Subject) error {
		setup := s.Setup(t)
		first, err := s.Open(t, setup)
		if err != nil || !first.Stage.Fits() {
			return err
		}
		ctx, kind, in := t.Context(), s.Stage.Kind, any(items(9))
		if kind == sdk.KindEmbed {
			in = texts
		}
		if _, err := call(ctx, first.Stage, kind, in); err != nil {
			return fmt.Errorf("before it was fitted: %w", err)
		}
		if setup.StateDir, err = fit(t, first.Stage, s.Stage); err != nil {
			return err
		}
		want, err := call(ctx, first.Stage, kind, in)
		if err != nil {
			return fmt.Errorf("after it was fitted: %w", err)
		}
		later, err := s.Open(t, setup)
		if err != nil {
			return fmt.Errorf("with what was learnt: %w", err)
		}
		got, err := call(ctx, later.Stage, kind, in)
		for i := range got {
			if err == nil && !s.Stage.Network {
				err = got[i].differs(want[i], fmt.Sprintf("row %d in a later process", i))
			}
		}
		return err
	},
}
