package knowledge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk"
)

// TestMeasure: a large document counts passage by passage, one whose text is longer than its
// file as no more than the file, and what is done never becomes less.
func TestMeasure(t *testing.T) {
	sizes := map[string]int64{"a": 10, "big": 1000, "zipped": 20, "z": 5}
	m := &measure{size: func(id string) int64 { return sizes[id] }, step: terminal.ProgressStep{Unit: terminal.BytesUnit, Total: 1035}}
	passages := func(document string, bytes ...int) (all []sdk.Entry) {
		for _, n := range bytes {
			all = append(all, sdk.Entry{ID: "x", Text: strings.Repeat("x", n), Meta: sdk.Meta{"document": document}})
		}
		return all
	}
	for i, one := range []struct {
		entries []sdk.Entry
		ended   []string
		want    int64
	}{
		{append(passages("a", 9), passages("big", 100, 100)...), []string{"a"}, 210},
		{passages("big", 300), nil, 510},
		{passages("big", 900), nil, 1010},
		{append(passages("big", 1), passages("zipped", 500)...), []string{"big"}, 1030},
		{nil, []string{"zipped"}, 1030},
		{passages("z", 2), []string{"z"}, 1035},
	} {
		if got := m.add(one.entries, one.ended...); got.Done != one.want {
			t.Errorf("%d: %d bytes, want %d", i, got.Done, one.want)
		}
	}
	if m.step.Passages != 8 {
		t.Errorf("%d passages", m.step.Passages)
	}
	if id := generation.DocumentOf(sdk.Entry{ID: "row"}); id != "row" {
		t.Errorf("a row is of %q", id)
	}
}

// TestEmbedded: entries are reported as they are embedded, in rows that end with them.
func TestEmbedded(t *testing.T) {
	var got []string
	job := &BuildJob{Progress: func(s terminal.ProgressStep) { got = append(got, fmt.Sprintf("%d of %d", s.Done, s.Total)) }}
	w := &walk{builder: &builder{BuildJob: job}}
	far := &measure{size: func(string) int64 { return 1 }, step: terminal.ProgressStep{Unit: "row", Total: 4}}
	m := batch{entries: []sdk.Entry{{ID: "a"}, {ID: "b"}, {ID: "c"}}, units: []produced{{"a", 1}, {"b", 1}, {"none", 0}, {"c", 1}}}
	report := w.embedded(far, m)
	report(1)
	report(2)
	report(3)
	report(3) // as embed does at its end
	if want := []string{"1 of 4", "3 of 4", "4 of 4"}; !slices.Equal(got, want) {
		t.Errorf("reported %q, want %q", got, want)
	}
}
