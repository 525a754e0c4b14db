package outcome

import "slices"

// Reason is why items are without an answer.
type Reason struct {
	Text    string
	Items   int
	Example string // an answer that was not accepted for it; empty: there is none
}

// maxReasons bounds how many reasons are counted: plugins may write what a model said
// into them.
const maxReasons = 1000

// countReasons counts the reasons of an item without an answer, each once: those of
// its votes, and where none of these has one, the election's.
func (t *Totals) countReasons(r Result) {
	var seen []string
	note := func(text, example string) {
		if text == "" || slices.Contains(seen, text) {
			return
		}
		seen = append(seen, text)
		at, ok := t.reasons[text]
		if !ok {
			if len(t.Reasons) == maxReasons {
				return
			}
			if t.reasons == nil {
				t.reasons = map[string]int{}
			}
			at = len(t.Reasons)
			t.reasons[text] = at
			t.Reasons = append(t.Reasons, Reason{Text: text, Example: example})
		}
		t.Reasons[at].Items++
	}
	for i := range r.Votes {
		if v := &r.Votes[i]; !v.Accepted {
			note(v.Reason, v.Answer)
		}
	}
	if len(seen) == 0 {
		note(r.Reason, "")
	}
}
