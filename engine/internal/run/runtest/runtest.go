package runtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

// File is the name of the pipeline file.
const File = "p.hcl"

// Folder makes a folder with files.
func Folder(t testing.TB, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Load loads File of a folder.
func Load(t testing.TB, c enginetest.Catalog, dir string, set ...pipeline.Override) *pipeline.File {
	t.Helper()
	f, diags := pipeline.Load(context.Background(), filepath.Join(dir, File), pipeline.Options{Getenv: os.LookupEnv, Dir: dir, Catalog: c, Set: set})
	if diags.HasErrors() {
		var text bytes.Buffer
		_ = hcl.NewDiagnosticTextWriter(&text, f.Sources, 100, false).WriteDiagnostics(diags)
		t.Fatal(text.String())
	}
	return f
}

// Launch opens stages in memory, with their states below a folder.
func Launch(t testing.TB, dir string) stage.Launch {
	return func(_ context.Context, l stage.LaunchRequest) (any, error) {
		state := l.StateDir
		if state == "" {
			state = sdktest.StateDir(t, l.Stage.Info, filepath.Join(dir, l.Knowledge), l.State)
		}
		s, err := enginetest.Open(t, l.Stage.Info, sdk.Setup{StateDir: state, Samples: l.Stage.N}, string(l.Stage.Config.Open))
		if err == nil { // as the host does
			block := l.Stage.Name
			if l.Knowledge != "" {
				block = l.Knowledge
			}
			s.Name = fmt.Sprintf("%s.%s: plugin test 0.1.0", l.Stage.Kind, block)
		}
		return s, err
	}
}

// Open opens the first pipeline of File among files.
func Open(t testing.TB, c enginetest.Catalog, o run.Options, files map[string]string) (*run.Run, error) {
	t.Helper()
	dir := Folder(t, files)
	o.Launch = Launch(t, dir)
	return run.Open(t.Context(), Load(t, c, dir).Pipelines[0], o)
}

// Feed returns a reader of rows with these texts, for Run.Items.
func Feed(texts ...string) func() (source.Row, error) {
	rows := make([]source.Row, len(texts))
	for i, text := range texts {
		rows[i] = source.Row{Line: i + 1, Text: text}
	}
	return Rows(rows...)
}

// Rows returns a reader of rows, for Run.Items.
func Rows(rows ...source.Row) func() (source.Row, error) {
	return func() (source.Row, error) {
		if len(rows) == 0 {
			return source.Row{}, io.EOF
		}
		row := rows[0]
		rows = rows[1:]
		return row, nil
	}
}

// Each turns a function of one result into a sink.
func Each(f func(outcome.Result) error) func([]outcome.Result) error {
	return func(batch []outcome.Result) error {
		for _, r := range batch {
			if err := f(r); err != nil {
				return err
			}
		}
		return nil
	}
}
