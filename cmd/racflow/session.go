package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/host"
	"github.com/racflow/racflow/engine/knowledge"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/report"
	"github.com/racflow/racflow/engine/run"
)

// maxTold is how many failures are told one by one on standard error; the
// results hold all of them.
const maxTold = 20

// session is a loaded file with the processes that work for it.
type session struct {
	file     *pipeline.File
	pipeline *pipeline.Pipeline
	host     *host.Host
	state    string
	found    catalog
	progress *report.Progress
	faults   int // rows of the knowledge that could not be used
	failures int // items that failed
}

// start loads a file and makes ready to start processes. It starts none.
func (f *fileFlags) start(ctx context.Context, path, input string) (*session, error) {
	found, err := f.catalog(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{found: found, progress: report.NewProgress(os.Stderr, isTerminal(os.Stderr))}
	if s.file, err = f.load(path, input, found); err != nil {
		return nil, err
	}
	if s.pipeline, err = f.choose(s.file); err != nil {
		return nil, err
	}
	if s.state, err = f.stateDir(); err != nil {
		return nil, err
	}
	s.host, err = host.New(host.Options{StateDir: s.state, Log: newLog()})
	return s, err
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
}

// open brings the knowledge up to date, starts the stages and tells about it.
func (s *session) open(ctx context.Context, stdin io.Reader) (*run.Run, error) {
	for _, stage := range s.pipeline.Stages {
		if !stage.Enabled && stage.Block == "sample" {
			fmt.Fprintf(os.Stderr, "sample.%s (%s) is off: the election runs without it\n", stage.Name, stage.Use)
		}
	}
	r, err := run.Open(ctx, s.pipeline, run.Options{
		Launch: s.launch, Stdin: stdin, Log: newLog(), Knowledge: s.tellKnowledge,
		Building: func(name string, done, total int) { s.progress.Update("embedding "+name, done, total) },
	})
	return r, s.explain(err)
}

// launch starts the process of a stage.
func (s *session) launch(ctx context.Context, l run.LaunchRequest) (any, error) {
	dir := filepath.Join(s.state, "stages", s.pipeline.Name, l.Stage.Name)
	if l.Knowledge != "" {
		dir = filepath.Join(s.state, "knowledge", l.Knowledge)
	}
	return s.host.Start(ctx, host.Spec{
		Kind: l.Stage.Kind, Use: l.Stage.Info.Name, Block: l.Stage.Name, Config: l.Stage.Config.Open,
		StateDir: dir, State: l.State, Samples: l.Stage.N, Network: l.Stage.Info.Network,
		Command: s.found.command(l.Stage.Use), Secrets: l.Stage.Config.Secrets,
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
		diags = s.configDiagnostics(config)
	}
	if len(diags) == 0 {
		return err
	}
	s.progress.Clear()
	writeDiagnostics(os.Stderr, s.file, diags)
	return &exitError{code: exitFailed}
}

func (s *session) tellKnowledge(r knowledge.Report) {
	s.progress.Clear()
	s.progress.Restart()
	s.faults += r.FaultCount
	fmt.Fprintf(os.Stderr, "knowledge %q: %s\n", r.Name, describeKnowledge(r, "embedded"))
	for i, f := range r.Faults {
		if i == maxTold {
			fmt.Fprintf(os.Stderr, "... and %d more rows that cannot be used\n", r.FaultCount-maxTold)
			break
		}
		fmt.Fprintf(os.Stderr, "%s (the row is left out)\n", f)
	}
}

// describeKnowledge says how a knowledge compares with its source.
func describeKnowledge(r knowledge.Report, embedded string) string {
	what := "up to date"
	if n := r.Added + r.Changed; n+r.Removed > 0 {
		what = fmt.Sprintf("%d %s with %s", n, embedded, r.Embedder)
		if r.Removed > 0 {
			what += fmt.Sprintf(", %d removed", r.Removed)
		}
	}
	return fmt.Sprintf("%d entries, %s", r.Entries, what)
}

func (s *session) tellFailure(r run.Result) {
	if s.failures++; s.failures <= maxTold {
		s.progress.Clear()
		fmt.Fprintf(os.Stderr, "line %d failed: %v\n", r.Line, r.Failure)
	}
}

func (s *session) tellMoreFailures() {
	if s.failures > maxTold {
		fmt.Fprintf(os.Stderr, "... and %d more failed\n", s.failures-maxTold)
	}
}
