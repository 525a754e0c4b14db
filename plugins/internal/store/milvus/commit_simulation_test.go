package milvus

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/milvus-io/milvus-proto/go-api/v2/schemapb"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"

	"github.com/racflow/racflow/sdk"
)

var onlySeed = flag.Uint64("seed", 0, "the one schedule that TestSimulation runs, and prints")

// TestSimulation lets writers and readers of one collection work at once, by
// schedules that lose and delay calls and replies and kill processes, and checks what
// commit.go promises. A schedule that breaks a promise is printed, and
//
//	go test -run Simulation ./plugins/internal/store/milvus -seed N
//
// runs it again.
func TestSimulation(t *testing.T) {
	seeds := uint64(350)
	if !testing.Short() {
		seeds = 1000
	}
	first := uint64(1)
	if *onlySeed > 0 {
		first, seeds = *onlySeed, 1
	}
	acknowledged, dead := 0, 0
	for seed := first; seed < first+seeds && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) {
			s := newSimulation(t, seed)
			s.simulate()
			acknowledged += len(s.acknowledged)
			dead += s.dead
			if t.Failed() || *onlySeed > 0 {
				t.Logf("seed %d:\n%s", seed, s.log.String())
			}
		})
	}
	t.Logf("%d commits, %d dead processes", acknowledged, dead)
	if *onlySeed == 0 && (acknowledged < int(seeds) || dead < int(seeds)/4) {
		t.Errorf("%d schedules had %d commits and %d dead processes: they show nothing", seeds, acknowledged, dead)
	}
}

// simulation is a schedule and what is to be expected. Every commit is known by its note.
type simulation struct {
	schedule
	t            *testing.T
	contents     map[string]map[string]string // note to id to text
	base         map[string]string            // note to the note that it was made on
	acknowledged []string
	consistency  string
	dead         int
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	return &simulation{
		schedule: schedule{rand: rand.New(rand.NewPCG(seed, 0)), begun: time.Now()}, t: t,
		contents: map[string]map[string]string{"": {}}, base: map[string]string{}, consistency: "strong",
	}
}

func (s *simulation) simulate() {
	var all []*process
	s.createTable()
	readers := 2
	if s.rand.IntN(3) == 0 { // readers may miss rows then, and writers may not
		s.consistency, s.engine.behind, readers = "bounded", map[string]map[string]any{}, 0
	}
	for i := range 2 + s.rand.IntN(3) {
		all = append(all, s.start(fmt.Sprintf("writer %d", i), s.write))
	}
	for i := range readers {
		all = append(all, s.start(fmt.Sprintf("reader %d", i), s.read))
	}
	s.faults = []int{1, 3, 10}[s.rand.IntN(3)]
	s.run(all)
	for _, p := range all {
		if p.ctx.Err() != nil {
			s.dead++
		}
		p.die()
	}
	s.settle()
}

