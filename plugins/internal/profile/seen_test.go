package profile

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

// A reply counts with the usage that was charged, including answers that thoughts left no room for. Without usage,
// the lengths of its texts count.
func TestSeenAdds(t *testing.T) {
	sent := dialect.Request{Prompt: strings.Repeat("word ", 40), MaxTokens: 20} // 200 bytes
	choice := dialect.Choice{Text: "label"}
	used := sdk.Usage{InputTokens: 50, CachedTokens: 30, OutputTokens: 12}
	for name, test := range map[string]struct {
		reply dialect.Reply
		want  Seen
	}{
		"two answers": {dialect.Reply{Choices: []dialect.Choice{choice, choice}, Usage: used},
			Seen{Requests: 1, Bytes: 200, Tokens: 50, Cached: 30, Answers: 2, Written: 12, Squares: 2 * 6 * 6}},
		"thoughts": {dialect.Reply{Choices: []dialect.Choice{choice}, Usage: used, ThoughtTokens: 9},
			Seen{Requests: 1, Bytes: 200, Tokens: 50, Cached: 30, Answers: 1, Thoughts: 9, Written: 12, Squares: 144}},
		"nothing but thoughts": {dialect.Reply{Choices: []dialect.Choice{{Finish: "length"}}, Usage: used},
			Seen{Requests: 1, Bytes: 200, Tokens: 50, Cached: 30, Written: 12, Squares: 144}},
		"it does not say": {dialect.Reply{Choices: []dialect.Choice{choice}}, Seen{Requests: 1, Answers: 1, Written: 3, Squares: 9}},
		"no answer":       {dialect.Reply{Usage: used}, Seen{}},
	} {
		if got := (Seen{}).add(Profile{}, sent, test.reply); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
	old := Seen{Requests: enough, Written: 1000, Answers: 500}
	if got := old.add(Profile{}, sent, dialect.Reply{Choices: []dialect.Choice{choice}, Usage: used}); got.Requests != enough/2+1 || got.Written != 512 || got.Answers != 251 {
		t.Errorf("earlier requests count as much as before: %+v", got)
	}
}

// The range is narrower if more requests were seen, or if their answers vary less.
func TestOutput(t *testing.T) {
	seen := func(requests int, each, squares float64) Seen {
		return Seen{Requests: requests, Answers: requests, Written: int(float64(requests) * each), Squares: float64(requests) * squares}
	}
	width := func(thinks Finding, s Seen) float64 {
		o := Profile{Thinks: thinks, Asked: map[string]Seen{"a": s}}.Output(dialect.Request{About: "a"}, 7)
		if o.Mean != 100 || o.Low >= o.Mean != (o.High <= o.Mean) {
			t.Errorf("%+v of %+v", o, s)
		}
		return o.High / o.Low
	}
	few, many, varied := width(Yes, seen(3, 100, 100*100)), width(Yes, seen(300, 100, 100*100)), width(Yes, seen(300, 100, 3*100*100))
	if few < 1.5 || many > 1.05 || varied < 1.2*many || few > 4 {
		t.Errorf("few %.2f, many %.2f, varied %.2f", few, many, varied)
	}
	if got := width(No, seen(3, 100, 100*100)); got != 1 {
		t.Errorf("answers that are alike, without thoughts: %.2f", got)
	}
}

// Statistics are stored often enough, and not too often.
func TestDue(t *testing.T) {
	due := 0
	for n := range 1024 {
		if (Seen{Requests: n + 1}).due() {
			due++
		}
	}
	if due < 50 || due > 100 {
		t.Errorf("of 1024 requests %d are due", due)
	}
}
