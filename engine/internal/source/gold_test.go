package source

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestGold(t *testing.T) {
	m := Mapping{Text: "text", Gold: "gold"}
	shape := errors.New(`"gold": a gold passage is the id of an entry, a list of ids of which any will do, or an object with id and grade`)
	tests := []struct {
		name, content string
		format        Format
		want          []Row
	}{
		{"ids and grades in a column", "text\tgold\na\td1 d2:2  d3:0.5\nb\t\nc\tfile.go:main ns:x:3\n", TSV, []Row{
			{Line: 2, Text: "a", Gold: []Gold{{IDs: []string{"d1"}, Grade: 1}, {IDs: []string{"d2"}, Grade: 2}, {IDs: []string{"d3"}, Grade: .5}}},
			{Line: 3, Text: "b"},
			{Line: 4, Text: "c", Gold: []Gold{{IDs: []string{"file.go:main"}, Grade: 1}, {IDs: []string{"ns:x"}, Grade: 3}}}}},
		{"quotes", "text\tgold\na\tg.md\"a  port\":2 d1 g.md\"x: y\"\nb\t5\" a\"\" \"c d\"\n", TSV, []Row{
			{Line: 2, Text: "a", Gold: []Gold{{IDs: []string{"g.md"}, Quote: "a port", Grade: 2}, {IDs: []string{"d1"}, Grade: 1}, {IDs: []string{"g.md"}, Quote: "x: y", Grade: 1}}},
			{Line: 3, Text: "b", Gold: []Gold{{IDs: []string{"5"}, Quote: "a", Grade: 1}, {IDs: []string{`"`}, Grade: 1}, {IDs: []string{`"c`}, Grade: 1}, {IDs: []string{`d"`}, Grade: 1}}}}},
		{"quotes in lists", `{"text": "a", "gold": [{"id": "g.md", "quote": " a\nport "}, {"id": ["a", "b"], "quote": "x", "grade": 2}]}`, JSONL, []Row{
			{Line: 1, Text: "a", Gold: []Gold{{IDs: []string{"g.md"}, Quote: "a port", Grade: 1}, {IDs: []string{"a", "b"}, Quote: "x", Grade: 2}}}}},
		{"a grade that is none", "text,gold\na,d1:-1\nb,d1:NaN\n", CSV, []Row{
			{Line: 2, Text: "a", Err: errors.New(`"gold": the grade of "d1" is -1; it is a number from 0 on`)},
			{Line: 3, Text: "b", Err: errors.New(`"gold": the grade of "d1" is NaN; it is a number from 0 on`)}}},
		{"lists", `{"text": "a", "gold": ["d1", 7, {"id": "d2", "grade": 2}, {"id": "d3"}, ["d4", "d5"], {"id": ["d6", "d7"], "grade": 0}]}`, JSONL, []Row{
			{Line: 1, Text: "a", Gold: []Gold{{IDs: []string{"d1"}, Grade: 1}, {IDs: []string{"7"}, Grade: 1}, {IDs: []string{"d2"}, Grade: 2}, {IDs: []string{"d3"}, Grade: 1},
				{IDs: []string{"d4", "d5"}, Grade: 1}, {IDs: []string{"d6", "d7"}, Grade: 0}}}}},
		{"one alone, none", `{"text": "a", "gold": "d 1"}` + "\n" + `{"text": "b", "gold": null}` + "\n" + `{"text": "c", "gold": []}`, JSONL, []Row{
			{Line: 1, Text: "a", Gold: []Gold{{IDs: []string{"d 1"}, Grade: 1}}},
			{Line: 2, Text: "b"},
			{Line: 3, Text: "c"}}},
		{"what is no passage", `{"text": "a", "gold": [true]}` + "\n" + `{"text": "b", "gold": [[]]}` + "\n" + `{"text": "c", "gold": {"id": "d", "grade": "high"}}` + "\n" + `{"text": "d", "gold": [null, {}]}`, JSONL, []Row{
			{Line: 1, Text: "a", Err: shape},
			{Line: 2, Text: "b", Err: errors.New(`"gold": a gold passage has no id`)},
			{Line: 3, Text: "c", Err: errors.New(`"gold": a gold passage as an object reads {"id": "...", "grade": 1}`)},
			{Line: 4, Text: "d", Err: shape}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readAll(t, tt.format, m, tt.content)
			must.Do(t, err)
			if d := cmp.Diff(tt.want, got, sameText); d != "" {
				t.Errorf("rows differ (-want +got):\n%s", d)
			}
		})
	}
}

func TestContext(t *testing.T) {
	m := Mapping{Text: "text", Context: "title"}
	want := []Row{{Line: 2, Text: "a", Context: "T", Meta: sdk.Meta{"gold": "x"}}, {Line: 3, Text: "b", Meta: sdk.Meta{"gold": "y"}}}
	got, err := readAll(t, TSV, m, "text\ttitle\tgold\na\tT\tx\nb\t\ty\n")
	must.Do(t, err)
	if d := cmp.Diff(want, got, sameText); d != "" {
		t.Errorf("tsv (-want +got):\n%s", d)
	}
	got, err = readAll(t, JSONL, m, "\n"+`{"text": "a", "title": "T", "gold": "x"}`+"\n"+`{"text": "b", "gold": "y"}`+"\n"+`{"text": "c", "title": ["T"]}`)
	must.Do(t, err)
	want = append(want, Row{Line: 4, Text: "c", Err: errors.New(`"title" is not a string but a list: name a value in it, such as "title[0]", in place of "title"`)})
	if d := cmp.Diff(want, got, sameText); d != "" {
		t.Errorf("jsonl (-want +got):\n%s", d)
	}
	var file *FileError
	if _, err := readAll(t, TSV, m, "text\nhello\n"); !errors.As(err, &file) {
		t.Errorf("a context column that is not there: %v", err)
	}
}
