package flat

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// pageBytes is the size after which Scan ends a page, so that the page fits into a message.
const pageBytes = 16 << 20

// part returns an entry with its texts and its vector only if they are asked for.
func part(e sdk.Entry, texts, vectors bool) sdk.Entry {
	if !texts {
		e.Text, e.Context, e.Meta = "", "", nil
	}
	if !vectors {
		e.Vector = nil
	}
	return e
}

// Get implements sdk.Store.
func (s *store) Get(_ context.Context, name string, ids []string) ([]sdk.Entry, error) {
	c, err := s.opened(name)
	if err != nil {
		return nil, err
	}
	v, all := c.version(), make([]sdk.Entry, len(ids))
	for i, id := range ids {
		if at, ok := v.find(id); ok {
			all[i] = part(v.Entries[at], true, false)
		}
	}
	return all, nil
}

// Scan implements sdk.Store. Entries are sorted by their ids.
func (s *store) Scan(_ context.Context, name string, scan sdk.Scan) (sdk.Page, error) {
	c, err := s.opened(name)
	if err != nil {
		return sdk.Page{}, err
	}
	v, page, size := c.version(), sdk.Page{}, 0
	at, found := v.find(scan.After)
	if found {
		at++
	}
	for ; at < len(v.Entries); at++ {
		e := v.Entries[at]
		if len(scan.Labels) > 0 && !slices.Contains(scan.Labels, e.Label) {
			continue
		}
		if n := len(page.Entries); n > 0 && (n == scan.Limit || size > pageBytes) {
			page.Next = page.Entries[n-1].ID
			break
		}
		e = part(e, scan.Texts, scan.Vectors)
		size += len(e.ID) + len(e.Text) + len(e.Context) + len(e.Label) + 4*len(e.Vector) + 64
		for key, value := range e.Meta {
			text, _ := value.(string)
			size += len(key) + len(text) + 16
		}
		page.Entries = append(page.Entries, e)
	}
	return page, nil
}

// The parameters of BM25 that sdk.Hits names.
const k1, b = 1.2, 0.75

// words is the word index of a version, which the lexical leg searches.
type words struct {
	analyzer support.Analyzer
	postings map[string][]posting
	lengths  []float64 // by entry
	average  float64
}

// posting says how often an entry has a word.
type posting struct {
	entry int // position in version.Entries
	times float64
}

func count(c *content) *words {
	analyzer, err := support.NamedAnalyzer(c.Schema.Analyzer)
	if err != nil {
		return nil // the collection has no lexical leg
	}
	w := &words{analyzer, map[string][]posting{}, make([]float64, len(c.Entries)), 0}
	for i, e := range c.Entries {
		all := analyzer.Append(analyzer.Append(nil, e.Context), e.Text)
		w.lengths[i] = float64(len(all))
		w.average += w.lengths[i] / float64(len(c.Entries))
		for _, word := range all {
			have := w.postings[word]
			if last := len(have) - 1; last >= 0 && have[last].entry == i {
				have[last].times++
			} else {
				w.postings[word] = append(have, posting{i, 1})
			}
		}
	}
	return w
}

// scores returns the BM25 score of each entry for a text: 0 if they share no word.
func (w *words) scores(text string) []float32 {
	sums := make([]float64, len(w.lengths))
	for _, word := range w.analyzer.Append(nil, text) {
		having := float64(len(w.postings[word]))
		idf := math.Log(1 + (float64(len(w.lengths))-having+0.5)/(having+0.5))
		for _, p := range w.postings[word] {
			sums[p.entry] += idf * p.times / (p.times + k1*(1-b+b*w.lengths[p.entry]/w.average))
		}
	}
	all := make([]float32, len(sums))
	for i, sum := range sums {
		all[i] = float32(sum)
	}
	return all
}

// cosines returns the cosine of each entry's vector and the query, which must not be all zero.
func (v *version) cosines(query []float32) []float32 {
	all, length := make([]float32, len(v.Entries)), norm(query)
	for i, e := range v.Entries {
		sum := 0.0
		for j, x := range query {
			sum += float64(x) * float64(e.Vector[j])
		}
		if v.norms[i] > 0 {
			all[i] = float32(sum / length / v.norms[i])
		}
	}
	return all
}

// Search implements sdk.Store.
func (s *store) Search(ctx context.Context, name string, search sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	c, err := s.opened(name)
	if err != nil {
		return nil, err
	}
	v, all, failed := c.version(), make([]sdk.Hits, len(queries)), sdk.RowErrors{}
	if search.Mode != sdk.ModeDense && v.Schema.Analyzer == "" {
		return nil, sdk.Invalid(fmt.Errorf("the collection %q has no lexical leg: search it with mode dense, or give its store an analyzer", name))
	}
	for i, q := range queries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if search.Mode != sdk.ModeLexical && (len(q.Vector) != v.Schema.Dimension || !finite(q.Vector)) {
			failed[i] = sdk.Invalid(fmt.Errorf("the query's vector has to have %d dimensions and finite numbers", v.Schema.Dimension))
			continue
		}
		all[i] = v.search(search, q)
	}
	if len(failed) > 0 {
		return all, failed
	}
	return all, nil
}

func (v *version) search(search sdk.Search, q sdk.Query) (hits sdk.Hits) {
	var selected []int
	for i, e := range v.Entries {
		if q.Filter.Match(e.ID, e.Label, e.Meta) {
			selected = append(selected, i)
		}
	}
	var dense, lexical []float32 // nil: that leg has no scores
	if search.Mode != sdk.ModeLexical && norm(q.Vector) > 0 {
		dense = v.cosines(q.Vector)
	}
	if search.Mode != sdk.ModeDense {
		lexical = v.words().scores(q.Text)
	}
	hit := func(i int) sdk.Hit {
		e := part(v.Entries[i], search.Texts, false)
		h := sdk.Hit{ID: e.ID, Dense: sdk.Unscored, Lexical: sdk.Unscored, Entry: &e}
		if dense != nil {
			h.Dense = dense[i]
		}
		if lexical != nil {
			h.Lexical = lexical[i]
		}
		return h
	}
	if search.Mode != sdk.ModeLexical {
		hits.Dense = best(selected, dense, search.NumCandidates, math.Inf(-1), hit)
	}
	if search.Mode != sdk.ModeDense {
		hits.Lexical = best(selected, lexical, search.NumCandidates, 0, hit)
	}
	return hits
}

// best returns the n hits with the highest scores above a bound. It expects the selected entries
// sorted by their ids, and keeps that order for equal scores. Without scores it returns no hits.
func best(selected []int, scores []float32, n int, above float64, hit func(int) sdk.Hit) []sdk.Hit {
	hits := []sdk.Hit{} // a leg that was asked is not nil
	if scores == nil {
		return hits
	}
	order := slices.DeleteFunc(slices.Clone(selected), func(i int) bool { return float64(scores[i]) <= above })
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(scores[j], scores[i]) })
	for _, i := range order[:min(max(n, 0), len(order))] {
		hits = append(hits, hit(i))
	}
	return hits
}
