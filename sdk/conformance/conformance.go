package conformance

import (
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance/internal/harness"
	"github.com/racflow/racflow/sdk/conformance/internal/stores"
)

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
