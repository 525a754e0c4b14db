package enrich

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// A long document is shown in windows that many neighbours share.
func TestWindows(t *testing.T) {
	must.NoRace(t)
	for name, word := range map[string]string{"latin": "word", "two bytes": "слово", "without spaces": "字字字字字"} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			for i := range 200 {
				line := fmt.Sprintf("%d.%s", i, strings.Repeat(" "+word, 10))
				if name == "without spaces" {
					line = strings.ReplaceAll(line, " ", "")
				}
				lines = append(lines, line)
			}
			passages := contextDocument("Guide", lines...)
			text := passages[0].Document.Text
			const latency = 3 * time.Millisecond
			number := func(a modelserver.Ask, _ int) string { return "It is line " + strings.SplitN(chunkOf(a), ".", 2)[0] }
			f := openedContext(t, modelserver.Options{Latency: latency, Answer: number}, `, "context_tokens": 1000`)
			if _, err := f.Enrich(t.Context(), passages); err != nil {
				t.Fatal(err)
			}
			begun := map[string]time.Time{}
			for _, a := range f.server.Asks() {
				shown, chunk := a.Messages[1].Content, chunkOf(a)
				if first, ok := begun[shown]; !ok {
					begun[shown] = a.At
				} else if a.At.Sub(first) < latency {
					t.Errorf("%q was asked about before the first of its window was answered", chunk)
				}
				if n := utf8.RuneCountInString(shown); n > 4000+200 || !utf8.ValidString(shown) {
					t.Fatalf("a document of %d characters is shown", n)
				}
				if !strings.Contains(shown, "Title: Guide\n") || !strings.Contains(shown, text[:200]) {
					t.Errorf("the beginning is missing: %.300s", shown)
				}
				at := strings.Index(shown, chunk)
				if at < 0 {
					t.Fatalf("%q is not in what is shown", chunk)
				}
				// What is before and behind it is a quarter of a window, but at the ends.
				before, behind := utf8.RuneCountInString(shown[:at]), utf8.RuneCountInString(shown[at:])
				first, last := !strings.Contains(shown[:at], leftOut), strings.HasSuffix(shown, text[len(text)-20:]+"\n</document>")
				if before < 800 && !first || behind < 800 && !last {
					t.Errorf("%q stands at %d of %d characters", chunk, before, before+behind)
				}
				if !strings.Contains(a.Messages[0].Content, "a part of a document") {
					t.Error("the prompt does not say that it shows a part")
				}
			}
			if windows := 2*utf8.RuneCountInString(text)/3500 + 1; len(begun) > windows || len(begun) < windows/2 {
				t.Errorf("%d beginnings for %d passages, want at most %d", len(begun), len(passages), windows)
			}
		})
	}
}

func TestView(t *testing.T) {
	d := &sdk.Document{Text: strings.Repeat("x", 4000)}
	if v := newView(d, 1000); v.steps != nil || v.window(sdk.Chunk{Start: 3999, End: 4000}) != 0 || !strings.Contains(v.show(0), d.Text) {
		t.Errorf("a document that fits has the view %+v", v)
	}
	d.Text += "y"
	v := newView(d, 1000)
	if v.window(sdk.Chunk{}) != 0 || v.window(sdk.Chunk{Start: 4001, End: 4001}) != len(v.steps)-3 {
		t.Errorf("%+v", v.steps)
	}
	if last := v.show(len(v.steps) - 3); !strings.HasSuffix(last, "y\n</document>") || !strings.HasPrefix(last, "<document>\n"+d.Text[:500]+"\n"+leftOut) {
		t.Errorf("shown %q", last)
	}
}

func TestSituating(t *testing.T) {
	long := strings.Repeat("A sentence. ", 200)
	tests := []struct {
		name  string
		reply dialect.Choice
		want  string
	}{
		{"one line", dialect.Choice{Text: " It is\n about cards. "}, "It is about cards."},
		{"quoted", dialect.Choice{Text: `"It is about cards."`}, "It is about cards."},
		{"quotes inside", dialect.Choice{Text: `"Cards" is about "mail"`}, `"Cards" is about "mail"`},
		{"an introduction", dialect.Choice{Text: "Here is the note:\n\nIt is about cards."}, "It is about cards."},
		{"cut", dialect.Choice{Text: "It is about cards. It says that Mr. Smi", Finish: "length"}, "It is about cards."},
		{"cut behind a sentence", dialect.Choice{Text: "It is about cards.", Finish: "length"}, "It is about cards."},
		{"cut in the only sentence", dialect.Choice{Text: "It is about car", Finish: "length"}, "It is about"},
		{"cut in the only word", dialect.Choice{Text: "It", Finish: "length"}, "It"},
		{"control characters", dialect.Choice{Text: "It is\x00 about\x1b[31m cards."}, "It is about [31m cards."},
		{"endless", dialect.Choice{Text: long}, strings.TrimSpace(long[:1992])},
	}
	for _, test := range tests {
		if got, err := contextOf(test.reply); err != nil || got != test.want {
			t.Errorf("%s: got %q, error %v", test.name, got, err)
		}
	}
	for _, text := range []string{"---", "...", "\"\"", "Note:\n\x07"} {
		if got, err := contextOf(dialect.Choice{Text: text}); sdk.CodeOf(err) != sdk.CodeInvalid {
			t.Errorf("%q: got %q, error %v", text, got, err)
		}
	}
}
