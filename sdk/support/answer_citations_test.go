package support_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

func TestCitations(t *testing.T) {
	tests := []struct {
		name, text string
		want       []int
		stray      string
	}{
		{name: "none", text: "It is port 80."},
		{name: "one", text: "It is port 80 [1].", want: []int{1}},
		{name: "each once, as they come up", text: "a [3], b [1] and c [3].", want: []int{3, 1}},
		{name: "a list", text: "a [2, 5].", want: []int{2, 5}},
		{name: "other lists", text: "a [ 2;5 ] b [1,3].", want: []int{2, 5, 1, 3}},
		{name: "side by side", text: "a [1][3] [2]", want: []int{1, 3, 2}},
		{name: "from to", text: "a [1-3], b [4–5]", want: []int{1, 2, 3, 4, 5}},
		{name: "from to among others", text: "a [5, 1 - 3]", want: []int{5, 1, 2, 3}},
		{name: "backwards", text: "a [3-1]", want: []int{3, 1}},
		{name: "leading zero", text: "a [01]", want: []int{1}},
		{name: "at the start", text: "[2] says so", want: []int{2}},
		{name: "behind a full stop", text: "So.[2]", want: []int{2}},
		{name: "directly behind a word", text: "on port 8080[1].", want: []int{1}},
		{name: "directly behind a word without spaces", text: "端口是八十[1]。", want: []int{1}},
		{name: "over lines", text: "a\n\n- b [1]\n    - c [2]\n", want: []int{1, 2}},

		{name: "too high", text: "a [1] b [6]", want: []int{1}, stray: "6"},
		{name: "zero", text: "a [0]", stray: "0"},
		{name: "one of a list", text: "a [2, 17, 18]", want: []int{2}, stray: "17"},
		{name: "a far end", text: "a [2-1000000000]", want: []int{2}, stray: "1000000000"},
		{name: "a very long number", text: "a [" + strings.Repeat("9", 40) + "]", stray: strings.Repeat("9", 12)},
		{name: "side by side, one too high", text: "a [1][9]", want: []int{1}, stray: "9"},

		{name: "an index", text: "a[0], b_[9], f()[7]"},
		{name: "indexes of an index", text: "a[0][1]"},
		{name: "link", text: "see [1](guide.md) and ![2](x.png)"},
		{name: "text of a link", text: "see [the guide][1]"},
		{name: "no number", text: "[x] [] [a1] [1a] [^1] [-1] [1,] [1.5] [passage] [page 1] (1)"},
		{name: "as models write", text: "a [passage 3], b 【1】【2, 5】, c [Passages 4].", want: []int{3, 1, 2, 5, 4}},
		{name: "as models write, too high", text: "a [Passage 9]", stray: "9"},
		{name: "code", text: "call `argv[1]` or ``a ` [9]`` [2]", want: []int{2}},
		{name: "a backtick that nothing closes", text: "it's ` [1]\n\nand ` [2]", want: []int{1, 2}},
		{name: "a run that nothing of its length closes", text: "``a [1] `b` ``` [2]", want: []int{1, 2}},
		{name: "fence", text: "so [1]:\n```go\nx := [9]\n```\n~~~\n[8]\n```\n~~~~\nthen [2]", want: []int{1, 2}},
		{name: "fence that nothing closes", text: "so [1]:\n   ```\n[9]\n\n[8]", want: []int{1}},
		{name: "no fence", text: "    ```\n\n[1]\n\n``` a`b\n[2]", want: []int{1, 2}},
		{name: "a span before a fence", text: "a ` [1]\n```\n` [9]\n```\n` [2]", want: []int{1, 2}},
		{name: "not UTF-8", text: "\xff[1]\xff[9", want: []int{1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cited, stray := support.Citations(test.text, 5)
			if !slices.Equal(cited, test.want) || stray != test.stray {
				t.Errorf("got %v and %q, want %v and %q", cited, stray, test.want, test.stray)
			}
		})
	}
}

