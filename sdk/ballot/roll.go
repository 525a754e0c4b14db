package ballot

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/racflow/racflow/sdk"
)

// Roll notes who votes, so that a name that was mistyped in an argument does
// not pass for a voter that is at its default. The zero Roll is ready.
type Roll struct {
	mu    sync.Mutex
	voted map[string]bool
}

// Note takes down the voters of a batch.
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

// Report warns of the names in an argument's value that no voter had, once
// somebody has voted. Call it when the stage ends: a voter may be asked about
// few items.
func (r *Roll) Report(log *slog.Logger, argument string, given map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var absent []string
	for _, voter := range slices.Sorted(maps.Keys(given)) {
		if !r.voted[voter] {
			absent = append(absent, voter)
		}
	}
	if log == nil || len(absent) == 0 || len(r.voted) == 0 {
		return
	}
	log.Warn("voters that an argument names gave no votes: they were not asked, or no sample block has that name",
		"argument", argument, "absent", strings.Join(absent, ", "),
		"voted", strings.Join(slices.Sorted(maps.Keys(r.voted)), ", "))
}
