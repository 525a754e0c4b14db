package eval

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

func found(dense, lexical float32, text string) sdk.Candidate {
	return sdk.Candidate{Text: text, Dense: dense, Lexical: lexical}
}

func TestTerms(t *testing.T) {
	among := []sdk.Candidate{found(0, 0, "open the port"), found(0, 0, "open a gate"), found(0, 0, "open it")}
	terms := QuestionTermsOf("How do I open ports?", "english", among)
	if terms.weights["port"] <= terms.weights["open"] || len(terms.weights) != 2 {
		t.Errorf("the weights are %v", terms.weights)
	}
	lines := []string{"open", "open", "of no use", "a port", "open"}
	if at := terms.Best(lines); at != 3 {
		t.Errorf("the best sentence is %q", lines[at])
	}
	if at := terms.Best(lines[2:3]); at != 0 {
		t.Errorf("of sentences without a term, number %d", at)
	}
	code := QuestionTermsOf("what is the maxOpen setting?", "code", among)
	for _, common := range []string{"what", "is", "the"} {
		if _, ok := code.weights[common]; ok {
			t.Errorf("%q counts in code", common)
		}
	}
	for _, test := range [][3]string{
		{"english", "Opening ports, open_port!", "[Opening] [ports], [open_port]!"},
		{"english", "", ""},
		{"code", "conn.maxOpen = 3", "conn.[maxOpen] = 3"},
		{"ngram", "港口是开放的", "港口是开放的"},
	} {
		if got := QuestionTermsOf("open ports maxOpen 港口", test[0], among).Mark(test[1], "[", "]"); got != test[2] {
			t.Errorf("%s: %q, want %q", test[0], got, test[2])
		}
	}
	if long := strings.Repeat("x", 9); QuestionTermsOf("", "unknown", nil).Mark(long, "[", "]") != long {
		t.Error("a question without words marks some")
	}
}
