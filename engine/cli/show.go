package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/measure/doctor"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/process/retry"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/run/governor"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/show/report"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
)

// flagNames replaces names of options in the engine's texts by the names of flags.
var flagNames = strings.NewReplacer(
	"Options.Pipeline", "--pipeline", "Options.Input", "--input", "Options.Share", "--part", "Options.Plugins", "--plugins", "Options.Limit", "--limit", "Options.Debug", "--debug",
	"Options.Services.Budget.Cost", "--max-cost", "Options.Spend.Money", "--budget", "Options.Spend", "--calls or --budget", "Options.Goal.Cost", "--cost", "Options.Rows", "--rows", "Options.Promise", "--accuracy", "Options.Folds", "--folds", "without Options.Journal", "with --no-journal", "without Options.Resume", "without --resume", "Options.State", "--state",
)

// message returns an error in the words of the command line.
func message(err error) string {
	var changed *workspace.ChangedError
	var part *eval.PartError
	text := err.Error()
	switch {
	case errors.As(err, &changed):
		text = changed.Error() + ". Change it back, begin anew without --resume, or mix answers of before and after with --resume-anyway"
	case errors.As(err, &part):
		text = fmt.Sprintf("--ablate %s: %s", part.Part, part.Why)
	}
	return terminal.Sanitize(flagNames.Replace(text))
}

func writeDiagnostics(w io.Writer, found *workspace.DiagnosticsError) {
	width, colour := uint(0), obeysEscapes(w) // 0: other outputs get whole lines, to be searched
	if isTerminal(w) {
		width = terminalWidth(w)
	}
	for _, d := range found.Diagnostics {
		located, sources := *d, map[string]*hcl.File(nil)
		located.Summary, located.Detail = terminal.Line(d.Summary), terminal.Sanitize(flagNames.Replace(d.Detail))
		// The writer shows the line; editors and people without colour also need the column.
		if at := d.Subject; at != nil {
			subject := *at
			subject.Filename, located.Subject = terminal.Line(at.Filename), &subject
			located.Summary = fmt.Sprintf("%s at %s:%d:%d", located.Summary, subject.Filename, at.Start.Line, at.Start.Column)
			switch file := found.Sources[at.Filename]; {
			case file == nil:
			case excerpted(d, file.Bytes):
				sources = map[string]*hcl.File{subject.Filename: {Body: file.Body, Bytes: terminal.SameLength(file.Bytes), Nav: file.Nav}}
			default:
				located.Subject, located.Context = nil, nil
			}
		}
		var text strings.Builder
		if err := hcl.NewDiagnosticTextWriter(&text, sources, width, colour).WriteDiagnostic(&located); err != nil {
			continue // a Builder returns no errors
		}
		to, kept := w, "\n\t"
		if colour { // the writer itself made the escapes: its input has none
			to, kept = os.Stderr, kept+"\x1b"
		}
		fmt.Fprint(to, terminal.Visible(text.String(), kept)) // a broken standard error cannot be reported anywhere
	}
}

const (
	// maxSnippet is the number of bytes of a file that are printed with a diagnostic.
	maxSnippet = 4000
	// maxExcerpted is the size of the longest file whose lines are shown: the writer reads the file
	// from its beginning, again for each diagnostic.
	maxExcerpted = 64 << 10
)

// excerpted reports whether the lines of a diagnostic are shown.
func excerpted(d *hcl.Diagnostic, src []byte) bool {
	about := *d.Subject
	if d.Context != nil {
		about = hcl.RangeOver(about, *d.Context)
	}
	start, end := min(about.Start.Byte, len(src)), min(about.End.Byte, len(src))
	first, last := bytes.LastIndexByte(src[:start], '\n')+1, len(src)
	if n := bytes.IndexByte(src[end:], '\n'); n >= 0 {
		last = end + n
	}
	return len(src) <= maxExcerpted && last-first <= maxSnippet
}

func isTerminal(w any) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// obeysEscapes reports whether colours and cursor movements may be written. The output must be a
// terminal that supports them, and NO_COLOR (https://no-color.org) must not ask for plain text.
func obeysEscapes(w any) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func terminalWidth(w any) uint {
	if f, ok := w.(interface{ Fd() uintptr }); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return uint(width)
		}
	}
	return 100
}

// maxReported is the number of failures that are printed one by one on standard error; the results
// hold all of them.
const maxReported = 20

// display shows the engine's events on standard error.
type display struct {
	progress *terminal.Progress
	quiet    bool // only warnings and errors are shown
	failures int  // items of the run

	mu    sync.Mutex
	meter progress.Meter // of the current work
}

func newDisplay(c *cobra.Command) *display {
	var width func() int // columns of a terminal, which may be resized
	if obeysEscapes(os.Stderr) {
		width = func() int { return int(terminalWidth(os.Stderr)) }
	}
	d := &display{quiet: isSet(c, "quiet")}
	var to io.Writer = os.Stderr
	if d.quiet {
		to, width = io.Discard, nil
	}
	d.progress = terminal.NewProgress(to, width)
	return d
}

