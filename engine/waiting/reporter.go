package waiting

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Source says what is waited for now.
type Source func(now time.Time, say func(Wait))

// Reporter collects waits and reports those that last. Its methods may be called by
// several goroutines at once, and on nil, which reports nothing.
type Reporter struct {
	report func(Report)

	mu       sync.Mutex
	timer    *time.Timer
	closed   bool
	sources  []*Source
	holds    []*Wait
	answered map[string]time.Time // by stage
	reported map[string]time.Time
}

// tick is how often waits are looked at.
const tick = 250 * time.Millisecond

// New makes a Reporter that reports until Close; nil where report is.
func New(report func(Report)) *Reporter {
	if report == nil {
		return nil
	}
	r := &Reporter{report: report, answered: map[string]time.Time{}, reported: map[string]time.Time{}}
	r.mu.Lock() // look waits for the timer that has called it
	defer r.mu.Unlock()
	r.timer = time.AfterFunc(tick, r.look)
	return r
}

// Open resumes the reports that Close ended.
func (r *Reporter) Open() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = false
	r.timer.Reset(tick)
}

// Close ends the reports.
func (r *Reporter) Close() {
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
func (r *Reporter) Watch(s Source) (forget func()) {
	if r == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources = append(r.sources, &s)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sources = slices.DeleteFunc(r.sources, func(other *Source) bool { return other == &s })
	}
}

// Hold says that calls wait from now on, until release is called.
func (r *Reporter) Hold(w Wait) (release func()) {
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
func (r *Reporter) Answered(stage string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered[stage] = time.Now()
}

// look reports the waits that have lasted.
func (r *Reporter) look() {
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
	var reports []Report
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

// due makes one report of what a stage waits for, and tells whether it is time for it.
// The caller holds mu.
func (r *Reporter) due(now time.Time, waits []Wait) (report Report, due bool) {
	// A call under way is one of the engine's and one of the service's, and says nothing
	// where there is a reason to wait.
	slices.SortStableFunc(waits, func(a, b Wait) int { return int(a.After - b.After) })
	first := waits[0]
	since, calls := first.Since, first.Calls
	for _, w := range waits[1:] {
		if w.After == Soon {
			calls += w.Calls
			if w.Since.Before(since) {
				since = w.Since
			}
		}
	}
	if answered := r.answered[first.Stage]; answered.After(since) {
		since = answered
	}
	report = Report{Stage: first.Stage, Calls: calls, Why: first.Why, For: now.Sub(since), Again: max(first.Next.Sub(now), 0)}
	if first.Next.IsZero() {
		report.Again = 0
	}
	return report, report.For >= first.After && now.Sub(r.reported[first.Stage]) >= every
}
