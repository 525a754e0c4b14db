package progress

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/racflow/racflow/engine/internal/terminal"
)

// This file reports what the calls of stages wait for: the governor (a service that asks for fewer
// calls or is down, a limit), the pause before a retry, or a stage that is starting or does not
// respond.
//
// Code that makes calls wait reports it when asked (WaitReporter.Watch), or when the wait begins
// (WaitReporter.Hold). A WaitReporter asks four times a second. It reports a stage that has answered
// nothing for as long as the wait says: five seconds if the wait has a reason, thirty if a call is
// just in progress. It repeats the report every thirty seconds, in one line for each stage, with the
// most urgent reason and the number of waiting calls.
//
// The package does not change how long calls wait. Results that come later (package retry) take
// minutes or hours, and have reports of their own.

// WaitSource calls say for each present wait.
type WaitSource func(now time.Time, say func(Wait))

// WaitReporter collects waits and reports those that last. Several goroutines may call its methods
// at once. A nil WaitReporter reports nothing.
type WaitReporter struct {
	report func(LongWait)

	mu       sync.Mutex
	timer    *time.Timer
	closed   bool
	sources  []*WaitSource
	holds    []*Wait
	answered map[string]time.Time // by stage
	reported map[string]time.Time
}

// tick is how often waits are checked.
const tick = 250 * time.Millisecond

// NewWaitReporter returns a WaitReporter that reports until Close; nil if report is nil.
func NewWaitReporter(report func(LongWait)) *WaitReporter {
	if report == nil {
		return nil
	}
	r := &WaitReporter{report: report, answered: map[string]time.Time{}, reported: map[string]time.Time{}}
	r.mu.Lock() // look waits until r.timer is set
	defer r.mu.Unlock()
	r.timer = time.AfterFunc(tick, r.reportLong)
	return r
}

// Open resumes the reports after Close.
func (r *WaitReporter) Open() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = false
	r.timer.Reset(tick)
}

// Close ends the reports.
func (r *WaitReporter) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.timer.Stop()
}

// Watch asks s regularly for its waits, until forget is called. If several sources give reasons for a
// stage, the most urgent reason is reported; of equally urgent ones, the first source's. s may call
// Answered.
func (r *WaitReporter) Watch(s WaitSource) (forget func()) {
	if r == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources = append(r.sources, &s)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sources = slices.DeleteFunc(r.sources, func(other *WaitSource) bool { return other == &s })
	}
}

// Hold records that calls wait from now on, until release is called.
func (r *WaitReporter) Hold(w Wait) (release func()) {
	if r == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holds = append(r.holds, &w)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.holds = slices.DeleteFunc(r.holds, func(other *Wait) bool { return other == &w })
	}
}

// Answered records that a call of a stage has been answered: the stage is not silent.
func (r *WaitReporter) Answered(stage string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered[stage] = time.Now()
}

// reportLong reports the waits that have lasted long enough.
func (r *WaitReporter) reportLong() {
	now := time.Now()
	r.mu.Lock()
	sources := slices.Clone(r.sources)
	r.mu.Unlock()
	all := map[string][]Wait{}
	say := func(w Wait) { all[w.Stage] = append(all[w.Stage], w) }
	for _, s := range sources {
		(*s)(now, say)
	}
	r.mu.Lock()
	for _, w := range r.holds {
		say(*w)
	}
	var reports []LongWait
	for _, stage := range slices.Sorted(maps.Keys(all)) {
		if report, due := r.due(now, all[stage]); due {
			r.reported[stage] = now
			reports = append(reports, report)
		}
	}
	r.mu.Unlock()
	for _, report := range reports {
		r.report(report)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.timer.Reset(tick)
	}
}

// due makes one report from the waits of a stage, and reports whether it is time for it. The caller
// holds r.mu.
func (r *WaitReporter) due(now time.Time, waits []Wait) (report LongWait, due bool) {
	// The engine and the service both report a call in progress. Such a wait does not count if another
	// wait has a reason.
	slices.SortStableFunc(waits, func(a, b Wait) int { return int(a.After - b.After) })
	first := waits[0]
	since, calls := first.Since, first.Calls
	for _, w := range waits[1:] {
		if w.After == WaitSoon {
			calls += w.Calls
			if w.Since.Before(since) {
				since = w.Since
			}
		}
	}
	if answered := r.answered[first.Stage]; answered.After(since) {
		since = answered
	}
	report = LongWait{Stage: first.Stage, Calls: calls, Why: first.Why, For: now.Sub(since), Again: max(first.Next.Sub(now), 0)}
	if first.Next.IsZero() {
		report.Again = 0
	}
	return report, report.For >= first.After && now.Sub(r.reported[first.Stage]) >= every
}

// How long a stage may be silent before the first report, and the time between reports.
const (
	WaitSoon = 5 * time.Second  // calls wait for a reason
	WaitLate = 30 * time.Second // calls are under way
	every    = 30 * time.Second
)

// Wait says why calls of a stage wait.
type Wait struct {
	Stage string        // "sample.llm"
	Calls int           // how many wait; 0: unknown
	Why   string        // a phrase that can follow a comma
	Since time.Time     // when the wait began
	Next  time.Time     // time of the next try; zero: unknown
	After time.Duration // how long the stage must be silent before the report: WaitSoon or WaitLate
}

// LongWait is a report of a Wait that has lasted.
type LongWait struct {
	Stage string
	Calls int
	Why   string
	For   time.Duration // how long the stage has been silent
	Again time.Duration // until the next try; 0: unknown
}

// String describes the wait in a line.
func (r LongWait) String() string {
	parts := []string{r.Why}
	if r.Calls > 0 {
		parts = []string{terminal.Plural(r.Calls, "call"), r.Why}
	}
	if again := r.Again.Round(time.Second); again > 0 {
		parts = append(parts, fmt.Sprintf("next try in %d s", again/time.Second))
	}
	return fmt.Sprintf("waiting for %s: %s", r.Stage, strings.Join(parts, ", "))
}
