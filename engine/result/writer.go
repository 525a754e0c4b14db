package result

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/terminal"
)

// Writer writes results one by one.
type Writer interface {
	Write(outcome.Result) error
	// Flush hands on what was written so far. A table is complete with it.
	Flush() error
	// Streams reports whether Flush may be called more than once.
	Streams() bool
}

// Formats of results.
const (
	JSONL = "jsonl"
	TSV   = "tsv"
	Table = "table"
)

// NewWriter returns a writer of a format. A table shows the first results; more is
// what it says of where the others are.
func NewWriter(format string, w io.Writer, more string) (Writer, error) {
	buffered := bufio.NewWriterSize(w, 64<<10)
	switch format {
	case JSONL:
		enc := json.NewEncoder(buffered)
		enc.SetEscapeHTML(false)
		return &stream{buffered, func(r outcome.Result) error { return enc.Encode(Of(r, nil)) }}, nil
	case TSV:
		head := strings.Join(columns, "\t") + "\n"
		return &stream{buffered, func(r outcome.Result) error {
			_, err := buffered.WriteString(head + row(r))
			head = ""
			return err
		}}, nil
	case Table:
		return &table{w: buffered, hint: more}, nil
	}
	return nil, fmt.Errorf("unknown format %q: use jsonl, tsv or table", format)
}

// stream writes each result by itself.
type stream struct {
	*bufio.Writer
	write func(outcome.Result) error
}

func (s *stream) Write(r outcome.Result) error { return s.write(r) }
func (s *stream) Streams() bool                { return true }

// columns are those of TSV.
var columns = []string{"id", "text", "answer", "agreement", "flagged", "error", "citations", "candidates", "missing", "confidence"}

// row is a result as a line of TSV; terminal.Escape says how texts are written.
func row(r outcome.Result) string {
	answer, failure := r.Answer, ""
	if r.Failure != nil {
		answer, failure = "", fmt.Sprintf("line %d: %v", r.Line, r.Failure)
	}
	var found []string // of a pipeline without an election
	if r.RetrievalOnly {
		for _, c := range r.Candidates {
			found = append(found, c.ID)
		}
	}
	confidence := "" // the election does not estimate it
	if r.Confidence > 0 {
		confidence = strconv.FormatFloat(r.Confidence, 'f', 4, 64)
	}
	fields := []string{
		r.ID, r.Text, answer, strconv.FormatFloat(r.Agreement, 'f', 4, 64), strconv.FormatBool(r.Flagged),
		failure, cited(r.Citations), strings.Join(found, "; "), strings.Join(r.Without(), "; "), confidence,
	}
	for i := range fields {
		fields[i] = terminal.Escape(fields[i])
	}
	return strings.Join(fields, "\t") + "\n"
}
