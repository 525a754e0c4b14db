package local

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/racflow/racflow/plugins/internal/store/segment"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// smallLimits returns limits with which few rows already cause files, merges and spills.
func smallLimits(r *rand.Rand) limits {
	return limits{rows: 1 + r.IntN(40), bytes: int64(1000 + r.IntN(20_000)), spill: 1 + r.IntN(2)}
}

// model makes the same changes to a store and to a map, and compares them.
type model struct {
	*testing.T
	r                 *rand.Rand
	dir               string
	s                 *store
	limits            limits
	k1, b             float64
	committed, staged map[string]sdk.Entry
	seen              struct{ files, merges, spills int }
}

// TestModel makes random histories of changes, reopening, commits of other processes and compaction. Every answer
// must match the definition.
func TestModel(t *testing.T) {
	must.NoRace(t)
	var files, merges, spills int
	seeds := uint64(10)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 7))
		m := &model{T: t, r: r, dir: t.TempDir(), limits: smallLimits(r), k1: 1.2, b: 0.75, committed: map[string]sdk.Entry{}, staged: map[string]sdk.Entry{}}
		if seed%3 == 1 {
			m.k1, m.b = 0.9, 0.4
		}
		if seed%5 == 4 {
			m.limits = defaultLimits()
		}
		m.open()
		for step := range 250 {
			m.change(step)
			if err := m.compare(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
		if err := check(ctx, Location{m.dir, "c"}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		files, merges, spills = files+m.seen.files, merges+m.seen.merges, spills+m.seen.spills
	}
	if files == 0 || merges == 0 || spills == 0 {
		t.Errorf("the histories have %d files, %d merges and %d spills: they show less than they should", files, merges, spills)
	}
}

func (m *model) open() {
	m.s = openStore(m, m.dir)
	m.s.limits, m.s.config.Sync = m.limits, false
	m.s.config.K1, m.s.config.B = m.k1, m.b
	mustOpen(m, m.s, 4)
}

func (m *model) change(step int) {
	r := m.r
	switch r.IntN(14) {
	default:
		var batch []sdk.Entry
		for range 1 + r.IntN(20) {
			e := randomEntry(r, fmt.Sprint(r.IntN(100)), 4)
			batch = append(batch, e)
			m.staged[e.ID] = e
		}
		must.Do(m, m.s.Put(ctx, "c", batch))
		if len(m.s.collections["c"].staged.Parts.Parts) > 0 {
			m.seen.spills++
		}
	case 0, 1, 2:
		var gone []string
		for range r.IntN(15) {
			gone = append(gone, fmt.Sprint(r.IntN(120)))
			delete(m.staged, gone[len(gone)-1])
		}
		must.Do(m, m.s.Delete(ctx, "c", gone))
	case 3, 4, 5:
		before := m.s.collections["c"].now.Load()
		must.Do(m, m.s.Commit(ctx, "c", fmt.Append(nil, step)))
		m.committed = maps.Clone(m.staged)
		after := m.s.collections["c"].now.Load()
		m.seen.files += len(after.Listed)
		if len(after.Listed) < len(before.Listed) {
			m.seen.merges++
		}
	case 6:
		m.s.Close()
		m.open()
		m.staged = maps.Clone(m.committed)
	case 7:
		m.s.Close()
		m.open()
		m.staged = maps.Clone(m.committed)
		if len(m.committed) > 0 && r.IntN(3) == 0 {
			if _, err := Compact(ctx, Location{m.dir, "c"}); err != nil {
				m.Fatal(err)
			}
			mustOpen(m, m.s, 4)
		}
	case 8:
		if m.s.collections["c"].staged != nil {
			return
		}
		other := openStore(m, m.dir) // like another process
		other.limits, other.config.Sync = m.limits, false
		mustOpen(m, other, 4)
		e := randomEntry(r, fmt.Sprint(r.IntN(100)), 4)
		must.Do(m, other.Put(ctx, "c", []sdk.Entry{e}))
		must.Do(m, other.Commit(ctx, "c", fmt.Append(nil, step)))
		m.staged[e.ID] = e
		m.committed = maps.Clone(m.staged)
		mustOpen(m, m.s, 4)
	}
}

// compare checks all possible answers against the map.
func (m *model) compare() error {
	all := everything(m, m.s)
	if len(all) != len(m.committed) {
		return fmt.Errorf("%d entries, want %d", len(all), len(m.committed))
	}
	want := reference{k1: m.k1, b: m.b, entries: all}
	for _, e := range all {
		w, ok := m.committed[e.ID]
		if !ok || !sameEntry(e, w) || math.Abs(cosine(w.Vector, e.Vector)-1) > 1e-6 && !segment.IsZero(w.Vector) {
			return fmt.Errorf("entry %+v, want %+v", e, w)
		}
	}
	asked := []string{fmt.Sprint(m.r.IntN(100)), "unknown", fmt.Sprint(m.r.IntN(100))}
	got, err := m.s.Get(ctx, "c", asked)
	if err != nil {
		return err
	}
	for i, e := range got {
		if !sameEntry(e, m.committed[asked[i]]) {
			return fmt.Errorf("get %s: %+v, want %+v", asked[i], e, m.committed[asked[i]])
		}
	}
	queries := make([]sdk.Query, 1+m.r.IntN(3))
	for i := range queries {
		queries[i] = sdk.Query{Text: randomText(m.r, 3) + " often", Vector: append([]float32{1}, randomVector(m.r, 3)...)}
		if m.r.IntN(4) > 0 {
			queries[i].Filter = randomFilter(m.r, 3)
		}
	}
	return m.search(want, queries)
}

func (m *model) search(want reference, queries []sdk.Query) error {
	mode := []sdk.Mode{sdk.ModeHybrid, sdk.ModeDense, sdk.ModeLexical}[m.r.IntN(3)]
	depth := 1 + m.r.IntN(30)
	hits, err := m.s.Search(ctx, "c", sdk.Search{Mode: mode, NumCandidates: depth}, queries)
	if err != nil {
		return err
	}
	for i, q := range queries {
		dense, lexical := want.dense(q.Vector), want.lexical(q.Text)
		for _, e := range want.entries {
			if !q.Filter.Match(e.ID, e.Label, e.Meta) {
				delete(dense, e.ID)
				delete(lexical, e.ID)
			}
		}
		var wrong error
		if mode != sdk.ModeLexical {
			wrong = sameRanking(hits[i].Dense, denseScore, dense, depth)
		}
		if mode != sdk.ModeDense {
			wrong = errors.Join(wrong, sameRanking(hits[i].Lexical, lexicalScore, lexical, depth))
		}
		for _, h := range slices.Concat(hits[i].Dense, hits[i].Lexical) {
			if mode != sdk.ModeDense && math.Abs(float64(h.Lexical)-lexical[h.ID]) > 1e-4 || math.Abs(float64(h.Dense)-dense[h.ID]) > 1e-5 {
				wrong = errors.Join(wrong, fmt.Errorf("%s has %v and %v, want %v and %v", h.ID, h.Dense, h.Lexical, dense[h.ID], lexical[h.ID]))
			}
		}
		if wrong != nil {
			return fmt.Errorf("%s, filter %s: %w", mode, q.Filter, wrong)
		}
	}
	return nil
}

// sameEntry compares everything but the vectors. NaN equals itself here.
func sameEntry(a, b sdk.Entry) bool {
	return a.ID == b.ID && a.Text == b.Text && a.Context == b.Context && a.Label == b.Label && fmt.Sprint(a.Meta) == fmt.Sprint(b.Meta)
}
