package milvus

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

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

// knownOf returns what a store knows of the collection.
func knownOf(s *store) *known { return s.collection("c").latest.Load() }

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
	if got := idsOf(t, b); got != "b a" {
		t.Errorf("entries %q", got)
	}
}

// bookOf returns the collection's book in a store.
func bookOf(t testing.TB, s *store) book {
	t.Helper()
	books, err := s.books(t.Context(), false)
	must.Do(t, err)
	return book{books, "c"}
}

// endLease ends all claims of writers, as if their time was over.
func endLease(t testing.TB, s *store) {
	t.Helper()
	b := bookOf(t, s)
	texts, err := b.Notes(t.Context(), b.key("claim", ""))
	must.Do(t, err)
	if len(texts) == 0 {
		t.Fatal("there is no claim")
	}
	for key := range texts {
		must.Do(t, b.Upsert(t.Context(), []table.Row{table.Note(key, `{"holder": "gone"}`)}))
	}
}

// A suspended writer must not commit when it resumes.
func TestWriterThatIsLate(t *testing.T) {
	e := startEngine(t)
	a, b := small(t, e.config()), openStore(t, e.config())
	putAll(t, a, entry("a", "one"))
	must.Do(t, a.Put(t.Context(), "c", []sdk.Entry{entry("a", "changed"), entry("left", "behind")}))
	endLease(t, a)
	mustOpen(t, b)
	putAll(t, b, entry("b", "two"))
	if err := a.Commit(t.Context(), "c", []byte("late")); sdk.CodeOf(err) != sdk.CodeTransient || !strings.Contains(err.Error(), "as it was at the last commit") {
		t.Errorf("the late writer's commit gives %v", err)
	}
	if err := a.Commit(t.Context(), "c", []byte("late")); err == nil || !strings.Contains(err.Error(), "open it again") {
		t.Errorf("again: %v", err)
	}
	if c := mustOpen(t, a); c.Entries != 2 || string(c.Note) != "note" || idsOf(t, a) != "b a" {
		t.Errorf("then there is %+v, %q", c, idsOf(t, a))
	}
}

// A change that was interrupted is partly visible. It is detected, and the next change makes the collection complete:
// with the statistics of all rows, and without leftovers of the earlier writer.
func TestChangeThatIsCutOff(t *testing.T) {
	e := startEngine(t)
	theirs, err := local.Stage().Open(t.Context(), sdk.Setup{StateDir: t.TempDir()}, nil)
	must.Do(t, err)
	reference := theirs.(sdk.Store)
	for name, committed := range map[string][]sdk.Entry{"a change": {entry("a", "one two"), entry("b", "one three three"), entry("c", "four")}, "a first build": nil} {
		t.Run(name, func(t *testing.T) {
			config := e.config()
			config.Prefix = "x" + strings.ReplaceAll(name, " ", "")
			a, reader := small(t, config), openStore(t, config)
			putAll(t, a, committed...)
			mustOpen(t, reader)
			must.Do(t, a.Put(t.Context(), "c", []sdk.Entry{entry("a", "one one two"), entry("d", "three")}))
			must.Do(t, a.Delete(t.Context(), "c", []string{"b", "nothing"}))
			must.Do(t, a.collection("c").change.apply(t.Context())) // and then the writer is killed
			endLease(t, a)

			hits, err := reader.Search(t.Context(), "c", sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 5}, []sdk.Query{{Text: "four", Vector: []float32{1, 0}}})
			if err != nil || len(committed) > 0 && (len(hits[0].Dense) != 3 || len(hits[0].Lexical) != 1) {
				t.Errorf("a reader finds %+v, %v", hits, err)
			}
			list, err := reader.List(t.Context())
			if err != nil || len(list) != 1 || string(list[0].Note) != "note" || list[0].Entries != len(committed) {
				t.Errorf("listed as %+v, %v", list, err)
			}
			b := openStore(t, config)
			want := "a c d"
			if committed == nil {
				want = "a d"
			}
			ids := strings.Fields(idsAfterOpening(t, b))
			if slices.Sort(ids); strings.Join(ids, " ") != want {
				t.Errorf("then there are %q, want %q", ids, want)
			}
			if c := mustOpen(t, b); c.Entries != len(ids) || c.Note != nil {
				t.Errorf("opened as %+v", c)
			}
			rest := []sdk.Entry{entry("d", "three four"), entry("e", "two")}
			putAll(t, b, rest...)
			if rows, err := bookOf(t, b).Notes(t.Context(), table.RowKey("c")+"-"); err != nil || len(rows) > 5 { // records of three steps, and two notes
				t.Errorf("%d rows in the book, %v: %q", len(rows), err, rows)
			}

			must.Do(t, reference.Drop(t.Context(), "c"))
			_, err = reference.Open(t.Context(), "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
			must.Do(t, err)
			must.Do(t, reference.Put(t.Context(), "c", slices.Concat(committed, []sdk.Entry{entry("a", "one one two")}, rest)))
			must.Do(t, reference.Delete(t.Context(), "c", []string{"b"}))
			must.Do(t, reference.Commit(t.Context(), "c", []byte("note")))
			sameWords(t, b, reference, "one", "two three", "four two")
		})
	}
}

func idsAfterOpening(t testing.TB, s *store) string {
	t.Helper()
	mustOpen(t, s)
	return idsOf(t, s)
}

// sameWords compares the results and scores of two stores for words.
func sameWords(t *testing.T, s, reference sdk.Store, texts ...string) {
	t.Helper()
	for _, text := range texts {
		for _, depth := range []int{1, 10, 90} {
			search, q := sdk.Search{Mode: sdk.ModeLexical, NumCandidates: depth}, []sdk.Query{{Text: text}}
			a, err := s.Search(t.Context(), "c", search, q)
			must.Do(t, err)
			b, err := reference.Search(t.Context(), "c", search, q)
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

// Many changes do not stay in memory until the commit. If such a change is interrupted, the note says so.
func TestManyChanges(t *testing.T) {
	e := startEngine(t)
	s := small(t, e.config())
	text := strings.Repeat("0123456789", 6000)
	for i := range 1200 {
		must.Do(t, s.Put(t.Context(), "c", []sdk.Entry{entry(fmt.Sprint(i%1150), text)}))
	}
	if c := s.collection("c").change; c.bytes > 10<<20 || len(c.written) < 1000 {
		t.Errorf("%d bytes wait, and %d rows are written", c.bytes, len(c.written))
	}
	must.Do(t, s.Commit(t.Context(), "c", nil))
	if n, err := knownOf(s).Count(t.Context()); err != nil || n != 1150 || knownOf(s).record.Entries != 1150 {
		t.Errorf("%d rows, %v; %+v", n, err, knownOf(s).record)
	}
}

// Later texts may be so much longer that each word of the earlier ones counts more: the scores take all texts into
// account.
func TestLongerTexts(t *testing.T) {
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
	sameWords(t, s, reference.(sdk.Store), "tea", "number7", "tea word3", "word5 word5 number9 nothing")
}
