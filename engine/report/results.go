package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/run"
)

// Results writes results one by one.
type Results interface {
	Write(run.Result) error
	// Flush hands everything written so far on. A table is complete with it.
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

// NewResults returns a writer of the given format.
func NewResults(format string, w io.Writer) (Results, error) {
	buffered := bufio.NewWriterSize(w, 64<<10)
	switch format {
	case JSONL:
		enc := json.NewEncoder(buffered)
		enc.SetEscapeHTML(false)
		return &jsonl{buffered, enc}, nil
	case TSV:
		return &tsv{Writer: buffered}, nil
	case Table:
		return &table{w: buffered}, nil
	}
	return nil, fmt.Errorf("unknown format %q: use jsonl, tsv or table", format)
}

type jsonl struct {
	*bufio.Writer
	enc *json.Encoder
}

func (j *jsonl) Write(r run.Result) error { return j.enc.Encode(result.Of(r, nil)) }

func (j *jsonl) Streams() bool { return true }
func (t *tsv) Streams() bool   { return true }

// tsv writes a line per result: its fields are as Escape has them.
type tsv struct {
	*bufio.Writer
	started bool
}

func (t *tsv) Write(r run.Result) error {
	if !t.started {
		t.started = true
		if _, err := t.WriteString("id\ttext\tanswer\tagreement\tflagged\terror\tcitations\tcandidates\tmissing\n"); err != nil {
			return err
		}
	}
	answer, failure := r.Answer, ""
	if r.Failure != nil {
		answer, failure = "", fmt.Sprintf("line %d: %v", r.Line, r.Failure)
	}
	fields := []string{
		r.ID, r.Text, answer,
		strconv.FormatFloat(r.Agreement, 'f', 4, 64), strconv.FormatBool(r.Flagged), failure, cited(r.Citations), found(r),
		strings.Join(r.Without(), "; "),
	}
	for i := range fields {
		fields[i] = Escape(fields[i])
	}
	_, err := t.WriteString(strings.Join(fields, "\t") + "\n")
	return err
}
