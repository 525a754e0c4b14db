package doctor

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // answers or figures are wrong for it
	Warning Severity = "warning" // they probably are
	Info    Severity = "info"    // it may be meant
)

var severities = []Severity{Error, Warning, Info}

// Place is a row that a finding is about.
type Place struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"` // 0: a document
	Text     string `json:"text"`           // its beginning
	Label    string `json:"label,omitempty"`
	Proposal string `json:"proposal,omitempty"` // the label that it may have instead
	Note     string `json:"note,omitempty"`     // what it has to do with the finding
	Entry    string `json:"entry,omitempty"`    // of a row of a knowledge: the id of its entry
}

// Finding is what one check found.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"` // a sentence with counts
	Advice   string   `json:"advice"`  // what to do
	Count    int      `json:"count"`   // of rows, or labels
	// Expected is the share of the rows whose label is expected to be wrong, by voters; 0: they were not asked.
	Expected float64 `json:"expected,omitempty"`
	Rows     []Place `json:"rows,omitempty"`
}

// Report is what a look found.
type Report struct {
	Findings []Finding `json:"findings"` // the most severe first
	Rows     int       `json:"rows"`     // of knowledge, or documents
	Items    int       `json:"items"`    // of the input
	Voted    int       `json:"voted"`    // rows of the knowledge whose labels voters were asked about
	Skipped  []string  `json:"skipped,omitempty"`
}

// Serious reports whether there is an Error.
func (r Report) Serious() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == Error })
}

func (r *Report) add(f Finding) { r.Findings = append(r.Findings, f) }

// sort puts the most severe findings first.
func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)), cmp.Compare(b.Count, a.Count))
	})
}

// many shows a number of things.
func many(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}
