package run

import "slices"

// Skipped is a stage that items went on without: it has on_error = "skip", or had
// to stop.
type Skipped struct {
	Stage string // as "sample.llm"
	Items int    // that went on without it
	First error  // why the first of the input did
}

// Reason is why items are without an answer.
type Reason struct {
	Text    string
	Items   int
	Example string // an answer that was not accepted for it; empty: there is none
}

// maxReasons bounds how many reasons are told apart: plugins may write what a
// model said into them.
const maxReasons = 1000

// count counts items that went on without a stage.
func count(all *[]Skipped, f *Failure, items int) {
	at := slices.IndexFunc(*all, func(s Skipped) bool { return s.Stage == f.Stage })
	if at < 0 {
		at = len(*all)
		*all = append(*all, Skipped{Stage: f.Stage, First: f.Err})
	}
	(*all)[at].Items += items
}

// undecided counts the reasons of an item without an answer, each once: those
// of its votes, and where none of these has one, the election's.
func (t *Totals) undecided(r Result) {
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
