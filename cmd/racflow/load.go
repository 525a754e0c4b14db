package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/pipeline"
)

// stateDir is where knowledge is kept unless a flag says otherwise.
const stateDir = engine.DefaultState

// fileFlags are the flags of every verb that loads a pipeline file.
type fileFlags struct {
	vars     []string
	varFiles []string
	pipeline string
	state    string
	plugins  []string

	// Not flags of all verbs:
	set   []pipeline.Override
	again bool // keep ballots
	lists bool // keep what each stage found
	// strict ends a run early in which a stage has to stop: figures are of one method.
	strict bool
	calls  callFlags
}

func (f *fileFlags) register(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.vars, "var", nil, "set a variable of the file: `NAME=VALUE` (may be repeated)")
	c.Flags().StringArrayVar(&f.varFiles, "var-file", nil, "read variables from an HCL `FILE` (may be repeated)")
	c.Flags().StringVar(&f.pipeline, "pipeline", "", "the pipeline to use where the file holds several")
	c.Flags().StringVar(&f.state, "state", stateDir, "`DIR` that keeps knowledge between runs")
	c.Flags().StringArrayVar(&f.plugins, "plugins", nil, "look for third-party plugins in `DIR` too (may be repeated)")
}

// options are what the engine needs to know of the flags.
func (f *fileFlags) options() (engine.Options, error) {
	vars := map[string]string{}
	for _, v := range f.vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return engine.Options{}, fmt.Errorf("-var %s: write NAME=VALUE", v)
		}
		vars[name] = value
	}
	return engine.Options{
		Builtin: builtin, Plugins: f.plugins, State: f.state, Vars: vars, VarFiles: f.varFiles, Set: f.set, Pipeline: f.pipeline,
		Services: f.calls.shared(), Again: f.again, Lists: f.lists, Strict: f.strict,
	}, nil
}

// flagOf are the flags that set what an engine.OptionError names.
var flagOf = map[string]string{"Pipeline": "--pipeline", "Input": "--input", "Services.Budget.Cost": "--max-cost"}

func writeDiagnostics(w io.Writer, found *engine.DiagnosticsError) {
	out := hcl.NewDiagnosticTextWriter(w, found.Sources, terminalWidth(w), obeysEscapes(w))
	for _, d := range found.Diagnostics {
		// The writer shows the line; editors and people without colour want the
		// column too.
		if at := d.Subject; at != nil {
			located := *d
			located.Summary = fmt.Sprintf("%s at %s:%d:%d", d.Summary, at.Filename, at.Start.Line, at.Start.Column)
			if longLines(found.Sources[at.Filename], d) {
				located.Subject, located.Context = nil, nil // the writer would print all of them
			}
			d = &located
		}
		_ = out.WriteDiagnostic(d) // there is nowhere left to tell of a broken standard error
	}
}

// maxSnippet is how many bytes of a file are printed with a diagnostic.
const maxSnippet = 4000

// longLines reports whether the lines that a diagnostic is about are too long
// to print.
func longLines(file *hcl.File, d *hcl.Diagnostic) bool {
	if file == nil {
		return false
	}
	about := *d.Subject
	if d.Context != nil {
		about = hcl.RangeOver(about, *d.Context)
	}
	start, end := min(about.Start.Byte, len(file.Bytes)), min(about.End.Byte, len(file.Bytes))
	before := start - 1 - bytes.LastIndexByte(file.Bytes[:start], '\n')
	after := bytes.IndexByte(file.Bytes[end:], '\n')
	if after < 0 {
		after = len(file.Bytes) - end
	}
	return before+end-start+after > maxSnippet
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// obeysEscapes reports whether colour and movements of the cursor may be written:
// to a terminal that can do so, unless NO_COLOR (https://no-color.org) asks for
// plain text.
func obeysEscapes(w any) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func terminalWidth(w any) uint {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return uint(width)
		}
	}
	return 100
}
