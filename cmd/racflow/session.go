package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/host"
	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/report"
	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/sdk"
)

// maxTold is how many failures are told one by one on standard error; the
// results hold all of them.
const maxTold = 20

// session is a loaded file with the processes that work for it.
type session struct {
	ctx      context.Context // of the command
	flags    *fileFlags
	file     *pipeline.File
	pipeline *pipeline.Pipeline // nil: the verb works on the file's knowledge alone
	host     *host.Host
	state    string // absolute: plugins are given folders below it
	catalog  *catalog
	progress *report.Progress
	building string // what was told of a build last
	faults   int    // rows of the knowledge that could not be used, and passages without their enrichment
	failures int    // items that failed
	calls    sharing
}

// session makes ready to load files and start processes. It does neither.
func (f *fileFlags) session(ctx context.Context) (*session, error) {
	s := &session{ctx: ctx, flags: f, progress: report.NewProgress(os.Stderr, obeysEscapes(os.Stderr))}
	if f.state == "" {
		return nil, errors.New("--state is empty: name a folder")
	}
	var err error
	if s.state, err = filepath.Abs(f.state); err != nil {
		return nil, err
	}
	if s.host, err = host.New(host.Options{StateDir: s.state, Log: newLog(), Waiting: s.tellWaiting}); err != nil {
		return nil, err
	}
	s.catalog, err = f.catalog(ctx, s.host)
	return s, err
}

