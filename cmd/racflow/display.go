package main

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/knowledge/build"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/terminal"
)

// maxTold is how many failures are told one by one on standard error; the
// results hold all of them.
const maxTold = 20

// display is standard error, where what happens meanwhile is shown.
type display struct {
	progress *terminal.Progress
	building string // what was told of a build last
	faults   int    // rows of the knowledge that could not be used, and passages without their enrichment
	failures int    // items that failed
}

func newDisplay() *display {
	return &display{progress: terminal.NewProgress(os.Stderr, obeysEscapes(os.Stderr))}
}

func newLog() *slog.Logger {
	level := slog.LevelWarn
	if os.Getenv("RACFLOW_LOG") == "debug" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// events shows those of the engine.
func (s *display) events() engine.Events {
	return engine.Events{
		Warnings:  func(d *engine.DiagnosticsError) { writeDiagnostics(os.Stderr, d) },
		Knowledge: s.tellKnowledge,
		Building:  s.tellBuilding,
		Silent:    s.tellWaiting,
		Locked: func(name string, why error) {
			s.progress.Clear()
			fmt.Fprintf(os.Stderr, "knowledge %q: waiting: %v\n", name, why)
		},
		Calls: func(w governor.Wait) {
			s.progress.Clear()
			fmt.Fprintln(os.Stderr, terminal.Sanitize(w.String()))
		},
	}
}

// tellOff tells what the file has and does not use.
func tellOff(p *pipeline.Pipeline) {
	for _, k := range p.Knowledge() {
		for _, stage := range k.Enrich {
			if !stage.Enabled {
				fmt.Fprintf(os.Stderr, "enrich.%s (%s) is off: passages are kept without it\n", stage.Name, stage.Use)
			}
		}
	}
	without := "what was found is the result"
	if slices.ContainsFunc(p.Stages, func(s *pipeline.Stage) bool { return s.Block == "elect" && s.Enabled }) {
		without = "the election runs without it"
	}
	for _, stage := range p.Stages {
		if !stage.Enabled && stage.Block == "sample" {
			fmt.Fprintf(os.Stderr, "sample.%s (%s) is off: %s\n", stage.Name, stage.Use, without)
		}
	}
}

// tellWaiting says that a stage has not answered for a while.
func (s *display) tellWaiting(stage string, waited time.Duration) {
	s.progress.Clear()
	fmt.Fprintf(os.Stderr, "waiting for %s: no answer for %s\n", stage, waited.Round(time.Second))
}

// tellBuilding says how far a build is with what it is doing.
func (s *display) tellBuilding(doing, name string, done, total int) {
	if what := doing + " " + name; what != s.building {
		s.building = what
		s.progress.Restart()
	}
	s.progress.Update(s.building, done, total)
}

func (s *display) tellKnowledge(r build.Report) {
	s.progress.Clear()
	s.progress.Restart()
	s.faults += r.InvalidCount + r.Unenriched
	for _, why := range r.Anew {
		fmt.Fprintf(os.Stderr, "knowledge %q: %s\n", r.Name, terminal.Sanitize(why))
	}
	fmt.Fprintf(os.Stderr, "knowledge %q: %s\n", r.Name, describeKnowledge(r))
	for i, f := range r.Invalid {
		if i == maxTold {
			fmt.Fprintf(os.Stderr, "... and %d more that cannot be used\n", r.InvalidCount-maxTold)
			break
		}
		what := "the row"
		if f.Line == 0 {
			what = "it"
		}
		fmt.Fprintf(os.Stderr, "%s (%s is left out)\n", terminal.Sanitize(f.String()), what)
	}
	if r.Unenriched > 0 {
		fmt.Fprintf(os.Stderr, "knowledge %q: %s without what an enrichment adds, which the next build tries again; the first because %s\n",
			r.Name, terminal.Plural(r.Unenriched, "passage"), terminal.Sanitize(r.FirstUnenriched.String()))
	}
	for _, g := range r.Retired {
		fmt.Fprintf(os.Stderr, "knowledge %q: removed %s (%s), which this build replaces\n", r.Name, g.Collection, terminal.Plural(g.Entries, "entry"))
	}
	for _, err := range r.Kept {
		fmt.Fprintf(os.Stderr, "knowledge %q: warning: what this build replaces stays: %v; racflow knowledge gc removes it\n", r.Name, err)
	}
}

// describeKnowledge says how a knowledge compares with its source.
func describeKnowledge(r build.Report) string {
	what := "up to date"
	if n := r.Added + r.Changed; n+r.Removed > 0 {
		what = fmt.Sprintf("%d embedded with %s", n, r.Embedder)
		if r.Removed > 0 {
			what += fmt.Sprintf(", %d removed", r.Removed)
		}
	}
	if r.Documents > 0 {
		return fmt.Sprintf("%s, %s, %s", terminal.Plural(r.Documents, "document"), terminal.Plural(r.Entries, "entry"), what)
	}
	return fmt.Sprintf("%s, %s", terminal.Plural(r.Entries, "entry"), what)
}

func (s *display) tellFailure(r run.Result) {
	if s.failures++; s.failures <= maxTold {
		s.progress.Clear()
		fmt.Fprintf(os.Stderr, "line %d failed: %s\n", r.Line, terminal.Sanitize(r.Failure.Error()))
	}
}

func (s *display) tellMoreFailures() {
	if s.failures > maxTold {
		fmt.Fprintf(os.Stderr, "... and %d more failed\n", s.failures-maxTold)
	}
}
