package milvus

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/plugins/internal/store/local"
	"github.com/racflow/racflow/plugins/internal/store/milvus/table"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func idsOf(t testing.TB, s *store) string {
	t.Helper()
	page, err := s.Scan(t.Context(), "c", sdk.Scan{})
	must.Do(t, err)
	ids := make([]string, len(page.Entries))
	for i, e := range page.Entries {
		ids[i] = e.ID
	}
	return strings.Join(ids, " ")
}

// snapshotOf is what a store knows of the last commit.
func snapshotOf(s *store) *Snapshot { return s.collection("c").Latest() }

// sent makes batches of one row and returns how to wait until there are so many on
// the server, whoever may see them.
func sent(c *config) func(t testing.TB, s *store, rows int) {
	c.BatchRows = 1
	return func(t testing.TB, s *store, rows int) {
		t.Helper()
		for rowsOf(t, s) < rows {
			time.Sleep(time.Millisecond)
		}
	}
}

// rowsOf counts all rows of entries on the server, whoever may see them.
func rowsOf(t testing.TB, s *store) int {
	t.Helper()
	n, err := snapshotOf(s).Count(t.Context(), table.Between(0, table.SystemSequence))
	must.Do(t, err)
	return n
}

func TestOneWriterAtATime(t *testing.T) {
	e := startEngine(t)
	a, b := small(t, e.config()), small(t, e.config())
	must.Do(t, a.Put(t.Context(), "c", []sdk.Entry{entry("a", "one")}))
	err := b.Put(t.Context(), "c", []sdk.Entry{entry("b", "two")})
	if sdk.CodeOf(err) != sdk.CodeTransient || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("a second writer gets %v", err)
	}
	must.Do(t, a.Commit(t.Context(), "c", []byte("a")))
	if err := b.Put(t.Context(), "c", []sdk.Entry{entry("b", "two")}); sdk.CodeOf(err) != sdk.CodeTransient || !strings.Contains(err.Error(), "open it again") {
		t.Errorf("a writer that has not seen the commit gets %v", err)
	}
	if c := mustOpen(t, b); c.Entries != 1 || string(c.Note) != "a" {
		t.Errorf("%+v", c)
	}
	putAll(t, b, entry("b", "two"))
	if got := idsOf(t, b); got != "a b" {
		t.Errorf("entries %q", got)
	}
}

// changeSystemRow changes one value of the last row that a turn has of a kind.
func changeSystemRow(t testing.TB, s *store, kind, name string, value any) {
	t.Helper()
	c := snapshotOf(s)
	expr := fmt.Sprintf("%s == %d", table.FieldSequence, table.SystemSequence)
	rows, err := c.Query(t.Context(), table.NewestTable, expr, table.FieldKey, table.FieldText)
	must.Do(t, err)
	rows = slices.DeleteFunc(rows, func(r table.Found) bool { return !strings.Contains(r.Key, "-"+kind) })
	last := slices.MaxFunc(rows, func(a, b table.Found) int { return strings.Compare(a.Key, b.Key) })
	var values map[string]any
	must.Do(t, json.Unmarshal([]byte(last.Entry.Text), &values))
	if _, ok := values[name]; !ok {
		t.Fatalf("row %s has no %s: %s", last.Key, name, last.Entry.Text)
	}
	values[name] = value
	text, err := json.Marshal(values)
	must.Do(t, err)
	must.Do(t, c.PutSystem(t.Context(), table.System(last.Key, string(text))))
}

// A writer that was killed holds its lease and leaves rows behind; one that was
// only held up must not commit when it resumes.
func TestWriterThatIsGone(t *testing.T) {
	e := startEngine(t)
	config := e.config()
	wait := sent(&config)
	a := small(t, config)
	putAll(t, a, entry("a", "one"))
	must.Do(t, a.Put(t.Context(), "c", []sdk.Entry{entry("a", "changed"), entry("left", "behind")}))
	wait(t, a, 3)
	changeSystemRow(t, a, "claim", "until", 0) // as if the time of the lease were over

	b := small(t, e.config())
	if got := idsOf(t, b); got != "a" {
		t.Errorf("before the next writer: %q", got)
	}
	putAll(t, b, entry("b", "two"))
	if got := rowsOf(t, b); got != 2 || idsOf(t, b) != "a b" {
		t.Errorf("the next writer leaves %d rows, entries %q", got, idsOf(t, b))
	}
	if err := a.Commit(t.Context(), "c", []byte("late")); sdk.CodeOf(err) != sdk.CodeTransient {
		t.Errorf("the late writer's commit gives %v", err)
	}
	if c := mustOpen(t, b); c.Entries != 2 || string(c.Note) != "note" {
		t.Errorf("then there is %+v", c)
	}
}

