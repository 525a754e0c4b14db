package eval

import (
	"math"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

func found(dense, lexical float32, text string) sdk.Candidate {
	return sdk.Candidate{Text: text, Dense: dense, Lexical: lexical}
}

func TestJudge(t *testing.T) {
	answer := found(.7, 9, "The gateway waits at most 10 seconds for a token.")
	other := found(.1, sdk.Unscored, "Fees are due in May.")
	for name, test := range map[string]struct {
		question, embedder string
		found              []sdk.Candidate
		unlikely           bool
		probability        float64
	}{
		"it is there, by its vector":       {"how long does the gateway wait?", "minilm", []sdk.Candidate{answer, other}, false, .758},
		"another embedder":                 {"how long does the gateway wait?", "openai", []sdk.Candidate{other, answer}, false, 0},
		"something else, by its vector":    {"who reigns Mongolia?", "minilm", []sdk.Candidate{other, other}, true, .026},
		"something else, another embedder": {"who reigns Mongolia?", "hashing", []sdk.Candidate{answer, other}, false, 0},
		"words alone were searched for":    {"how long does the gateway wait?", "minilm", []sdk.Candidate{found(sdk.Unscored, 3, answer.Text)}, false, 0},
		"no word tells passages apart":     {"what is it?", "minilm", []sdk.Candidate{answer}, false, 0},
		"nothing was searched for":         {"how long does the gateway wait?", "minilm", []sdk.Candidate{found(sdk.Unscored, sdk.Unscored, answer.Text)}, false, 0},
		"nothing was found":                {"how long does the gateway wait?", "minilm", nil, false, 0},
		"a word that the analyzer lacks":   {"宇宙", "hashing", []sdk.Candidate{other}, false, 0},
	} {
		j := QuestionTermsOf(test.question, "english", test.found).Judge(test.embedder, test.found)
		if j.Unlikely != test.unlikely {
			t.Errorf("%s: %+v", name, j)
		}
		if known := !math.IsNaN(j.Probability); known != (test.probability != 0) || known && math.Abs(j.Probability-test.probability) > .01 {
			t.Errorf("%s: the probability is %.3f, want %.3f", name, j.Probability, test.probability)
		}
	}
}

func TestTerms(t *testing.T) {
	among := []sdk.Candidate{found(0, 0, "open the port"), found(0, 0, "open a gate"), found(0, 0, "open it")}
	terms := QuestionTermsOf("How do I open ports?", "english", among)
	if terms.weights["port"] <= terms.weights["open"] || len(terms.weights) != 2 {
		t.Errorf("the weights are %v", terms.weights)
	}
	lines := []string{"open", "open", "of no use", "a port", "open"}
	if at := terms.Densest(lines, 2); at != 3 {
		t.Errorf("the densest lines begin with %q", lines[at])
	}
	if at := terms.Densest(lines[:1], 2); at != 0 {
		t.Errorf("of too few lines those from %d on", at)
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
