package run

import "unicode/utf8"

// Dropped are the answers of a voter that do not count.
type Dropped struct {
	Voter   string // the block's name: "llm"
	Answers int    // that it gave
	Dropped int    // of them: not accepted
	// Texts are those that were dropped, as they first came up: the first maxTexts of
	// them, if they are more.
	Texts []Text

	spread bool           // it hands in distributions, whose labels are no answers
	places map[string]int // among Texts
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
	maxText  = 4096 // bytes of one; what is longer is cut, and ends with an ellipsis
)

// Dropped returns the voters of whose answers more than 5 % do not count, in file
// order. Distributions are not answers.
func (t *Totals) Dropped() []Dropped {
	var all []Dropped
	for _, d := range t.voters {
		if !d.spread && 20*d.Dropped > d.Answers {
			all = append(all, *d)
		}
	}
	return all
}

// answers counts those of an item's voters. Votes of a voter stand together.
func (t *Totals) answers(r Result) {
	for _, name := range r.spread {
		d := t.voter(name)
		d.spread, d.Texts, d.places = true, nil, nil
	}
	var d *Dropped
	for i := range r.Votes {
		v := &r.Votes[i]
		if d == nil || d.Voter != v.Voter {
			d = t.voter(v.Voter)
		}
		if !d.spread {
			d.add(v)
		}
	}
}

func (t *Totals) voter(name string) *Dropped {
	for _, d := range t.voters {
		if d.Voter == name {
			return d
		}
	}
	d := &Dropped{Voter: name}
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
	key := text.Answer + "\x00" + text.Reason
	at, ok := d.places[key]
	if !ok {
		if len(d.Texts) == maxTexts {
			return
		}
		if d.places == nil {
			d.places = map[string]int{}
		}
		at = len(d.Texts)
		d.places[key] = at
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
	return text[:at] + "…" // another string
}
