package sdktest

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

func (m *memory) Search(ctx context.Context, name string, s sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	k, err := m.read(name)
	if err != nil {
		return nil, err
	}
	if s.Mode != sdk.ModeDense && k.Schema.Analyzer == "" {
		return nil, sdk.Invalid(errors.New("there is no lexical side"))
	}
	m.pause(len(queries))
	hits := make([]sdk.Hits, len(queries))
	failed := sdk.RowErrors{}
	for i, q := range queries {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if s.Mode != sdk.ModeLexical {
			if hits[i].Dense, err = m.dense(k, q, s.NumCandidates); err != nil {
				failed[i] = sdk.Invalid(err)
				if m.fault == "a bad query fails all" {
					return nil, failed[i]
				}
			}
		}
		if s.Mode != sdk.ModeDense {
			hits[i].Lexical = m.lexical(k, q, s.NumCandidates)
		}
	}
	if len(failed) > 0 {
		return hits, failed
	}
	return hits, nil
}

// pause is for faults that need time.
func (m *memory) pause(n int) {
	if m.fault == "deaf" && n > 1000 {
		time.Sleep(promptly + time.Second)
	}
}

// trickle makes the pending entries visible one after the other.
func (m *memory) trickle(k *kept) {
	for id, u := range k.pending {
		next := *k
		next.Now = make(map[string]unit, len(k.Now))
		for old, v := range k.Now {
			next.Now[old] = v
		}
		next.Now[id] = u
		*k = next
		m.mu.Unlock()
		time.Sleep(50 * time.Microsecond)
		m.mu.Lock()
	}
}

// match reports whether a filter selects an entry, or what a faulty store answers instead.
func (m *memory) match(f *sdk.Filter, e sdk.Entry) bool {
	switch m.fault {
	case "not of what is missing":
		return f == nil || m.sql(*f, e) > 0
	case "prefixes are patterns":
		if f != nil && f.Op == sdk.FilterPrefix && strings.Contains(f.Values[0].(string), "%") {
			before, _, _ := strings.Cut(f.Values[0].(string), "%")
			g := *f
			g.Values = []any{before}
			f = &g
		}
	case "filter of the first query":
		if f != nil && f.Op == sdk.FilterIn {
			return e.Label == "red"
		}
	}
	return f.Match(e.ID, e.Label, e.Meta)
}

// sql is three-valued logic: 1, -1, or 0 if metadata is missing.
func (m *memory) sql(f sdk.Filter, e sdk.Entry) int {
	if f.Op == sdk.FilterNot {
		return -m.sql(f.Parts[0], e)
	}
	if _, ok := e.Meta[f.Key]; f.Op > sdk.FilterNot && f.Field == sdk.FieldMeta && !ok {
		return 0
	}
	if f.Match(e.ID, e.Label, e.Meta) {
		return 1
	}
	return -1
}

func (m *memory) dense(k kept, q sdk.Query, depth int) ([]sdk.Hit, error) {
	if len(q.Vector) != k.Schema.Dimension {
		return nil, errors.New("wrong dimension")
	}
	square := dot(q.Vector, q.Vector)
	if math.IsNaN(square) || math.IsInf(square, 0) {
		return nil, errors.New("not a number")
	}
	hits := []sdk.Hit{}
	if square == 0 && m.fault != "finds all by a zero vector" {
		return hits, nil
	}
	for id, u := range k.Now {
		h := sdk.Hit{ID: id, Lexical: sdk.Unscored, Dense: float32(dot(q.Vector, u.Entry.Vector))}
		if norm := math.Sqrt(square * dot(u.Entry.Vector, u.Entry.Vector)); norm > 0 && m.fault != "takes products for cosines" {
			h.Dense = float32(dot(q.Vector, u.Entry.Vector) / norm)
		}
		hits = append(hits, h)
	}
	return m.best(k, q, hits, depth, func(h sdk.Hit) float32 { return h.Dense }), nil
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// best returns the depth best hits that the filter selects.
func (m *memory) best(k kept, q sdk.Query, hits []sdk.Hit, depth int, score func(sdk.Hit) float32) []sdk.Hit {
	filter := func() {
		hits = slices.DeleteFunc(hits, func(h sdk.Hit) bool { return !m.match(q.Filter, k.Now[h.ID].Entry) })
	}
	if m.fault != "filters after the cut" {
		filter()
	}
	if m.fault == "ties in any order" {
		rand.Shuffle(len(hits), func(i, j int) { hits[i], hits[j] = hits[j], hits[i] })
		slices.SortStableFunc(hits, func(a, b sdk.Hit) int { return cmp.Compare(score(b), score(a)) })
	} else {
		slices.SortFunc(hits, func(a, b sdk.Hit) int { return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a.ID, b.ID)) })
	}
	hits = hits[:min(depth, len(hits))]
	if m.fault == "filters after the cut" {
		filter()
	}
	return hits
}

func (m *memory) lexical(k kept, q sdk.Query, depth int) []sdk.Hit {
	analyzer, _ := support.NamedAnalyzer(k.Schema.Analyzer)
	if m.fault == "queries through standard" {
		analyzer, _ = support.NamedAnalyzer("standard")
	}
	n, total := 0, 0
	df := map[string]int{}
	k1, b := 1.2, 0.75
	if m.fault == "other b" {
		b = 0.7
	}
	for _, u := range k.Now {
		if m.fault == "statistics of the selected" && !m.match(q.Filter, u.Entry) {
			continue
		}
		n++
		total += u.Total
		for w := range u.Words {
			df[w]++
		}
	}
	if m.fault == "counts the dead" && string(k.Note) != "corpus" {
		n += 60
	}
	words := analyzer.Append(nil, q.Text)
	if m.fault == "takes a query's word once" {
		slices.Sort(words)
		words = slices.Compact(words)
	}
	hits := []sdk.Hit{}
	for id, u := range k.Now {
		if m.fault != "filters after the cut" && !m.match(q.Filter, u.Entry) {
			continue
		}
		h := sdk.Hit{ID: id, Dense: sdk.Unscored}
		for _, w := range words {
			if tf := float64(u.Words[w]); tf > 0 {
				idf := math.Log1p((float64(n-df[w]) + 0.5) / (float64(df[w]) + 0.5))
				h.Lexical += float32(idf * tf / (tf + k1*(1-b) + k1*b*float64(u.Total)*float64(n)/float64(total)))
			}
		}
		if h.Lexical > 0 {
			hits = append(hits, h)
		}
	}
	return m.best(k, q, hits, depth, func(h sdk.Hit) float32 { return h.Lexical })
}
