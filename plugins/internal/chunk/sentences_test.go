package chunk

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
)

func TestSentencesChunks(t *testing.T) {
	for name, c := range map[string]struct {
		config, text string
		want         []string
	}{
		"overlap": {`{"sentences": 2}`, "One. Two. Three. Four.", []string{"One. Two. ", "Two. Three. ", "Three. Four."}},
		"none":    {`{"sentences": 2, "overlap": 0}`, "\nOne.\n\nTwo. Three.\n", []string{"\nOne.\n\nTwo. ", "Three.\n"}},
		"size before sentences": {`{"sentences": 0, "size": 7, "overlap": 1}`, "One two. Three four. Five six. Seven.",
			[]string{"One two. Three four. ", "Three four. Five six. ", "Five six. Seven."}},
		"overlap gives way":    {`{"size": 6, "overlap": 1}`, "One two. Three four five six seven. Eight.", []string{"One two. ", "Three four five six seven. ", "Eight."}},
		"a sentence too long":  {`{"size": 3, "overlap": 0}`, "One two three four five six. Seven.", []string{"One two three ", "four five ", "six. ", "Seven."}},
		"white space":          {`{}`, " \n\n ", nil},
		"an abbreviation":      {`{"sentences": 1, "overlap": 0}`, "Dr. A. Who has 3.5 of it, e.g. Now. Then.", []string{"Dr. A. Who has 3.5 of it, e.g. Now. ", "Then."}},
		"heading and sentence": {`{"sentences": 1, "overlap": 0}`, "A heading\n\nA sentence.", []string{"A heading\n\n", "A sentence."}},
	} {
		stage, err := Sentences().Open(t.Context(), sdk.Setup{}, []byte(c.config))
		if err != nil {
			t.Fatal(err)
		}
		lists, err := stage.(sdk.Chunker).Chunk(t.Context(), []sdk.Document{{Text: c.text}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, chunk := range lists[0] {
			got = append(got, c.text[chunk.Start:chunk.End])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, c.want)
		}
	}
}

func TestSentencesErrors(t *testing.T) {
	for config, want := range map[string]string{
		`{"sentences": -1}`:              "sentences",
		`{"sentences": 2, "overlap": 2}`: "overlap",
		`{"overlap": -1}`:                "overlap",
		`{"size": 0}`:                    "size",
	} {
		_, err := Sentences().Open(t.Context(), sdk.Setup{}, []byte(config))
		if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want+": ") {
			t.Errorf("%s: error %v, want one about %s", config, err, want)
		}
	}
}

func TestSentencesGolden(t *testing.T) {
	apitest.CheckReply(t, Sentences(), `{"size": 100}`, "2 1ad15b29ce20b6c0")
}