// A reader does not see what a writer has put so far, even where all of it is
// nearer than what it does see.
func TestWriterAtWork(t *testing.T) {
	e := startEngine(t)
	busy := e.config()
	busy.BatchRows = 50
	writer := small(t, busy)
	putAll(t, writer, entry("a", "one two"), entry("b", "one three"), entry("c", "one four"))
	reader := openStore(t, e.config())
	mustOpen(t, reader)
	search := func() {
		t.Helper()
		for x, vector := range [][]float32{{1, .2}, {-1, 0}} {
			hits, err := reader.Search(t.Context(), "c", sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 2}, []sdk.Query{{Text: "one", Vector: vector}})
			must.Do(t, err)
			for _, leg := range [][]sdk.Hit{hits[0].Dense, hits[0].Lexical} {
				if len(leg) != 2 || leg[0].ID != "a" || leg[1].ID != "b" || leg[0].Entry.Label != "label of a" {
					t.Errorf("query %d finds %+v", x, leg)
				}
			}
		}
	}
	search()
	many := make([]sdk.Entry, 200)
	for i := range many {
		many[i] = sdk.Entry{ID: fmt.Sprint("new ", i), Text: "one one", Vector: []float32{1, .2}}
	}
	must.Do(t, writer.Put(t.Context(), "c", many))
	for rowsOf(t, writer) < 203 {
		time.Sleep(time.Millisecond)
	}
	search()
}

// Dead rows are removed once no reader can ask for them, and parts of old
// records at the next change.
func TestTidy(t *testing.T) {
	e := startEngine(t)
	s := small(t, e.config())
	putAll(t, s, entry("a", "one"), entry("b", "two"), entry("c", "three"))
	putAll(t, s, entry("a", "other"))
	if got := rowsOf(t, s); got != 4 {
		t.Errorf("%d rows before the grace is over", got)
	}
	changeSystemRow(t, s, "record", "time", float64(time.Now().Add(-2*Grace-time.Second).Unix()))
	mustOpen(t, s)
	must.Do(t, s.Delete(t.Context(), "c", []string{"no entry"})) // the beginning of a change
	rows, err := snapshotOf(s).Query(t.Context(), table.NewestTable, fmt.Sprintf("%s == %d", table.FieldSequence, table.SystemSequence), table.FieldKey)
	must.Do(t, err)
	// A record, the state, and of the turn that has begun its claim and base.
	if got := rowsOf(t, s); got != 3 || len(rows) != 4 {
		t.Errorf("then %d rows, and %+v", got, rows)
	}
	mustOpen(t, s)
	if got := idsOf(t, s); got != "b c a" {
		t.Errorf("entries %q", got)
	}
}

// The average length may change so much that the server's order of old rows is far from
// today's: the answers stay right.
func TestDrift(t *testing.T) {
	e := startEngine(t)
	s := small(t, e.config())
	reference, err := local.Stage().Open(t.Context(), sdk.Setup{StateDir: t.TempDir()}, nil)
	must.Do(t, err)
	_, err = reference.(sdk.Store).Open(t.Context(), "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
	must.Do(t, err)
	var short, long []sdk.Entry
	for i := range 300 {
		short = append(short, entry(fmt.Sprintf("short %03d", i), fmt.Sprintf("tea number%d", i%50)))
		long = append(long, entry(fmt.Sprintf("long %03d", i), strings.Repeat(fmt.Sprintf("tea word%d ", i%20), 1+i%30)))
	}
	for _, each := range []sdk.Store{s, reference.(sdk.Store)} {
		for _, entries := range [][]sdk.Entry{short, long} {
			must.Do(t, each.Put(t.Context(), "c", entries))
			must.Do(t, each.Commit(t.Context(), "c", []byte(entries[0].ID)))
		}
	}
	if r := snapshotOf(s).Record; r.Average() < 5*r.Lowest || r.Entries != 600 {
		t.Errorf("the average is %v and rows are weighed with %v: no drift; %d entries", r.Average(), r.Lowest, r.Entries)
	}
	for _, text := range []string{"tea", "number7", "tea word3", "word5 word5 number9 nothing"} {
		for _, depth := range []int{1, 10, 90} {
			q := []sdk.Query{{Text: text}}
			a, err := s.Search(t.Context(), "c", sdk.Search{Mode: sdk.ModeLexical, NumCandidates: depth}, q)
			must.Do(t, err)
			b, err := reference.(sdk.Store).Search(t.Context(), "c", sdk.Search{Mode: sdk.ModeLexical, NumCandidates: depth}, q)
			must.Do(t, err)
			same := slices.EqualFunc(a[0].Lexical, b[0].Lexical, func(a, b sdk.Hit) bool {
				return a.ID == b.ID && math.Abs(float64(a.Lexical-b.Lexical)) < 1e-5
			})
			if !same {
				t.Errorf("%q, depth %d: %d and %d hits differ", text, depth, len(a[0].Lexical), len(b[0].Lexical))
			}
		}
	}
}
