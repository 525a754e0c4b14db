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
	Texts   []Text // that were dropped, the frequent ones among them; at most maxTexts

	positions map[Text]int // in Texts, by what it is without its count
}

// Text is an answer that was dropped.
type Text struct {
	Answer string
	Reason string // why there is no answer, where it is empty
	Count  int    // how often it came; where there are too many texts to count all, at least so often

	missed int // how often it may have come before it was counted
}

// A model may write something else each time, and at any length.
const (
	maxTexts = 256
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
	switch {
	case ok:
	case len(d.Texts) < maxTexts:
		at = len(d.Texts)
		d.Texts = append(d.Texts, text)
	default:
		at = d.rarest()
		rare := d.Texts[at]
		text.missed = rare.Count + rare.missed
		delete(d.positions, Text{Answer: rare.Answer, Reason: rare.Reason})
		d.Texts[at] = text
		text.missed = 0
	}
	d.positions[text] = at
	d.Texts[at].Count++
}

// rarest is the text that gives way to a new one: the Space-Saving algorithm, by which every
// text that is more frequent than one in maxTexts is counted (Metwally, Agrawal, El Abbadi,
// "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005).
func (d *Dropped) rarest() int {
	at := 0
	for i := range d.Texts {
		if d.Texts[i].Count+d.Texts[i].missed < d.Texts[at].Count+d.Texts[at].missed {
			at = i
		}
	}
	return at
}

// cut bounds a text.
func cut(text string) string { return cutTo(text, maxText) }

func cutTo(text string, at int) string {
	if len(text) <= at {
		return text
	}
	for !utf8.RuneStart(text[at]) {
		at--
	}
	return text[:at] + "…"
}
