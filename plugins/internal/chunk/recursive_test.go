package chunk

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
)

func TestRecursiveChunks(t *testing.T) {
	for name, c := range map[string]struct{ config, text, want string }{ // | between chunks
		"small paragraphs are joined": {`{"size": 6}`, "a b c\n\nd e\n\nf g h\n", "a b c\n\nd e\n\n|f g h\n"},
		"a paragraph before a line":   {`{"size": 6}`, "a b\nc d\n\ne f\ng h\n", "a b\nc d\n\n|e f\ng h\n"},
		"a line before a sentence":    {`{"size": 7}`, "a b. C d\ne. F g. H\n", "a b. C d\n|e. F g. H\n"},
		"a sentence before a word":    {`{"size": 5}`, "A b. C d e f g h.", "A b. |C d e f g |h."},
		"inside a word":               {`{"size": 2}`, strings.Repeat("x", 30), strings.Repeat("x", 12) + "|" + strings.Repeat("x", 12) + "|xxxxxx"},
		"half full at least":          {`{"size": 8}`, "a\n\nb c d e f. G h i j", "a\n\nb c d e f. |G h i j"},
		"separators":                  {`{"size": 4, "separators": ["--", "words"]}`, "a b--c d e f g", "a b--|c d e f |g"},
		"characters":                  {`{"size": 4, "tokenizer": "characters"}`, "ab cd ef", "ab cd |ef"},
		"leading white space":         {`{"size": 2}`, "\n\n a b c\n\n", "\n\n a b |c\n\n"},
		"Chinese":                     {`{"size": 4}`, "我丢了。你呢？", "我丢了。|你呢？"},
		"white space":                 {`{}`, " \n\t\u00a0", ""},
	} {
		var got []string
		for _, chunk := range recursiveChunks(t, c.config, sdk.Document{Text: c.text}) {
			got = append(got, c.text[chunk.Start:chunk.End])
		}
		if want := slices.DeleteFunc(strings.Split(c.want, "|"), func(s string) bool { return s == "" }); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, want)
		}
	}
}

// A chunk that begins in the rows of a table repeats its header; source code has no tables.
func TestRecursiveTables(t *testing.T) {
	text := "Some fees.\n\n| a | b |\n|---|---|\n" + strings.Repeat("| c | d |\n", 20) + "\nThe end of them.\n"
	for i, c := range recursiveChunks(t, `{"size": 40, "overlap": 5}`, sdk.Document{Text: text}) {
		if got := c.In(text); strings.Count(got, "|---|---|") != 1 || i > 0 && !strings.HasPrefix(got, "| a | b |\n|---|---|\n| c | d |\n") {
			t.Errorf("chunk %d: %q", i, got)
		}
	}
	for _, c := range recursiveChunks(t, `{"size": 40}`, sdk.Document{Text: text, Meta: sdk.Meta{"format": "code"}}) {
		if c.Header != (sdk.Span{}) {
			t.Errorf("code has a table: %+v", c)
		}
	}
}

func recursiveChunks(t *testing.T, config string, d sdk.Document) []sdk.Chunk {
	t.Helper()
	stage, err := Recursive().Open(t.Context(), sdk.Setup{}, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	lists, err := stage.(sdk.Chunker).Chunk(t.Context(), []sdk.Document{d})
	if err != nil {
		t.Fatal(err)
	}
	return lists[0]
}

func TestOverlap(t *testing.T) {
	text := "One two three four. Five six. Seven eight nine ten. Eleven."
	var got []string
	for _, c := range recursiveChunks(t, `{"size": 9, "overlap": 4}`, sdk.Document{Text: text}) {
		got = append(got, text[c.Start:c.End])
	}
	want := []string{"One two three four. Five six. ", "Five six. Seven eight nine ten. ", "eight nine ten. Eleven."}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRecursiveErrors(t *testing.T) {
	t.Setenv(sdk.ModelsVariable, t.TempDir())
	for config, want := range map[string]string{
		`{"size": 0}`:                  "size",
		`{"size": 10, "overlap": 6}`:   "overlap",
		`{"overlap": -1}`:              "overlap",
		`{"separators": ["lines",""]}`: "separators",
		`{"tokenizer": "bytes"}`:       "tokenizer",
		`{"tokenizer": "minilm"}`:      "tokenizer",
	} {
		_, err := Recursive().Open(t.Context(), sdk.Setup{}, []byte(config))
		if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != want {
			t.Errorf("%s: error %v, want one about %s", config, err, want)
		}
		if strings.Contains(config, "minilm") && !strings.Contains(err.Error(), "racflow model pull minilm") {
			t.Errorf("%v does not say how to get the model", err)
		}
	}
}

func TestRecursiveGolden(t *testing.T) {
	apitest.CheckReply(t, Recursive(), `{"size": 100}`, "3 1e0a579a728c8454")
}