func TestReadCited(t *testing.T) {
	given := sdk.Prompt{Passages: []string{"a", "b"}, None: "The passages do not answer this."}
	uncited := sdk.Prompt{Passages: []string{}, None: given.None}
	tests := []struct {
		name, text   string
		prompt       sdk.Prompt
		want, reason string
	}{
		{name: "the whole text", text: " <think>[9]?</think>\nPort 80 [1].\n\n- or 81 [2]\n", prompt: given, want: "Port 80 [1].\n\n- or 81 [2]"},
		{name: "an object is a text, too", text: `{"label": "[1]"}`, prompt: given, want: `{"label": "[1]"}`},
		{name: "nothing", text: " ", prompt: given, reason: "the model wrote nothing"},
		{name: "nothing but citations", text: "[1], [2].", prompt: given, reason: "it cites passages and says nothing"},
		{name: "no citation", text: "Port 80.", prompt: given, want: "Port 80.", reason: "it cites none of the passages"},
		{name: "a passage that was not given", text: "Port 80 [1, 3].", prompt: given, reason: "it cites [3], which is none of the passages that it was given"},
		{name: "none", text: "The passages do not answer this.", prompt: given},
		{name: "none, nearly", text: "**the passages do\nnot answer this**\n", prompt: given},
		{name: "none with citations", text: "The passages do not answer this [1, 2].", prompt: given},
		{name: "none and more", text: "The passages do not answer this. It is port 80.", prompt: given, want: "The passages do not answer this. It is port 80.", reason: "it cites none of the passages"},
		{name: "none where it is not allowed", text: "The passages do not answer this.", prompt: sdk.Prompt{Passages: given.Passages}, want: "The passages do not answer this.", reason: "it cites none of the passages"},
		{name: "nothing to cite", text: "Port 80,\n[7] or so.", prompt: uncited, want: "Port 80,\n[7] or so."},
		{name: "none with nothing to cite", text: "\"The passages do not answer this\"", prompt: uncited},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := support.ReadAnswer(test.text, test.prompt, support.AnswerOptions{Nearest: .1})
			if want := (sdk.Answer{Label: test.want, Weight: 1, Reason: test.reason}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestCitationsTakeLinearTime(t *testing.T) {
	for name, text := range map[string]func(n int) string{
		"ticks":           func(n int) string { return strings.Repeat("`a ", 16*n) },
		"ranges":          func(n int) string { return strings.Repeat("[1-5", 8*n) },
		"one passage":     func(n int) string { return strings.Repeat("[1]", 8*n) },
		"nothing closes":  func(n int) string { return strings.Repeat("[1", 8*n) },
		"all of them":     func(n int) string { return strings.Repeat(fmt.Sprintf("[1-%d] ", n), n) },
		"runs of lengths": func(n int) string { return runs(n / 4) },
	} {
		t.Run(name, func(t *testing.T) {
			must.Linear(t, 100, func(n int) { support.Citations(text(n), 100_000) })
		})
	}
	const most = 100_000
	if all, stray := support.Citations(strings.Repeat("[1-99999] ", 1000)+"[5, 99998-100000]", most); len(all) != most || stray != "" {
		t.Errorf("%d are cited, and %q", len(all), stray)
	}
}

// runs returns runs of backticks that nothing closes, of all lengths that fit into about n backticks.
func runs(n int) string {
	var text strings.Builder
	for length := 1; text.Len() < 16*n; length++ {
		text.WriteString(strings.Repeat("`", length) + " ")
	}
	return text.String()
}

func FuzzCitations(f *testing.F) {
	f.Add("a [1], `b[2]` and [3-5]\n```\n[9]", 4)
	f.Add("[1](x)[2][text][3]", 3)
	f.Add("[1]", 80)
	f.Add("0", 4)
	f.Fuzz(func(t *testing.T, text string, n int) {
		n = min(max(n, 0), 1000)
		cited, stray := support.Citations(text, n)
		for i, number := range cited {
			if number < 1 || number > n || slices.Contains(cited[:i], number) {
				t.Errorf("%q cites %v of %d", text, cited, n)
			}
		}
		got := support.ReadAnswer(text, sdk.Prompt{Passages: make([]string, n), None: "none"}, support.AnswerOptions{})
		if n > 0 && got.Label != "" && got.Reason != "" && got.Reason != support.NoCitation || !strings.Contains(text, got.Label) {
			t.Errorf("%q gave %+v", text, got)
		}
		if n > 0 && !strings.Contains(text, "</think>") && (stray != "" || len(cited) == 0) != (got.Reason != "") && got.Reason != "the model wrote nothing" && got.Reason != "it cites passages and says nothing" {
			if got != (sdk.Answer{Weight: 1}) { // no label fits
				t.Errorf("%q cites %v and %q, and is read as %+v", text, cited, stray, got)
			}
		}
	})
}
