package enginetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/racflow/racflow/sdk"
)

// Memory is a store that compares everything with everything. One process at a time
// writes a collection; it is kept out by an error that may pass, as it is by an
// embedded store.
func Memory() sdk.Stage {
	var mu sync.Mutex
	disks := map[string]*disk{}
	return sdk.StoreStage("memory", "Everything in a map.", func(_ context.Context, setup sdk.Setup, _ none) (sdk.Store, error) {
		mu.Lock()
		defer mu.Unlock()
		d := disks[setup.StateDir]
		if d == nil {
			d = &disk{collections: map[string]state{}, writers: map[string]*memory{}}
			disks[setup.StateDir] = d
		}
		return &memory{disk: d, open: map[string]*view{}}, nil
	}, sdk.Filters())
}

// disk is what outlives a process.
type disk struct {
	mu          sync.Mutex
	collections map[string]state
	writers     map[string]*memory
}

// state is what a commit left. Its map is never changed.
type state struct {
	schema  sdk.Schema
	note    []byte
	commits int
	entries map[string]sdk.Entry
	lexicon func() *lexicon // made once
}

func newState(schema sdk.Schema, note []byte, commits int, entries map[string]sdk.Entry) state {
	s := state{schema: schema, note: note, commits: commits, entries: entries}
	s.lexicon = sync.OnceValue(func() *lexicon { return lexiconOf(s) })
	return s
}

func (s state) collection(name string) sdk.Collection {
	return sdk.Collection{Name: name, Entries: len(s.entries), Dimension: s.schema.Dimension, Note: s.note}
}

// memory is the store of one process.
type memory struct {
	*disk
	open map[string]*view
}

// view is what a process sees of a collection, and what it has not committed.
type view struct {
	state
	pending map[string]sdk.Entry // nil: nothing
}

func (m *memory) Open(_ context.Context, name string, schema sdk.Schema) (sdk.Collection, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.release(name)
	s, ok := m.collections[name]
	if !ok {
		s = newState(schema, nil, 0, map[string]sdk.Entry{})
		m.collections[name] = s
	}
	if name == "" || s.schema != schema || schema.Analyzer != "" && wordsOf("a", schema.Analyzer) == nil {
		return sdk.Collection{}, sdk.Invalid(fmt.Errorf("collection %q was made with %+v, not %+v", name, s.schema, schema))
	}
	m.open[name] = &view{state: s}
	return s.collection(name), nil
}

// release forgets what is not committed.
func (m *memory) release(name string) {
	if m.writers[name] == m {
		delete(m.writers, name)
	}
}

// Close ends the process.
func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.open {
		m.release(name)
	}
	return nil
}

func (m *memory) view(name string) (*view, error) {
	if v := m.open[name]; v != nil {
		return v, nil
	}
	return nil, sdk.Invalid(fmt.Errorf("collection %q is not open", name))
}

// change gives do a view to write to.
func (m *memory) change(name string, do func(v *view) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, err := m.view(name)
	if err != nil {
		return err
	}
	if by := m.writers[name]; by != nil && by != m {
		return sdk.Transient(fmt.Errorf("collection %q is being written by another process", name), time.Millisecond)
	}
	if s, ok := m.collections[name]; !ok || s.commits != v.commits {
		return sdk.Transient(fmt.Errorf("collection %q was changed since it was opened: open it again", name), 0)
	}
	if m.writers[name] = m; v.pending == nil {
		v.pending = maps.Clone(v.entries)
	}
	return do(v)
}

func (m *memory) Put(_ context.Context, name string, entries []sdk.Entry) error {
	return m.change(name, func(v *view) error {
		for _, e := range entries {
			bad := func(x float32) bool { return math.IsNaN(float64(x - x)) }
			if e.ID == "" || len(e.Vector) != v.schema.Dimension || slices.ContainsFunc(e.Vector, bad) {
				return sdk.Invalid(fmt.Errorf("entry %q cannot be stored", e.ID))
			}
		}
		for _, e := range entries {
			v.pending[e.ID] = e
		}
		return nil
	})
}

func (m *memory) Delete(_ context.Context, name string, ids []string) error {
	return m.change(name, func(v *view) error {
		for _, id := range ids {
			delete(v.pending, id)
		}
		return nil
	})
}

func (m *memory) Commit(_ context.Context, name string, note []byte) error {
	return m.change(name, func(v *view) error {
		v.state = newState(v.schema, note, v.commits+1, v.pending)
		v.pending, m.collections[name] = nil, v.state
		m.release(name)
		return nil
	})
}

func (m *memory) List(context.Context) ([]sdk.Collection, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []sdk.Collection
	for _, name := range slices.Sorted(maps.Keys(m.collections)) {
		list = append(list, m.collections[name].collection(name))
	}
	return list, nil
}

func (m *memory) Drop(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if by := m.writers[name]; by != nil && by != m {
		return sdk.Transient(errors.New("another process writes it"), time.Millisecond)
	}
	m.release(name)
	delete(m.collections, name)
	delete(m.open, name)
	return nil
}

func (m *memory) read(name string) (state, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, err := m.view(name)
	if err != nil {
		return state{}, err
	}
	return v.state, nil
}

