package terminal

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// This file reports what the calls of stages wait for, whoever makes them wait: the
// governor (a service that asks for fewer calls or is down, a limit), a retry's pause, a
// stage that is starting or gives no answer.
//
// Those who make calls wait say so when they are asked (Reporter.Watch) or as they begin
// to (Reporter.Hold). A Reporter asks four times a second, and reports a stage once it has
// answered nothing for as long as the wait says: five seconds where there is a reason,
// thirty where a call is merely under way. Then every thirty seconds, in one line for each
// stage, with the reason that comes first and the number of calls that wait for any.
//
// The package changes nothing about how long anybody waits. Results that come later
// (package retry) take minutes or hours, and have reports of their own.

// WaitSource says what is waited for now.
type WaitSource func(now time.Time, say func(Wait))

// WaitReporter collects waits and reports those that last. Its methods may be called by
// several goroutines at once, and on nil, which reports nothing.
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

// tick is how often waits are looked at.
const tick = 250 * time.Millisecond

// NewWaitReporter makes a Reporter that reports until Close; nil where report is.
func NewWaitReporter(report func(LongWait)) *WaitReporter {
	if report == nil {
		return nil
	}
	r := &WaitReporter{report: report, answered: map[string]time.Time{}, reported: map[string]time.Time{}}
	r.mu.Lock() // look waits for the timer that has called it
	defer r.mu.Unlock()
	r.timer = time.AfterFunc(tick, r.look)
	return r
}

// Open resumes the reports that Close ended.
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

// Watch asks s what is waited for, until forget is called. Of the reasons of a stage the
// first source's is reported. s may call Answered.
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

// Hold says that calls wait from now on, until release is called.
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

// Answered says that a call of a stage has been answered: it is not silent.
func (r *WaitReporter) Answered(stage string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered[stage] = time.Now()
}

// look reports the waits that have lasted.
func (r *WaitReporter) look() {
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

// due makes one report of what a stage waits for, and reports whether it is time for it.
// The caller holds mu.
func (r *WaitReporter) due(now time.Time, waits []Wait) (report LongWait, due bool) {
	// A call under way is one of the engine's and one of the service's, and says nothing
	// where there is a reason to wait.
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

// How long a stage may be silent until it is reported, and how often it is from then on.
const (
	WaitSoon = 5 * time.Second  // calls wait for a reason
	WaitLate = 30 * time.Second // calls are under way
	every    = 30 * time.Second
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

// LongWait is a Wait that has lasted.
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
		parts = []string{Plural(r.Calls, "call"), r.Why}
	}
	if again := r.Again.Round(time.Second); again > 0 {
		parts = append(parts, fmt.Sprintf("next try in %d s", again/time.Second))
	}
	return fmt.Sprintf("waiting for %s: %s", r.Stage, strings.Join(parts, ", "))
}
