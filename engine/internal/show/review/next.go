package review

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/engine/internal/measure/doctor"
	"github.com/racflow/racflow/engine/internal/show/explain"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/terminal"
)

// maxLessons limits the texts of a run that are compared, to the most doubtful ones. All pairs are
// compared, which takes seconds.
const maxLessons = 4000

// choice holds the texts of a run that teach most.
type choice struct {
	picks []picked
	rank  map[int]int // positions in picks by line of the input
}

// choose picks n texts of a run. It leaves out texts that people have decided about, texts of the
// knowledge, and near copies of these.
func choose(ctx context.Context, run *explain.Run, place Place, n int) (*choice, error) {
	rows, _ := reviewed.Read(place.Path, run.Manifest().LabelForm) // Decisions reports lines that cannot be read
	decided := reviewed.Of(rows)
	var items []*explain.Brief
	var since []string // texts that people decided about since the run
	seen := map[string]bool{}
	for b, err := range run.Briefs(ctx) {
		if err != nil {
			return nil, err
		}
		text := source.Normal(b.Text)
		if !answered(b) || b.Decided != nil || seen[text] {
			continue
		}
		seen[text] = true
		if _, known := decided[text]; known {
			since = append(since, b.Text)
		} else {
			items = append(items, b)
		}
	}
	slices.SortStableFunc(items, func(a, b *explain.Brief) int { return cmp.Compare(doubtOf(b), doubtOf(a)) })
	items = items[:min(len(items), maxLessons)]
	var texts []string
	for _, b := range items {
		texts = append(texts, b.Text)
	}
	texts = append(texts, since...)
	all, err := lessons(ctx, run, place.Knowledge, texts)
	if err != nil {
		return nil, fmt.Errorf("texts cannot be compared with those of the knowledge as the run searched it: %w; racflow run answers anew", err)
	}
	for i, b := range items {
		all[i].doubt = doubtOf(b)
	}
	c := &choice{rank: map[int]int{}}
	if c.picks, err = pick(ctx, all, len(since), n); err != nil {
		return nil, err
	}
	for i, p := range c.picks {
		c.rank[items[p.at].Line] = i
	}
	return c, nil
}

// lessons compares texts with each other and with the knowledge.
func lessons(ctx context.Context, run *explain.Run, knowledge string, texts []string) ([]lesson, error) {
	vectors, entries, err := run.Nearest(ctx, knowledge, texts)
	if err != nil {
		return nil, err
	}
	all := make([]lesson, len(texts))
	normal := make([]string, 2*len(texts))
	for i, text := range texts {
		all[i].vector = unit(vectors[i])
		if e := entries[i]; e.ID != "" {
			all[i].covered = standing(e.Dense)
		}
		normal[i], normal[len(texts)+i] = source.Normal(text), source.Normal(entries[i].Text)
	}
	pairs, err := doctor.NearPairs(ctx, normal, func(a, b int) bool { return b < len(texts) || b-len(texts) == a })
	for _, p := range pairs {
		if p.B >= len(texts) {
			all[p.A].closed = true
			continue
		}
		all[p.A].near, all[p.B].near = append(all[p.A].near, p.B), append(all[p.B].near, p.A)
	}
	return all, err
}

func (c *choice) has(b *explain.Brief) bool {
	_, ok := c.rank[b.Line]
	return ok
}

// order sorts the cases of a choice by its ranking, and adds why they were picked.
func (c *choice) order(cases []Case) {
	if c == nil {
		return
	}
	for i := range cases {
		of := &cases[i]
		rank := c.rank[of.Line]
		of.doubt, of.order = 1, rank
		why := "no labelled text is close to it"
		if n := c.picks[rank].covers; n > 0 {
			why = "it speaks for " + terminal.Plural(n, "other text") + ": no labelled text is as close to them"
		}
		of.Why = append([]string{why}, of.Why...)
	}
}
