package waiting

import (
	"fmt"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/terminal"
)

// How long a stage may be silent until it is reported, and how often it is from then on.
const (
	Soon  = 5 * time.Second  // calls wait for a reason
	Late  = 30 * time.Second // calls are under way
	every = 30 * time.Second
)

// Wait is what calls of a stage wait for.
type Wait struct {
	Stage string        // "sample.llm"
	Calls int           // that wait; 0: unknown
	Why   string        // in words that follow a comma
	Since time.Time     // when the wait began
	Next  time.Time     // of the next try; zero: unknown
	After time.Duration // of silence that it takes until the wait is reported: Soon or Late
}

// Report is a Wait that has lasted.
type Report struct {
	Stage string
	Calls int
	Why   string
	For   time.Duration // how long the stage has been silent
	Again time.Duration // until the next try; 0: unknown
}

// String describes the wait in a line.
func (r Report) String() string {
	parts := []string{r.Why}
	if r.Calls > 0 {
		parts = []string{terminal.Plural(r.Calls, "call"), r.Why}
	}
	if again := r.Again.Round(time.Second); again > 0 {
		parts = append(parts, fmt.Sprintf("next try in %d s", again/time.Second))
	}
	return fmt.Sprintf("waiting for %s: %s", r.Stage, strings.Join(parts, ", "))
}
