package review

import (
	"cmp"
	"slices"

	"github.com/racflow/racflow/engine/doctor"
	"github.com/racflow/racflow/engine/reviewed"
)

// Case is one thing to decide: a text of a run's input, or a row of a knowledge.
type Case struct {
	ID   string `json:"id"` // set by NewQueue; the same in every review of the same text or row
	Text string `json:"text"`
	// Items are the ids of the run's items that have this text, but for case and spaces, in the
	// order of the input. The first one is looked at.
	Items []string `json:"items,omitempty"`
	// Row is the id of the row of a knowledge that a decision changes or drops; empty: the case is
	// about items.
	Row  string `json:"row,omitempty"`
	File string `json:"file,omitempty"` // in which the row stands
	Line int    `json:"line"`           // in the input, or in File

	Why []string `json:"why"` // why a person should decide: sentences without an end

	Answer     string  `json:"answer,omitempty"` // of the run, or the label of the row
	Expected   string  `json:"expected,omitempty"`
	Confidence float64 `json:"confidence,omitempty"` // as result.Result has it
	Agreement  float64 `json:"agreement,omitempty"`
	// Suggestions are the labels to choose from, the likeliest first.
	Suggestions []string `json:"suggestions"`
	Drop        bool     `json:"drop,omitempty"` // it is suggested to drop the row

	doubt float64 // from 0 to 1
	order int     // among those of the same doubt
}

// idOf names the case that a decision about a text or a row belongs to.
func idOf(text, row string) string { return reviewed.ID(doctor.Normal(text), row) }

// sort puts the most doubtful cases first.
func sort(cases []Case) {
	slices.SortStableFunc(cases, func(a, b Case) int {
		return cmp.Or(cmp.Compare(b.doubt, a.doubt), cmp.Compare(a.order, b.order))
	})
}

// suggest adds labels that are not among a case's suggestions yet.
func (c *Case) suggest(labels ...string) {
	for _, label := range labels {
		if label != "" && !slices.Contains(c.Suggestions, label) {
			c.Suggestions = append(c.Suggestions, label)
		}
	}
}