// logVariable is the environment variable that sets the least level of the log.
const logVariable = "RACFLOW_LOG"

func newLog(c *cobra.Command) (*slog.Logger, error) {
	level := slog.LevelWarn
	if text := os.Getenv(logVariable); text != "" {
		if err := level.UnmarshalText([]byte(text)); err != nil {
			return nil, fmt.Errorf("%s: %q: a level is debug, info, warn or error", logVariable, text)
		}
	}
	if isSet(c, "verbose") {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})), nil
}

// isSet reports whether a command has a flag of this name and it is given.
func isSet(c *cobra.Command, flag string) bool {
	given, err := c.Flags().GetBool(flag)
	return err == nil && given
}

// note prints a line that is not urgent; --quiet hides it.
func (d *display) note(format string, args ...any) {
	if !d.quiet {
		d.print(format, args...)
	}
}

// print prints a line, without characters that a terminal would obey.
func (d *display) print(format string, args ...any) {
	d.progress.Clear()
	fmt.Fprintln(stderr, terminal.Sanitize(fmt.Sprintf(format, args...)))
}

func (d *display) events() workspace.Events {
	return workspace.Events{
		Warnings:  func(found *workspace.DiagnosticsError) { writeDiagnostics(stderr, found) },
		Advice:    func(text string) { d.print("warning: %s", text) },
		Findings:  d.findings,
		Measuring: func(variant string) { d.note("%s", variant) },
		Plugins:   d.plugins,
		Knowledge: d.knowledge,
		Locked:    func(name string, why error) { d.note("knowledge %q: waiting: %v", name, why) },
		Waiting:   func(r progress.LongWait) { d.note("%s", r) },
		Later:     d.later,
		Begun:     d.begun,
		Answered:  d.answered,
		Progress:  d.far,
		Ended:     d.ended,
		Spent:     d.spent,
	}
}

// plugins reports programs that are trusted beyond lock and confinement.
func (d *display) plugins(all []*program.Program) {
	for _, p := range all {
		switch p.Origin {
		case program.Given:
			d.print("plugin %s: development program %s of --plugins or RACFLOW_PLUGINS, which no lock names", p.Name, p.Path)
		case program.Linked:
			d.print("plugin %s: development program of %s, installed with --dev, which no lock names", p.Name, p.Project)
		}
		if p.Allow.Unconfined {
			d.print("plugin %s: not confined, as the file says: it may reach all that you may", p.Name)
		}
	}
}

// findings warns about problems in the rows.
func (d *display) findings(r doctor.Report) {
	for _, f := range r.Findings {
		d.print("warning: %s; racflow doctor FILE shows the rows", f.Message)
	}
}

// later reports the progress of results that come later.
func (d *display) later(w retry.PendingWait) {
	text := w.Stage + ": " + w.Note
	if w.For >= time.Minute {
		text += ", since " + minutes(w.For)
	}
	d.note("%s", text)
}

// minutes formats a time in whole minutes: 12 min, 3 h 5 min.
func minutes(d time.Duration) string {
	whole := int(d / time.Minute)
	if whole < 60 {
		return fmt.Sprintf("%d min", whole)
	}
	return fmt.Sprintf("%d h %d min", whole/60, whole%60)
}

// far shows the progress of work.
func (d *display) far(s workspace.Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.meter.Add(time.Now(), s)
	d.progress.Update(func(now time.Time) []string { return report.Progress(s, &d.meter, now) })
}

// off reports stages of the file that are not used.
func (d *display) off(p *pipeline.Pipeline) {
	for _, k := range p.Knowledge() {
		for _, stage := range k.Enrich {
			if !stage.Enabled {
				d.note("enrich.%s (%s) is off: passages are kept without it", stage.Name, stage.Use)
			}
		}
	}
	without := "what was found is the result"
	if slices.ContainsFunc(p.Stages, func(s *pipeline.Stage) bool { return s.Block == "elect" && s.Enabled }) {
		without = "the election runs without it"
	}
	for _, stage := range p.Stages {
		if !stage.Enabled && stage.Block == "sample" {
			d.note("sample.%s (%s) is off: %s", stage.Name, stage.Use, without)
		}
	}
}

func (d *display) begun(b workspace.Begun) {
	d.failures = 0
	d.off(b.Pipeline)
	d.prices(b.Pipeline)
	if b.Earlier != "" {
		d.note("run %s of this file and input ended early: --resume=%[1]s resumes it", b.Earlier)
	}
	if b.Resumed {
		d.note("resuming run %s: %d items are answered", b.Run, b.Answered)
	}
	if b.Changed > 0 {
		d.print("%s of the journal changed since it was written: these items are answered again", terminal.Plural(b.Changed, "line"))
	}
	if len(b.Removed) > 0 {
		d.note("%s", removedRuns(b.Removed))
	}
}