// createTable makes the collection before anybody works.
func (s *simulation) createTable() {
	if err := s.table(&process{schedule: &s.schedule, ctx: s.t.Context()}).Create(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// start begins a process, which has a collection and numbers of its own.
func (s *simulation) start(name string, work func(*process, *table.Table, *rand.Rand)) *process {
	p := &process{schedule: &s.schedule, name: name}
	p.ctx, p.die = context.WithCancel(s.t.Context())
	own := rand.New(rand.NewPCG(s.rand.Uint64(), 0))
	t := s.table(p)
	go func() {
		work(p, t, own)
		s.mu.Lock()
		defer s.mu.Unlock()
		p.done = true
	}()
	return p
}

func (s *simulation) table(p *process) *table.Table {
	over, err := table.OverLimit(table.ServerConfig{CallTimeout: 60500 * time.Millisecond, RetryTime: 10 * time.Second}, service{process: p})
	if err != nil {
		s.t.Fatal(err)
	}
	o := table.Options{Prefix: "racflow", Index: "FLAT", SparseIndex: "SPARSE_INVERTED_INDEX", K1: 1.2, B: .75, Consistency: s.consistency, Shards: 1, Replicas: 1, BatchRows: 2, BatchBytes: 1 << 20}
	t, err := table.New(over, o, "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
	if err != nil {
		s.t.Fatal(err)
	}
	return t
}

// write makes a few commits, each on what it finds.
func (s *simulation) write(p *process, t *table.Table, own *rand.Rand) {
	w := &Writer{View: &View{Collection: t.Collection}, Log: slog.New(slog.DiscardHandler)}
	for i := 0; i < 4 && p.ctx.Err() == nil; i++ {
		s.commit(p, w, t, own, fmt.Sprintf("%s, commit %d", p.name, i))
		time.Sleep(time.Duration(own.IntN(4)*own.IntN(20)) * time.Second)
	}
}

func (s *simulation) commit(p *process, w *Writer, t *table.Table, own *rand.Rand, note string) {
	last, err := w.Open(p.ctx, t)
	if err != nil {
		return
	}
	s.mu.Lock()
	content := maps.Clone(s.contents[string(last.Note)])
	s.mu.Unlock()
	for range 1 + own.IntN(4) {
		if own.IntN(4) == 0 {
			id := fmt.Sprint(own.IntN(8))
			err = w.Delete(p.ctx, []string{id})
			delete(content, id)
		} else {
			var entries []sdk.Entry
			for range 1 + own.IntN(6) {
				e := sdk.Entry{ID: fmt.Sprint(own.IntN(8)), Text: note + strings.Repeat(" word", own.IntN(12)), Vector: []float32{1, 0}}
				entries, content[e.ID] = append(entries, e), e.Text
			}
			err = w.Put(p.ctx, entries)
		}
		if err != nil {
			return
		}
	}
	s.mu.Lock()
	s.contents[note], s.base[note] = content, string(last.Note)
	s.mu.Unlock()
	if err := w.Commit(p.ctx, []byte(note)); err != nil {
		return
	}
	s.mu.Lock()
	s.note("%s is acknowledged", note)
	s.acknowledged = append(s.acknowledged, note)
	s.mu.Unlock()
	if s.engine.behind == nil {
		s.readAll(p, w.View, own)
	}
}

// read reads all entries now and then, by a view that it keeps and by new ones.
func (s *simulation) read(p *process, t *table.Table, own *rand.Rand) {
	var view *View
	for i := 0; i < 20 && p.ctx.Err() == nil; i++ {
		if view == nil || own.IntN(3) == 0 {
			s.mu.Lock()
			before := slices.Clone(s.acknowledged)
			s.mu.Unlock()
			last, err := ReadSnapshot(p.ctx, t, nil)
			if err != nil {
				continue
			}
			s.mu.Lock()
			s.checkKept(p.name, before, string(last.Note))
			s.mu.Unlock()
			view = &View{Collection: t.Collection}
			view.Set(last)
		}
		s.readAll(p, view, own)
		time.Sleep(time.Duration(own.IntN(20)) * time.Second)
	}
}

// readAll checks that a reader sees one commit: all of its rows, no others, and its
// statistics.
func (s *simulation) readAll(p *process, view *View, own *rand.Rand) {
	var of *Snapshot
	var rows []table.Found
	err := view.Read(p.ctx, func(snap *Snapshot) error {
		of, rows = snap, nil
		if own.IntN(2) == 0 {
			time.Sleep(time.Duration(own.IntN([]int{60, 120, 300}[own.IntN(3)])) * time.Second) // it is slow
		}
		return snap.Walk(p.ctx, table.AsConfigured, "", snap.Expression(), slices.Concat(table.FieldsScan, table.FieldsTexts), func(r table.Found) bool {
			if !snap.Dead[r.Sequence] {
				rows = append(rows, r)
			}
			return true
		})
	})
	if err != nil {
		return
	}
	got, words, frequencies := map[string]string{}, 0, map[uint32]uint32{}
	for _, r := range rows {
		got[r.Entry.ID] = r.Entry.Text
		counts := table.CountWords(*of.Analyzer, "", r.Entry.Text)
		words += counts.Length
		for _, c := range counts.All() {
			frequencies[c.Word]++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := s.contents[string(of.Note)]; !maps.Equal(got, want) || len(rows) != len(want) {
		s.t.Errorf("%s sees %d rows of %q, %v; want %v", p.name, len(rows), of.Note, got, want)
	}
	if r := of.Record; r.Entries != len(rows) || r.Words != int64(words) || !maps.Equal(frequencies, of.Frequencies) {
		s.t.Errorf("%s: the statistics of %q have %d entries, %d words and %d frequencies; its rows have %d, %d and %d", p.name, of.Note, r.Entries, r.Words, len(of.Frequencies), len(rows), words, len(frequencies))
	}
}

// checkKept checks that the last commit was made on all that were acknowledged before.
func (s *simulation) checkKept(who string, acknowledged []string, last string) {
	kept := map[string]bool{}
	for note := last; note != ""; note = s.base[note] {
		kept[note] = true
	}
	for _, note := range acknowledged {
		if !kept[note] {
			s.t.Errorf("%s finds %q as the last commit, in which %q is lost", who, last, note)
		}
	}
}

// settle checks what is left once everybody is gone: the lease ends, the next writers
// remove what nothing refers to, and no commit was made over another.
func (s *simulation) settle() {
	on := map[string]string{}
	for _, note := range s.acknowledged {
		if other := on[s.base[note]]; other != "" {
			s.t.Errorf("%q and %q were both made on %q", other, note, s.base[note])
		}
		on[s.base[note]] = note
	}
	s.calm, s.stalled, s.engine.behind = true, nil, nil
	s.run([]*process{s.start("the last writer", s.lastWriter)})
}

func (s *simulation) lastWriter(p *process, t *table.Table, own *rand.Rand) {
	w := &Writer{View: &View{Collection: t.Collection}, Log: slog.New(slog.DiscardHandler)}
	time.Sleep(leaseTime + time.Second)
	var base Record // of the last commit
	for i := range 2 {
		last, err := w.Open(p.ctx, t)
		if err == nil {
			base = last.Record
			s.checkKept(p.name, s.acknowledged, string(last.Note))
			err = w.Delete(p.ctx, []string{"no entry"})
		}
		if err == nil {
			note := fmt.Sprint("last ", i)
			s.contents[note], s.base[note] = s.contents[string(last.Note)], string(last.Note)
			err = w.Commit(p.ctx, []byte(note))
		}
		if err != nil {
			s.t.Errorf("%s: %v", p.name, err)
			return
		}
		time.Sleep(settled + t.Server.Config.RetryTime + time.Second)
	}
	s.readAll(p, w.View, own)
	r := w.View.Latest().Record
	entries := 0
	for key := range s.engine.rows {
		if !strings.HasPrefix(key, "~") {
			entries++
		} else if turn, err := KeyTurn(key); err != nil || turn < base.Commit && !base.Keys()[key] && !r.Keys()[key] {
			s.t.Errorf("%s leaves the row %s", p.name, key)
		}
	}
	if entries != r.Entries {
		s.t.Errorf("%s leaves %d rows for %d entries", p.name, entries, r.Entries)
	}
}

func keysOf(fields []*schemapb.FieldData) string {
	for _, f := range fields {
		if f.FieldName == table.FieldKey {
			return strings.Join(f.GetScalars().GetStringData().Data, " ")
		}
	}
	return ""
}
