package harness

import (
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options are what the suite takes into account at the stage at hand.
type Options struct {
	Without   map[string]string // path of checks -> why they are left out
	DenseOnly string            // why a store is tested without a lexical leg; empty: it has one
	Tolerance float64           // of scores, relative to the larger of 1 and the score
	Restart   func(T)           // between closing a store and opening it again
	Parallel  bool              // the checks may run beside each other
	Short     bool              // without what needs much memory or time
	Promptly  time.Duration     // how long a stage may take to notice that it is cancelled
	Within    time.Duration     // how long any check may take; 0: what the check says

	mu  sync.Mutex
	met map[string]bool // paths in Without that there are
}

// NewOptions returns the defaults. They are long, for machines that are busy with other things.
func NewOptions() *Options {
	return &Options{Without: map[string]string{}, met: map[string]bool{}, Tolerance: 1e-5, Restart: func(T) {}, Promptly: 10 * time.Second}
}

// Unmet lists what was to be left out and does not exist.
func (o *Options) Unmet() []string {
	var all []string
	for p := range o.Without {
		if !o.met[p] {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return all
}

// leftOut says why a check is left out, by its path or one above it.
func (o *Options) leftOut(check string) (reason string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for at := check; at != "." && at != "/"; at = path.Dir(at) {
		if reason, ok = o.Without[at]; ok {
			o.met[at] = true
			return strings.TrimSpace(reason), true
		}
	}
	return "", false
}
