package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/sdk"
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

type resultJSON struct {
	ID         string          `json:"id"`
	Text       string          `json:"text"`
	Expected   string          `json:"expected,omitempty"`
	Answer     *string         `json:"answer"` // null: no acceptable answer
	Agreement  float64         `json:"agreement"`
	Flagged    bool            `json:"flagged"`
	Reason     string          `json:"reason,omitempty"`
	Missing    []string        `json:"missing,omitempty"` // voters that had to stop: the answer is that of the others
	Citations  []citationJSON  `json:"citations,omitempty"`
	Votes      []voteJSON      `json:"votes"`
	Candidates []candidateJSON `json:"candidates,omitempty"` // of a pipeline without an election
	Error      *errorJSON      `json:"error,omitempty"`
}

type voteJSON struct {
	Voter    string  `json:"voter"`
	Answer   string  `json:"answer"`
	Weight   float64 `json:"weight"`
	Accepted bool    `json:"accepted"`
	Reason   string  `json:"reason,omitempty"` // why it is not accepted
}

type candidateJSON struct {
	ID      string   `json:"id"`
	Text    string   `json:"text"`
	Label   string   `json:"label,omitempty"`
	Score   float64  `json:"score"`
	Dense   *float64 `json:"dense,omitempty"`
	Lexical *float64 `json:"lexical,omitempty"`
	Meta    sdk.Meta `json:"meta,omitempty"`
}

// citationJSON is what an answer cites: a passage's number and id, and where it is
// from.
type citationJSON struct {
	Number    int    `json:"number"`
	ID        string `json:"id"`
	Path      any    `json:"path,omitempty"`
	Title     any    `json:"title,omitempty"`
	Headings  any    `json:"headings,omitempty"`
	FirstLine any    `json:"first_line,omitempty"`
	LastLine  any    `json:"last_line,omitempty"`
	FirstPage any    `json:"first_page,omitempty"`
	LastPage  any    `json:"last_page,omitempty"`
}

type errorJSON struct {
	Line    int    `json:"line"`
	Stage   string `json:"stage,omitempty"`
	Message string `json:"message"`
}

func (j *jsonl) Write(r run.Result) error {
	out := resultJSON{
		ID: r.ID, Text: strings.ToValidUTF8(r.Text, "\uFFFD"), Expected: r.Expected,
		Agreement: round(r.Agreement), Flagged: r.Flagged, Reason: r.Reason, Missing: r.Without(), Votes: []voteJSON{},
	}
	for _, v := range run.Heaviest(r.Votes) {
		out.Votes = append(out.Votes, voteJSON{v.Voter, v.Answer, round(v.Weight), v.Accepted, v.Reason})
	}
	if r.Failure != nil {
		out.Error = &errorJSON{r.Line, r.Failure.Stage, r.Failure.Err.Error()}
	} else if r.Answer != "" {
		out.Answer = &r.Answer
	}
	for _, c := range r.Citations {
		m := c.Passage.Meta
		out.Citations = append(out.Citations, citationJSON{
			c.Number, c.Passage.ID, m["path"], m["title"], m["headings"],
			m["first_line"], m["last_line"], m["first_page"], m["last_page"],
		})
	}
	if r.RetrievalOnly {
		for _, c := range r.Candidates {
			out.Candidates = append(out.Candidates, candidateJSON{
				ID: c.ID, Text: c.Text, Label: c.Label, Meta: c.Meta,
				Score: round(float64(c.Score)), Dense: scored(c.Dense), Lexical: scored(c.Lexical),
			})
		}
	}
	return j.enc.Encode(out)
}

func (j *jsonl) Streams() bool { return true }
func (t *tsv) Streams() bool   { return true }

func scored(score float32) *float64 {
	if math.IsNaN(float64(score)) {
		return nil
	}
	v := round(float64(score))
	return &v
}

// round keeps six digits after the point: what lies beyond is noise of the
// order of addition.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }

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
