package review

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
)

// Decision is a decision about a case.
type Decision struct {
	Label    string    `json:"label,omitempty"` // empty: the row is dropped
	Reviewer string    `json:"reviewer,omitempty"`
	At       time.Time `json:"at,omitzero"`
	Version  string    `json:"version"` // identifies this decision among the decisions about the case
}

func (d *Decision) what() string {
	if d.Label == "" {
		return "the row is dropped"
	}
	return strconv.Quote(d.Label)
}

func (d *Decision) who() string { return cmp.Or(d.Reviewer, "somebody") }

// Decisions returns the decisions now in the file, by the IDs of their cases. The errors list lines
// that are not decisions; these lines stay in the file.
func (q *Queue) Decisions() (map[string]*Decision, []error) {
	rows, errs := reviewed.Read(q.path, q.form)
	q.mu.Lock()
	q.learn(rows)
	q.mu.Unlock()
	all := map[string]*Decision{}
	for i := range rows {
		if id := idOf(rows[i].Text, rows[i].Replaces); q.about(id) {
			all[id] = decisionOf(&rows[i])
		}
	}
	return all, errs
}

func (q *Queue) about(id string) bool {
	_, ok := q.known[id]
	return ok
}

// find reads the decision about a case; nil: it has none.
func (q *Queue) find(c Case) (*reviewed.Row, error) {
	rows, errs := reviewed.Read(q.path, q.form)
	for _, err := range errs {
		if line := new(reviewed.LineError); !errors.As(err, &line) {
			return nil, fmt.Errorf("decisions cannot be read: %w", err)
		}
	}
	for i, r := range slices.Backward(rows) {
		if idOf(r.Text, r.Replaces) == c.ID {
			return &rows[i], nil
		}
	}
	return nil, nil
}

func decisionOf(r *reviewed.Row) *Decision {
	if r == nil {
		return nil
	}
	return &Decision{r.Label, r.Reviewer, r.ReviewedAt, version(r)}
}

// version returns a hash of a row; empty: there is no row.
func version(r *reviewed.Row) string {
	if r == nil {
		return ""
	}
	text, err := r.MarshalJSON()
	if err != nil {
		text = fmt.Append(nil, *r) // cannot happen: a row that was read always encodes
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
