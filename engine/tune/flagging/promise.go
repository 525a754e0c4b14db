package flagging

import (
	"crypto/sha256"

	"github.com/racflow/racflow/engine/eval"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/promise"
)

// Found is the threshold of a flag rule and what it promises.
type Found struct {
	promise.Promise
	Rule  Rule
	Split bool // other values were found on the rest of the rows
}

// Reserved reports whether a row serves the promise where the rows are split.
func Reserved(text string) bool { return sha256.Sum256([]byte(text))[0]%2 == 0 }

// Promise finds the threshold on rows with labels, by what became of them with all other
// values as they will be. Rows that failed say nothing about answers and do not count;
// neither do those that had to be answered without one of the voters.
func (r Rule) Promise(results []outcome.Result, labels []string, g promise.Goal) (Found, error) {
	counter := eval.NewCounter(labels...)
	items := make([]promise.Item, 0, len(results))
	for _, o := range results {
		if o.Failure != nil || len(o.Missing) > 0 {
			continue
		}
		items = append(items, promise.Item{
			Text: o.Text, Confidence: r.of(o), Answered: o.Answer != "", Right: counter.Right(o), Outside: counter.Outside(o),
		})
	}
	p, err := promise.Find(items, g)
	return Found{Promise: p, Rule: r}, err
}

// Threshold is the value of the rule's variable.
func (f Found) Threshold() float64 { return f.Promise.Threshold(f.Rule.inclusive) }
