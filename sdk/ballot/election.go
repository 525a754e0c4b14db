package ballot

import (
	"context"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/racflow/racflow/sdk"
)

// NewElection returns an elector that elects item by item, from the item's samples and the number of
// labels in the knowledge. byVoter is the value of the given argument. On Close, the elector warns of
// names in it that no voter had: see Roll.Report.
func NewElection(log *slog.Logger, argument string, byVoter map[string]float64, elect func(samples []sdk.Sample, labels int) sdk.Verdict) sdk.Elector {
	return &election{log: log, argument: argument, byVoter: byVoter, elect: elect}
}

type election struct {
	log      *slog.Logger
	argument string
	byVoter  map[string]float64
	elect    func([]sdk.Sample, int) sdk.Verdict
	roll     Roll
}

// Elect implements sdk.Elector.
func (e *election) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	e.roll.Note(b)
	verdicts := make([]sdk.Verdict, len(b.Items))
	for i := range b.Items {
		verdicts[i] = e.elect(b.Items[i].Samples, len(b.Labels))
	}
	return verdicts, nil
}

// Close warns of names that no voter had.
func (e *election) Close() error {
	e.roll.Report(e.log, e.argument, maps.Keys(e.byVoter))
	return nil
}

// Roll records who votes, to find mistyped names in an argument: the voter that was meant would
// silently get the default. The zero Roll is ready.
type Roll struct {
	mu    sync.Mutex
	voted map[string]bool
}

// Note records the voters of a batch.
func (r *Roll) Note(b sdk.Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.voted == nil {
		r.voted = map[string]bool{}
	}
	for i := range b.Items {
		for j := range b.Items[i].Samples {
			r.voted[b.Items[i].Samples[j].Voter] = true
		}
	}
}

// Report warns of names in an argument that no voter had, if a voter voted that the argument does not
// name: the name may have meant that voter. If the argument names everybody who voted, the others
// were just not asked. Call Report when the stage ends: a voter may be asked about few items.
func (r *Roll) Report(log *slog.Logger, argument string, given iter.Seq[string]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var absent, unnamed []string
	named := slices.Sorted(given)
	for _, voter := range named {
		if !r.voted[voter] {
			absent = append(absent, voter)
		}
	}
	for _, voter := range slices.Sorted(maps.Keys(r.voted)) {
		if !slices.Contains(named, voter) {
			unnamed = append(unnamed, voter)
		}
	}
	if log == nil || len(absent) == 0 || len(unnamed) == 0 {
		return
	}
	log.Warn("an argument names voters that gave no votes, and others that it does not name voted: no sample block has such a name, or it was not asked",
		"argument", argument, "absent", strings.Join(absent, ", "), "unnamed", strings.Join(unnamed, ", "))
}