// prices reports prices of calls that do not come from the file.
func (d *display) prices(p *pipeline.Pipeline) {
	for i, s := range p.Stages {
		if s.Enabled && p.Used(i) && s.PriceFrom != "" {
			d.note("%s.%s: %s", s.Block, s.Name, report.Price(s))
		}
	}
}

func (d *display) answered(batch []outcome.Result) {
	for _, r := range batch {
		if r.Failure == nil {
			continue
		}
		if d.failures++; d.failures <= maxReported {
			d.print("%s failed: %v", terminal.Sanitize(r.Place()), r.Failure)
		}
	}
}

func (d *display) ended(o *workspace.Outcome) {
	if d.failures > maxReported {
		d.print("... and %d more failed", d.failures-maxReported)
	}
	for _, skipped := range o.Skipped {
		d.print("%s: %s continued without it, the first because: %v", skipped.Stage, terminal.Plural(skipped.Items, "item"), skipped.First)
	}
	for _, dropped := range o.Evaluation.Dropped {
		d.print("warning: %s", dropped)
	}
	for _, voter := range o.Evaluation.ByChance {
		d.print("warning: %s", voter)
	}
	d.progress.Clear()
}

func (d *display) knowledge(r knowledge.BuildReport) {
	name := fmt.Sprintf("knowledge %q", r.Name)
	for _, why := range r.Anew {
		d.note("%s: %s", name, why)
	}
	d.note("%s: %s", name, describeKnowledge(r))
	if a := r.Attached; a != nil && a.Doubt() != "" {
		d.print("%s: warning: %s", name, a.Doubt())
	}
	for i, invalid := range r.Invalid {
		if i == maxReported {
			d.print("... and %d more that cannot be used", r.InvalidCount-maxReported)
			break
		}
		if invalid.Line == 0 {
			d.print("%s (it is left out)", invalid)
		} else {
			d.print("%s: warning: %s (the row is left out)", name, invalid)
		}
	}
	for _, note := range r.Respelt {
		d.note("%s: %s", name, note)
	}
	if r.Unenriched > 0 {
		d.print("%s: %s without what an enrichment adds, which the next build tries again; the first because %s",
			name, terminal.Plural(r.Unenriched, "passage"), r.FirstUnenriched)
	}
	for _, g := range r.Retired {
		d.note("%s: removed %s (%s), which this build replaces", name, g.Collection, terminal.Plural(g.Entries, "entry"))
	}
	for _, err := range r.Kept {
		d.print("%s: warning: what this build replaces stays: %v; racflow knowledge gc removes it", name, err)
	}
	d.progress.Clear()
}

// describeKnowledge says how a knowledge compares with its source.
func describeKnowledge(r knowledge.BuildReport) string {
	if a := r.Attached; a != nil {
		words := ""
		if !a.Lexical {
			words = " and without words"
		}
		return fmt.Sprintf("%s in collection %s, read only%s; %s", terminal.Plural(r.Entries, "entry"), a.Collection, words, a.Sampled())
	}
	what := "up to date"
	if n := r.Added + r.Changed; n+r.Removed > 0 {
		what = fmt.Sprintf("%d embedded with %s", n-r.Reused, r.Embedder)
		if r.Reused > 0 {
			what += fmt.Sprintf(", %d with vectors of earlier builds", r.Reused)
		}
		if r.Removed > 0 {
			what += fmt.Sprintf(", %d removed", r.Removed)
		}
	}
	if len(r.Unread) > 0 {
		what += ", not read: " + r.Unread.String()
	}
	what = terminal.Plural(r.Entries, "entry") + ", " + what
	if r.Documents > 0 {
		what = terminal.Plural(r.Documents, "document") + ", " + what
	}
	return what
}

// spent reports what calls of services cost.
func (d *display) spent(s governor.Snapshot) {
	reported := 0
	for _, stage := range s.Stages {
		if text := describeCalls(stage.Counts); text != "" {
			d.note("%s: %s", stage.Stage, text)
			reported++
		}
	}
	if reported > 1 {
		d.note("all calls: %s", describeCalls(s.Total))
	}
}

// describeCalls describes the calls and their cost; empty: there were none.
func describeCalls(c governor.Counts) string {
	var parts []string
	if c.Calls > 0 {
		text := terminal.Plural(c.Calls, "call")
		if c.Failed > 0 {
			text += fmt.Sprintf(" (%d failed)", c.Failed)
		}
		parts = append(parts, text)
	}
	if c.InputTokens > 0 || c.OutputTokens > 0 {
		text := fmt.Sprintf("%d tokens in", c.InputTokens)
		if c.CachedTokens > 0 {
			text += fmt.Sprintf(" (%d cached)", c.CachedTokens)
		}
		parts = append(parts, text, fmt.Sprintf("%d out", c.OutputTokens))
	}
	if c.Cost > 0 {
		parts = append(parts, "cost "+governor.Money(c.Cost))
	}
	if c.CacheHits > 0 {
		parts = append(parts, terminal.Plural(c.CacheHits, "answer")+" from the cache")
	}
	return strings.Join(parts, ", ")
}
