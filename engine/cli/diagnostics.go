package cli

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
	"Options.Pipeline", "--pipeline", "Options.Input", "--input", "Options.Plugins", "--plugins", "Options.Limit", "--limit", "Options.Debug", "--debug",
	"Options.Services.Budget.Cost", "--max-cost", "Options.Spend.Money", "--budget", "Options.Spend", "--calls or --budget", "Options.Goal.Cost", "--cost", "Options.Calls", "--calls", "Options.Promise", "--accuracy", "Options.Folds", "--folds", "without Options.Journal", "with --no-journal", "without Options.Resume", "without --resume", "Options.State", "--state", "Options.Again", "--again",
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
	width, colour := uint(0), obeysEscapes(w) // 0: what is no terminal gets whole lines, to be searched
	if isTerminal(w) {
		width = terminalWidth(w)
	}
	for _, d := range found.Diagnostics {
		located, sources, first := *d, map[string]*hcl.File(nil), 1
		located.Detail = flagNames.Replace(d.Detail)
		// The writer shows the line; editors and people without colour want the
		// column too.
		if at := d.Subject; at != nil {
			located.Summary = fmt.Sprintf("%s at %s:%d:%d", d.Summary, at.Filename, at.Start.Line, at.Start.Column)
			sources, first = excerpt(&located, found.Sources[at.Filename])
		}
		var text strings.Builder
		if err := hcl.NewDiagnosticTextWriter(&text, sources, width, colour).WriteDiagnostic(&located); err != nil {
			continue // a Builder returns no errors
		}
		fmt.Fprint(w, renumber(text.String(), first)) // nowhere is left to report a broken standard error
	}
}

// maxSnippet is how many bytes of a file are printed with a diagnostic.
const maxSnippet = 4000

// excerpt returns the source of a diagnostic with nothing but the lines that are printed, and
// the number of the first of them, and moves the diagnostic's places there: the writer
// reads a source from its beginning, again for each diagnostic, which takes seconds for a hundred
// of them. Lines that are too long to print are left out, and so are the places.
func excerpt(d *hcl.Diagnostic, file *hcl.File) (sources map[string]*hcl.File, line int) {
	if file == nil {
		return nil, 1
	}
	about := *d.Subject
	if d.Context != nil {
		about = hcl.RangeOver(about, *d.Context)
	}
	start, end := min(about.Start.Byte, len(file.Bytes)), min(about.End.Byte, len(file.Bytes))
	first, last := bytes.LastIndexByte(file.Bytes[:start], '\n')+1, len(file.Bytes)
	if n := bytes.IndexByte(file.Bytes[end:], '\n'); n >= 0 {
		last = end + n
	}
	if last-first > maxSnippet {
		d.Subject, d.Context = nil, nil
		return nil, 1
	}
	within := place{offset: d.Subject.Start.Byte}
	within.names, _ = file.Nav.(contexts)
	moved := func(r *hcl.Range) *hcl.Range {
		if r == nil {
			return nil
		}
		m := *r
		m.Start.Byte, m.End.Byte = m.Start.Byte-first, m.End.Byte-first
		return &m
	}
	d.Subject, d.Context = moved(d.Subject), moved(d.Context)
	return map[string]*hcl.File{d.Subject.Filename: {Bytes: file.Bytes[first:last], Nav: within}}, about.Start.Line
}

// renumber gives the lines of an excerpt, which the writer counts from 1, their own
// numbers.
func renumber(text string, first int) string {
	var b strings.Builder
	for n := 1; first > 1; n++ {
		head, rest, found := strings.Cut(text, fmt.Sprintf("\n%4d: ", n))
		if !found {
			break
		}
		fmt.Fprintf(&b, "%s\n%4d: ", head, first+n-1)
		text = rest
	}
	return b.String() + text
}

// contexts is what the Nav of a source can say: the block that a byte stands in.
type contexts interface{ ContextString(offset int) string }

// place is the Nav of an excerpt.
type place struct {
	names  contexts // of the whole source; nil: it says nothing
	offset int      // in there
}

// ContextString implements contexts.
func (p place) ContextString(int) string {
	if p.names == nil {
		return ""
	}
	return p.names.ContextString(p.offset)
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
