package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/term"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/terminal"
)

// flagNames replaces names of options in the engine's texts by those of flags.
var flagNames = strings.NewReplacer(
	"Options.Pipeline", "--pipeline", "Options.Input", "--input", "Options.Plugins", "--plugins", "Options.Limit", "--limit",
	"Options.Services.Budget.Cost", "--max-cost", "Options.Spend.Money", "--budget", "Options.Spend", "--calls or --budget", "Options.Goal.Cost", "--cost", "Options.Calls", "--calls", "Options.Promise", "--accuracy", "Options.Folds", "--folds", "without Options.Journal", "with --no-journal",
)

// message is an error in the words of the command line.
func message(err error) string {
	var changed *engine.ChangedError
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

func writeDiagnostics(w io.Writer, found *engine.DiagnosticsError) {
	out := hcl.NewDiagnosticTextWriter(w, found.Sources, terminalWidth(w), obeysEscapes(w))
	for _, d := range found.Diagnostics {
		located := *d
		located.Detail = flagNames.Replace(d.Detail)
		// The writer shows the line; editors and people without colour want the
		// column too.
		if at := d.Subject; at != nil {
			located.Summary = fmt.Sprintf("%s at %s:%d:%d", d.Summary, at.Filename, at.Start.Line, at.Start.Column)
			if longLines(found.Sources[at.Filename], d) {
				located.Subject, located.Context = nil, nil // the writer would print all of them
			}
		}
		_ = out.WriteDiagnostic(&located) // nowhere is left to report a broken standard error
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
