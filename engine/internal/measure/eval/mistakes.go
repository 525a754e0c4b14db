package eval

import (
	"cmp"
	"slices"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// Confused counts the items that got one wrong label instead of the right one.
type Confused struct {
	Expected string `json:"expected"`
	Answered string `json:"answered"` // empty: no acceptable answer
	Items    int    `json:"items"`
}

// Mistake is an item without the right answer.
type Mistake struct {
	Line       int         `json:"line"` // in the input
	ID         string      `json:"id"`
	Text       string      `json:"text"`
	Expected   string      `json:"expected"`
	Answer     string      `json:"answer"`               // empty: none; see Reason or Error
	Confidence float64     `json:"confidence,omitempty"` // 0: the election does not estimate it
	Agreement  float64     `json:"agreement"`
	Flagged    bool        `json:"flagged"`
	Reason     string      `json:"reason,omitempty"`
	Error      string      `json:"error,omitempty"`
	Neighbours []Neighbour `json:"neighbours,omitempty"` // with the answer as label, best first; at most maxNeighbours
}

// Neighbour is a candidate of an item.
type Neighbour struct {
	ID    string  `json:"id"`
	Label string  `json:"label"`
	Score float64 `json:"score"`
	Text  string  `json:"text"` // its beginning
}

const (
	maxNeighbours    = 5
	maxNeighbourText = 200 // runes
)

// Mistakes collects the mistakes that the pipeline was surest of.
type Mistakes struct {
	most    int
	counter *Counter // says which answers are right
	worst   []Mistake
}

// NewMistakes returns an empty collection that keeps at most the given number of mistakes. The
// labels are the knowledge's.
func NewMistakes(most int, labels ...string) *Mistakes {
	return &Mistakes{most: most, counter: NewCounter(labels...)}
}

// Add considers one result. Neighbours are the result's candidates, so they have texts only if the
// run keeps lists.
func (m *Mistakes) Add(r outcome.Result) {
	if m.most == 0 || !Scored(r) || m.counter.Right(r) {
		return
	}
	one := Mistake{
		Line: r.Line, ID: r.ID, Text: r.Text, Expected: r.Expected, Flagged: r.Flagged, Reason: r.Reason,
	}
	if r.Failure != nil {
		one.Error = r.Failure.Error()
	} else if one.Answer = r.Answer; r.Answer != "" {
		one.Confidence, one.Agreement = r.Confidence, r.Agreement
		one.Neighbours = speakingFor(r.Answer, r.Candidates)
	}
	// Equally sure mistakes stay in the order of the input.
	at, _ := slices.BinarySearchFunc(m.worst, one, func(a, b Mistake) int {
		if c := cmp.Compare(b.sureness(), a.sureness()); c != 0 {
			return c
		}
		return -1
	})
	if at < m.most {
		m.worst = slices.Insert(m.worst[:min(len(m.worst), m.most-1)], at, one)
	}
}

// Report returns the mistakes, most confident first.
func (m *Mistakes) Report() []Mistake { return m.worst }

func (m Mistake) sureness() float64 { return cmp.Or(m.Confidence, m.Agreement) }

// speakingFor returns the candidates that have a label, best first.
func speakingFor(label string, candidates []sdk.Candidate) (all []Neighbour) {
	for _, c := range candidates {
		if c.Label != label {
			continue
		}
		text := []rune(c.Text)
		if len(text) > maxNeighbourText {
			text = append(text[:maxNeighbourText-1:maxNeighbourText-1], '…')
		}
		if all = append(all, Neighbour{c.ID, c.Label, float64(c.Score), string(text)}); len(all) == maxNeighbours {
			break
		}
	}
	return all
}

// confusions returns the counted pairs, most frequent first.
func confusions(counted map[Confused]int) []Confused {
	all := make([]Confused, 0, len(counted))
	for pair, n := range counted {
		pair.Items = n
		all = append(all, pair)
	}
	slices.SortFunc(all, func(a, b Confused) int {
		return cmp.Or(cmp.Compare(b.Items, a.Items), cmp.Compare(a.Expected, b.Expected), cmp.Compare(a.Answered, b.Answered))
	})
	return all
}