// start loads a file and chooses the pipeline to work with. It starts no
// stage.
func (f *fileFlags) start(ctx context.Context, path, input string) (*session, error) {
	s, err := f.session(ctx)
	if err != nil {
		return nil, err
	}
	if err = s.load(path, input); err == nil {
		s.pipeline, err = f.choose(s.file)
	}
	if err == nil {
		err = f.calls.check(s.pipeline)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// read reads and checks a pipeline file.
func (s *session) read(path, input string) (hcl.Diagnostics, error) {
	options, err := s.flags.options(input, s.catalog)
	if err != nil {
		return nil, err
	}
	var diags hcl.Diagnostics
	s.file, diags = pipeline.Load(s.ctx, path, options)
	return diags, s.ctx.Err()
}

// load is read with the diagnostics told on standard error.
func (s *session) load(path, input string) error {
	diags, err := s.read(path, input)
	if err != nil {
		return err
	}
	if len(diags) > 0 {
		writeDiagnostics(os.Stderr, s.file, diags)
	}
	if diags.HasErrors() {
		return &exitError{code: exitFailed}
	}
	return nil
}

func newLog() *slog.Logger {
	level := slog.LevelWarn
	if os.Getenv("RACFLOW_LOG") == "debug" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

func (s *session) close() {
	s.progress.Clear()
	s.host.Close()
	s.tellSpent(os.Stderr)
}

// open brings the knowledge up to date, starts the stages and tells about it.
func (s *session) open(ctx context.Context, stdin io.Reader) (*run.Run, error) {
	r, err := run.Open(ctx, s.pipeline, run.Options{
		Launch: s.launch, Stdin: stdin, Again: s.flags.again, Lists: s.flags.lists, Strict: s.flags.strict, Knowledge: s.tellKnowledge,
		Building: s.tellBuilding,
		Waiting: func(name string, why error) {
			s.progress.Clear()
			fmt.Fprintf(os.Stderr, "knowledge %q: waiting: %v\n", name, why)
		},
	})
	return r, s.explain(err)
}

// tellOff tells what the file has and does not use.
func (s *session) tellOff() {
	for _, k := range s.pipeline.Knowledge() {
		for _, stage := range k.Enrich {
			if !stage.Enabled {
				fmt.Fprintf(os.Stderr, "enrich.%s (%s) is off: passages are kept without it\n", stage.Name, stage.Use)
			}
		}
	}
	without := "what was found is the result"
	if slices.ContainsFunc(s.pipeline.Stages, func(s *pipeline.Stage) bool { return s.Block == "elect" && s.Enabled }) {
		without = "the election runs without it"
	}
	for _, stage := range s.pipeline.Stages {
		if !stage.Enabled && stage.Block == "sample" {
			fmt.Fprintf(os.Stderr, "sample.%s (%s) is off: %s\n", stage.Name, stage.Use, without)
		}
	}
}

// launch starts the process of a stage.
func (s *session) launch(ctx context.Context, l run.LaunchRequest) (any, error) {
	block, dir := l.Knowledge, filepath.Join(s.state, "knowledge", l.Knowledge)
	switch {
	case l.Knowledge == "":
		block, dir = l.Stage.Name, filepath.Join(s.state, "stages", s.pipeline.Name, l.Stage.Name)
	case l.Stage.Kind == sdk.KindEnrich: // the folder above is the store's
		block, dir = l.Stage.Name, filepath.Join(s.state, "stages", l.Knowledge, "enrich", l.Stage.Name)
	}
	shared, err := s.share(l.Stage, block)
	if err != nil {
		return nil, err
	}
	return s.host.Start(ctx, host.Spec{
		Kind: l.Stage.Kind, Use: l.Stage.Use, Block: block, Config: l.Stage.Config.Open,
		StateDir: dir, State: l.State, Samples: l.Stage.N, Network: l.Stage.Info.Network, Host: shared,
		Command: s.catalog.command(l.Stage.Use), Secrets: l.Stage.Config.Secrets,
	})
}

// explain turns errors that a place in the file is to blame for into
// diagnostics that point at it.
func (s *session) explain(err error) error {
	var source *knowledge.SourceError
	var config *host.ConfigError
	var diags hcl.Diagnostics
	switch {
	case errors.As(err, &source):
		diags = diags.Append(&hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Unusable source", Detail: capitalize(source.Err.Error()) + ".", Subject: &source.Range,
		})
	case errors.As(err, &config):
		diags = s.blame(config)
	}
	if len(diags) == 0 {
		return err
	}
	s.progress.Clear()
	writeDiagnostics(os.Stderr, s.file, diags)
	return &exitError{code: exitFailed}
}

// blame makes diagnostics of the arguments that a stage refused. A fault of
// the stage as a whole stays an error.
func (s *session) blame(refused *host.ConfigError) hcl.Diagnostics {
	blocks := map[*pipeline.Stage]string{}
	for _, k := range s.file.Knowledge {
		for _, stage := range k.Stages() {
			if blocks[stage] = k.Name; stage.Kind == sdk.KindEnrich {
				blocks[stage] = stage.Name
			}
		}
	}
	if s.pipeline != nil {
		for _, stage := range s.pipeline.Stages {
			blocks[stage] = stage.Name
			for _, f := range stage.Fallbacks {
				blocks[f.Stage] = stage.Name
			}
		}
	}
	var diags hcl.Diagnostics
	for stage, block := range blocks {
		for _, e := range refused.Errors {
			if _, given := stage.Config.Ranges[e.Argument]; given && block == refused.Block && stage.Kind == refused.Kind {
				diags = diags.Append(stage.Config.Diagnostic(stage.Use, stage.UseRange, e))
			}
		}
	}
	return diags
}

func capitalize(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// tellWaiting says that a stage has not answered for a while.
func (s *session) tellWaiting(stage string, waited time.Duration) {
	s.progress.Clear()
	fmt.Fprintf(os.Stderr, "waiting for %s: no answer for %s\n", stage, waited.Round(time.Second))
}

// tellBuilding says how far a build is with what it is doing.
func (s *session) tellBuilding(doing, name string, done, total int) {
	if what := doing + " " + name; what != s.building {
		s.building = what
		s.progress.Restart()
	}
	s.progress.Update(s.building, done, total)
}

func (s *session) tellKnowledge(r knowledge.Report) {
	s.progress.Clear()
	s.progress.Restart()
	s.faults += r.FaultCount + r.Bare
	for _, why := range r.Anew {
		fmt.Fprintf(os.Stderr, "knowledge %q: %s\n", r.Name, report.Legible(why))
	}
	fmt.Fprintf(os.Stderr, "knowledge %q: %s\n", r.Name, describeKnowledge(r))
	for i, f := range r.Faults {
		if i == maxTold {
			fmt.Fprintf(os.Stderr, "... and %d more that cannot be used\n", r.FaultCount-maxTold)
			break
		}
		what := "the row"
		if f.Line == 0 {
			what = "it"
		}
		fmt.Fprintf(os.Stderr, "%s (%s is left out)\n", report.Legible(f.String()), what)
	}
	if r.Bare > 0 {
		fmt.Fprintf(os.Stderr, "knowledge %q: %s without what an enrichment adds, which the next build tries again; the first because %s\n",
			r.Name, quantity(r.Bare, "passage"), report.Legible(r.FirstBare.String()))
	}
	for _, g := range r.Retired {
		fmt.Fprintf(os.Stderr, "knowledge %q: removed %s (%s), which this build replaces\n", r.Name, g.Collection, quantity(g.Entries, "entry"))
	}
	for _, err := range r.Kept {
		fmt.Fprintf(os.Stderr, "knowledge %q: warning: what this build replaces stays: %v; racflow knowledge gc removes it\n", r.Name, err)
	}
}

// describeKnowledge says how a knowledge compares with its source.
func describeKnowledge(r knowledge.Report) string {
	what := "up to date"
	if n := r.Added + r.Changed; n+r.Removed > 0 {
		what = fmt.Sprintf("%d embedded with %s", n, r.Embedder)
		if r.Removed > 0 {
			what += fmt.Sprintf(", %d removed", r.Removed)
		}
	}
	if r.Documents > 0 {
		return fmt.Sprintf("%s, %s, %s", quantity(r.Documents, "document"), quantity(r.Entries, "entry"), what)
	}
	return fmt.Sprintf("%s, %s", quantity(r.Entries, "entry"), what)
}

func (s *session) tellFailure(r run.Result) {
	if s.failures++; s.failures <= maxTold {
		s.progress.Clear()
		fmt.Fprintf(os.Stderr, "line %d failed: %s\n", r.Line, report.Legible(r.Failure.Error()))
	}
}

func (s *session) tellMoreFailures() {
	if s.failures > maxTold {
		fmt.Fprintf(os.Stderr, "... and %d more failed\n", s.failures-maxTold)
	}
}
