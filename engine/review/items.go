package review

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/doctor"
	"github.com/racflow/racflow/engine/explain"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
)

// OfRun makes a case of each text of a run's items that is flagged or has no answer, also where its item
// failed. Those come first that have no answer, then those with the least confidence, or with the
// least agreement where the election estimates no confidence. keep is given each case's first
// item, with what made its answer; an error of it ends the work.
func OfRun(ctx context.Context, run *explain.Run, keep func(Case, *explain.Item) error) ([]Case, error) {
	if is := run.Manifest().Answers; is != manifest.Labels && is != "" {
		return nil, fmt.Errorf("run %s answers with %s, and only labels can be reviewed", run.ID(), is)
	}
	var cases []Case
	at := map[string]int{} // by normal text, from 1
	more := func(b *explain.Brief) bool {
		n := at[doctor.Normal(b.Text)]
		if n > 0 {
			cases[n-1].Items = append(cases[n-1].Items, b.ID)
		}
		return n > 0
	}
	var later []*explain.Brief // of a text that is doubtful only further below
	wanted := func(b *explain.Brief) bool {
		if b.Text == "" || b.Status == journal.Unreached {
			return false
		}
		if !doubtful(b) {
			if !more(b) {
				later = append(later, b)
			}
			return false
		}
		return true
	}
	for item, err := range run.Items(ctx, wanted) {
		if err != nil {
			return nil, err
		}
		if more(&item.Brief) {
			continue
		}
		c := caseOf(item)
		cases = append(cases, c)
		at[doctor.Normal(c.Text)] = len(cases)
		if err := keep(c, item); err != nil {
			return nil, err
		}
	}
	for _, b := range later {
		more(b)
	}
	return cases, nil
}

func doubtful(b *explain.Brief) bool { return b.Flagged || b.Error != nil || b.Answer == "" }

// maxVoted is how many suggestions come from voters.
const maxVoted = 6

func caseOf(item *explain.Item) Case {
	c := Case{
		ID: idOf(item.Text, ""), Text: item.Text, Items: []string{item.ID}, Line: item.Line, Answer: string(item.Answer), Expected: item.Expected,
		Confidence: item.Confidence, Agreement: item.Agreement, Suggestions: []string{}, order: item.Line,
	}
	switch {
	case item.Error != nil:
		c.Why = append(c.Why, "it failed: "+item.Error.Error())
		c.doubt = 1
	case item.Answer == "":
		c.Why = append(c.Why, "it has no answer: "+cmp.Or(item.Reason, "no voter gave an acceptable one"))
		c.doubt = 1
	default:
		c.Why = append(c.Why, "it is flagged")
		c.doubt = 1 - cmp.Or(c.Confidence, c.Agreement)
	}
	c.suggest(string(item.Answer), item.RunnerUp)
	weights := map[string]float64{}
	var labels []string
	for _, v := range item.Votes {
		if weights[v.Answer] == 0 && v.Accepted {
			labels = append(labels, v.Answer)
		}
		if v.Accepted {
			weights[v.Answer] += v.Weight
		}
	}
	slices.SortStableFunc(labels, func(a, b string) int { return cmp.Compare(weights[b], weights[a]) })
	c.suggest(labels...)
	c.Suggestions = c.Suggestions[:min(len(c.Suggestions), maxVoted)]
	c.suggest(item.Expected)
	return c
}
