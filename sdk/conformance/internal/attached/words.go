package attached

import (
	"errors"
	"math"
	"strings"

	"github.com/racflow/racflow/sdk"
)

// lexical checks what the words of a query find; that the server's scores mean something is its own affair.
func (v *view) lexical() {
	if !v.found.Lexical {
		v.withoutWords()
		return
	}
	refund := is(sdk.FieldLabel, "", "refund")
	for _, filter := range []*sdk.Filter{nil, &refund} {
		if filter != nil && !v.Stage.Filters {
			continue
		}
		q := sdk.Query{Text: "walrus violin", Filter: filter}
		lists, err := v.retrieve(sdk.ModeLexical, len(v.rows), q)
		if err != nil {
			v.Fatalf("lexical search: %v", err)
		}
		found := map[string]bool{}
		for i, c := range lists[0] {
			if found[c.ID] = true; !(c.Lexical > 0) || i > 0 && c.Lexical > lists[0][i-1].Lexical {
				v.Errorf("place %d has the lexical score %v", i, c.Lexical)
			}
		}
		for _, e := range v.rows {
			want := (strings.Contains(e.Text, "walrus") || strings.Contains(e.Text, "violin")) && filter.Match(e.ID, e.Label, e.Meta)
			if found[e.ID] != want {
				v.Fatalf("filter %s: row %q, %q, is found by the words %q: %v", filter, e.ID, e.Text, q.Text, found[e.ID])
			}
		}
	}
	v.hybrid()
}

// hybrid checks that both legs of a hybrid search find something.
func (v *view) hybrid() {
	q := queries(1)[0]
	lists, err := v.retrieve(sdk.ModeHybrid, len(v.rows), q)
	if err != nil || len(lists[0]) != len(v.rows) {
		v.Fatalf("hybrid search: %d candidates, want %d, %v", len(lists[0]), len(v.rows), err)
	}
	byWords := 0
	for _, c := range lists[0] {
		if c.Lexical > 0 {
			byWords++
		}
		if !math.IsNaN(float64(c.Dense)) && !v.near(c.Dense, cosine(q.Vector, v.byID[c.ID].Vector)) {
			v.Errorf("%q has the dense score %v in a hybrid search", c.ID, c.Dense)
		}
	}
	if want := 2 * len(v.rows) / len(words); byWords != want {
		v.Errorf("a hybrid search finds %d rows by the word %q, want %d", byWords, q.Text, want)
	}
}

// withoutWords checks a collection that cannot be searched by words.
func (v *view) withoutWords() {
	q := queries(1)[0]
	if _, err := v.retrieve(sdk.ModeLexical, 5, sdk.Query{Text: q.Text}); err == nil || sdk.CodeOf(err) != sdk.CodeInvalid || errors.As(err, new(sdk.RowErrors)) {
		v.Errorf("a lexical search gives %v; it is invalid as a whole", err)
	}
	lists, err := v.retrieve(sdk.ModeHybrid, 10, q)
	if err != nil {
		v.Fatalf("hybrid search: %v", err)
	}
	v.check(q, 10, lists[0])
	for _, c := range lists[0] {
		if c.Score != c.Dense || !math.IsNaN(float64(c.Lexical)) {
			v.Fatalf("hybrid search: %q has the score %v, dense %v and lexical %v; without words it is a dense search", c.ID, c.Score, c.Dense, c.Lexical)
		}
	}
}
