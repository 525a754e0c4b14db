package outcome

import (
	"slices"
	"unicode/utf8"
)

// Dropped are the answers of a voter that do not count.
type Dropped struct {
	Voter   string // the block's name: "llm"
	Answers int    // that it gave
	Dropped int    // of them: not accepted
	Texts   []Text // that were dropped, as they first came up: at most maxTexts

	positions map[Text]int // in Texts, by what it is without its count
}

// Text is an answer that was dropped.
type Text struct {
	Answer string
	Reason string // why there is no answer, where it is empty
	Count  int
}

// A model may write something else each time, and at any length.
const (
	maxTexts = 1000
	maxText  = 4096 // bytes of one; a longer one is cut, and ends with an ellipsis
)

// Dropped returns the voters of whose answers more than 5 % do not count, in file
// order.
func (t *Totals) Dropped() []Dropped {
	var all []Dropped
	for _, d := range t.voters {
		if 20*d.Dropped > d.Answers && !slices.Contains(t.Distributions, d.Voter) {
			all = append(all, *d)
		}
	}
	return all
}

// countDropped counts the answers of an item's voters, whose votes stand together.
func (t *Totals) countDropped(r Result) {
	var d *Dropped
	for i := range r.Votes {
		v := &r.Votes[i]
		if d == nil || d.Voter != v.Voter {
			d = t.voter(v.Voter)
		}
		d.add(v)
	}
}

func (t *Totals) voter(name string) *Dropped {
	for _, d := range t.voters {
		if d.Voter == name {
			return d
		}
	}
	d := &Dropped{Voter: name, positions: map[Text]int{}}
	t.voters = append(t.voters, d)
	return d
}

func (d *Dropped) add(v *Vote) {
	if d.Answers++; v.Accepted {
		return
	}
	d.Dropped++
	text := Text{Answer: cut(v.Answer)}
	if v.Answer == "" {
		text.Reason = cut(v.Reason)
	}
	at, ok := d.positions[text]
	if !ok {
		if len(d.Texts) == maxTexts {
			return
		}
		at = len(d.Texts)
		d.positions[text] = at
		d.Texts = append(d.Texts, text)
	}
	d.Texts[at].Count++
}

// cut bounds a text.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	at := maxText
	for !utf8.RuneStart(text[at]) {
		at--
	}
	return text[:at] + "…"
}
