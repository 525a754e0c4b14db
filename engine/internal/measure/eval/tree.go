package eval

import (
	"slices"

	"github.com/racflow/racflow/engine/internal/run/outcome"
)

// Tree measures answers that are nodes of a tree. Report.Accuracy is then the share of the items
// whose answer is the expected label or a node above it.
type Tree struct {
	// Leaves is the share of the items whose answer is the expected label itself.
	Leaves         float64  `json:"leaves"`
	LeavesInterval Interval `json:"leaves_interval"`
	Depth          float64  `json:"depth"`          // mean number of levels of the answers
	ExpectedDepth  float64  `json:"expected_depth"` // the same of the expected labels
	// Levels has an entry for each level, from the top down. It counts the items whose expected
	// label reaches that level.
	Levels []Level `json:"levels"`
	// F1 is the hierarchical F1. It compares the nodes on the paths down to the answers with the
	// nodes on the paths down to the expected labels ("Learning and Evaluation in the Presence of
	// Class Hierarchies", Kiritchenko et al. 2006).
	F1        float64 `json:"hierarchical_f1"`
	Precision float64 `json:"hierarchical_precision"`
	Recall    float64 `json:"hierarchical_recall"`
}

// Level is a level of a tree.
type Level struct {
	Items    int      `json:"items"`
	Answered int      `json:"answered"` // the answer reaches the level
	Right    int      `json:"right"`    // of Answered: right down to this level
	Accuracy float64  `json:"accuracy"` // Right of Items
	Interval Interval `json:"accuracy_interval"`
}

// nodes counts answers in a tree.
type nodes struct {
	items, leaves, answers     int
	levels                     []Level
	common, expected, answered int // nodes
}

func (n *nodes) add(r outcome.Result) {
	n.items++
	expected := r.Form.Path(r.Expected)
	var answered []string
	if r.Failure == nil && r.Answer != "" {
		answered = r.Form.Path(r.Answer)
		n.answers++
	}
	if slices.Equal(expected, answered) {
		n.leaves++
	}
	n.expected, n.answered = n.expected+len(expected), n.answered+len(answered)
	for i, node := range expected {
		if i == len(n.levels) {
			n.levels = append(n.levels, Level{})
		}
		l := &n.levels[i]
		l.Items++
		if i < len(answered) {
			l.Answered++
			if answered[i] == node {
				l.Right++
				n.common++
			}
		}
	}
}

func (n *nodes) report() *Tree {
	if n.items == 0 {
		return nil
	}
	t := &Tree{
		Leaves: share(n.leaves, n.items), LeavesInterval: Wilson(n.leaves, n.items), Levels: n.levels,
		Depth: share(n.answered, n.answers), ExpectedDepth: share(n.expected, n.items),
		F1: share(2*n.common, n.expected+n.answered), Precision: share(n.common, n.answered), Recall: share(n.common, n.expected),
	}
	for i, l := range t.Levels {
		t.Levels[i].Accuracy, t.Levels[i].Interval = share(l.Right, l.Items), Wilson(l.Right, l.Items)
	}
	return t
}