func (m *memory) Get(_ context.Context, name string, ids []string) ([]sdk.Entry, error) {
	s, err := m.read(name)
	entries := make([]sdk.Entry, len(ids))
	for i, id := range ids {
		entries[i] = s.entries[id]
		entries[i].Vector = nil
	}
	return entries, err
}

// Scan ends a page after 16 MiB, so that it fits a message.
func (m *memory) Scan(_ context.Context, name string, s sdk.Scan) (sdk.Page, error) {
	now, err := m.read(name)
	var page sdk.Page
	size := 0
	for _, id := range slices.Sorted(maps.Keys(now.entries)) {
		e := now.entries[id]
		if id <= s.After || len(s.Labels) > 0 && !slices.Contains(s.Labels, e.Label) {
			continue
		}
		if s.Limit > 0 && len(page.Entries) == s.Limit || size > 16<<20 {
			page.Next = page.Entries[len(page.Entries)-1].ID
			break
		}
		if !s.Texts {
			e.Text, e.Context, e.Meta = "", "", nil
		}
		if !s.Vectors {
			e.Vector = nil
		}
		size += len(e.Text) + len(e.Context) + 4*len(e.Vector)
		page.Entries = append(page.Entries, e)
	}
	return page, err
}

func (m *memory) Search(ctx context.Context, name string, s sdk.Search, queries []sdk.Query) ([]sdk.Hits, error) {
	now, err := m.read(name)
	if err != nil {
		return nil, err
	}
	if s.Mode != sdk.ModeDense && now.schema.Analyzer == "" {
		return nil, sdk.Invalid(errors.New("the collection has no words"))
	}
	hits, failed := make([]sdk.Hits, len(queries)), sdk.RowErrors{}
	for i, q := range queries {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if s.Mode != sdk.ModeLexical {
			square := dot(q.Vector, q.Vector)
			if len(q.Vector) != now.schema.Dimension || math.IsNaN(square-square) {
				failed[i] = sdk.Invalid(errors.New("the vector cannot be searched for"))
				continue
			}
			hits[i].Dense = now.best(q, s.NumCandidates, func(e sdk.Entry) (sdk.Hit, bool) {
				norm := math.Sqrt(square * dot(e.Vector, e.Vector))
				cosine := dot(q.Vector, e.Vector) / max(norm, math.SmallestNonzeroFloat64)
				return sdk.Hit{ID: e.ID, Dense: float32(cosine), Lexical: sdk.Unscored}, square > 0
			}, func(h sdk.Hit) float32 { return h.Dense })
		}
		if s.Mode != sdk.ModeDense {
			hits[i].Lexical = now.best(q, s.NumCandidates, now.bm25(q.Text), func(h sdk.Hit) float32 { return h.Lexical })
		}
	}
	if len(failed) > 0 {
		return hits, failed
	}
	return hits, nil
}

// best returns the hits among the entries that the query's filter selects.
func (s state) best(q sdk.Query, depth int, hit func(sdk.Entry) (sdk.Hit, bool), score func(sdk.Hit) float32) []sdk.Hit {
	hits := []sdk.Hit{}
	for _, e := range s.entries {
		if h, ok := hit(e); ok && q.Filter.Match(e.ID, e.Label, e.Meta) {
			hits = append(hits, h)
		}
	}
	slices.SortFunc(hits, func(a, b sdk.Hit) int { return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(a.ID, b.ID)) })
	return hits[:min(depth, len(hits))]
}

// lexicon is what BM25 knows of a state.
type lexicon struct {
	words     map[string]map[string]int // of an entry: how often each
	lengths   map[string]int            // of an entry
	frequency map[string]int            // in how many entries a word is
	total     int                       // length
}

func lexiconOf(s state) *lexicon {
	l := &lexicon{map[string]map[string]int{}, map[string]int{}, map[string]int{}, 0}
	for id, e := range s.entries {
		l.words[id] = wordsOf(e.Context+"\n"+e.Text, s.schema.Analyzer)
		for word, times := range l.words[id] {
			l.frequency[word]++
			l.lengths[id] += times
		}
		l.total += l.lengths[id]
	}
	return l
}

// bm25 returns the score of entries for a text, by the formula of sdk.Hits.
func (s state) bm25(text string) func(sdk.Entry) (sdk.Hit, bool) {
	l, n := s.lexicon(), float64(len(s.entries))
	asked := wordsOf(text, s.schema.Analyzer)
	order := slices.Sorted(maps.Keys(asked)) // the same sum each time
	return func(e sdk.Entry) (sdk.Hit, bool) {
		h := sdk.Hit{ID: e.ID, Dense: sdk.Unscored}
		for _, word := range order {
			tf, df := float64(l.words[e.ID][word]), float64(l.frequency[word])
			if tf == 0 {
				continue
			}
			idf := math.Log1p((n - df + 0.5) / (df + 0.5))
			length := float64(l.lengths[e.ID]) * n / float64(max(l.total, 1))
			h.Lexical += float32(float64(asked[word]) * idf * tf / (tf + 1.2*(0.25+0.75*length)))
		}
		return h, h.Lexical > 0
	}
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range min(len(a), len(b)) {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
