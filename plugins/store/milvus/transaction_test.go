package milvus

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/plugins/store/local"
	"github.com/racflow/racflow/sdk"
)

func idsOf(t testing.TB, s *store) string {
	t.Helper()
	page, err := s.Scan(t.Context(), "c", sdk.Scan{})
	must(t, err)
	ids := make([]string, len(page.Entries))
	for i, e := range page.Entries {
		ids[i] = e.ID
	}
	return strings.Join(ids, " ")
}

// rowsOf counts all rows of entries on the server, whoever may see them.
func rowsOf(t testing.TB, s *store) int {
	t.Helper()
	n, err := s.collection("c").count(t.Context(), between(0, noEntry))
	must(t, err)
	return n
}

func TestOneWriterAtATime(t *testing.T) {
	e := startEngine(t)
	a, b := small(t, e.config()), small(t, e.config())
	must(t, a.Put(t.Context(), "c", []sdk.Entry{entry("a", "one")}))
	err := b.Put(t.Context(), "c", []sdk.Entry{entry("b", "two")})
	if sdk.CodeOf(err) != sdk.CodeTransient || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("a second writer gets %v", err)
	}
	must(t, a.Commit(t.Context(), "c", []byte("a")))
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

// endedProcess is the number of a process that is gone.
func endedProcess(t testing.TB) int {
	t.Helper()
	cmd := exec.Command("true")
	must(t, cmd.Run())
	return cmd.Process.Pid
}

// A writer that was killed holds its lease and leaves rows behind; one that was
// only held up must not commit when it goes on.
func TestWriterThatIsGone(t *testing.T) {
	e := startEngine(t)
	a := small(t, e.config())
	putAll(t, a, entry("a", "one"))
	must(t, a.Put(t.Context(), "c", []sdk.Entry{entry("a", "changed"), entry("left", "behind")}))
	c := a.collection("c")
	must(t, c.sent(t.Context()))
	held, err := c.readLease(t.Context())
	must(t, err)
	held.PID = endedProcess(t)
	must(t, c.putLease(t.Context(), held))

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

func TestLease(t *testing.T) {
	hostname, err := os.Hostname()
	must(t, err)
	soon := time.Now().Add(time.Minute).Unix()
	for name, test := range map[string]struct {
		lease lease
		free  bool
	}{
		"never taken":            {lease{}, true},
		"released":               {lease{Until: soon}, true},
		"ended":                  {lease{Holder: "x", Until: soon - 120}, true},
		"of a process here":      {lease{Holder: "x", Machine: machine(hostname), PID: os.Getppid(), Until: soon}, false},
		"of this process":        {lease{Holder: "x", Machine: machine(hostname), PID: os.Getpid(), Until: soon}, false},
		"of a process that died": {lease{Holder: "x", Machine: machine(hostname), PID: endedProcess(t), Until: soon}, true},
		"of another machine":     {lease{Holder: "x", Machine: "elsewhere", PID: endedProcess(t), Until: soon}, false},
	} {
		if err := test.lease.free(); (err == nil) != test.free {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Dead rows are removed once no reader can ask for them, and parts of old
// records at the next change.
// A reader does not see what a writer has put so far, even where all of it is
// nearer than what it does see.
func TestWriterAtWork(t *testing.T) {
	e := startEngine(t)
	busy := e.config()
	busy.BatchRows = 50
	writer := small(t, busy)
	putAll(t, writer, entry("a", "one two"), entry("b", "one three"), entry("c", "one four"))
	reader := small(t, e.config())
	search := func() {
		t.Helper()
		for x, vector := range [][]float32{{1, .2}, {-1, 0}} {
			hits, err := reader.Search(t.Context(), "c", sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 2}, []sdk.Query{{Text: "one", Vector: vector}})
			must(t, err)
			for _, side := range [][]sdk.Hit{hits[0].Dense, hits[0].Lexical} {
				if len(side) != 2 || side[0].ID != "a" || side[1].ID != "b" || side[0].Entry.Label != "label of a" {
					t.Errorf("query %d finds %+v", x, side)
				}
			}
		}
	}
	search()
	c := reader.collection("c")
	if c.crowded.Load() != 0 {
		t.Error("the record and the lease take the place of entries")
	}
	many := make([]sdk.Entry, 200)
	for i := range many {
		many[i] = sdk.Entry{ID: fmt.Sprint("new ", i), Text: "one one", Vector: []float32{1, .2}}
	}
	must(t, writer.Put(t.Context(), "c", many))
	must(t, writer.collection("c").sent(t.Context()))
	search()
	if c.crowded.Load() != c.known().record.Commit {
		t.Error("the rows of the writer were not in the way")
	}
}

func TestTidy(t *testing.T) {
	e := startEngine(t)
	s := small(t, e.config())
	putAll(t, s, entry("a", "one"), entry("b", "two"), entry("c", "three"))
	putAll(t, s, entry("a", "other"))
	if got := rowsOf(t, s); got != 4 {
		t.Errorf("%d rows before the grace is over", got)
	}
	c := s.collection("c")
	old := *c.known()
	old.record.Time -= int64(grace/time.Second) + 1
	tidied, err := c.tidy(t.Context(), &old)
	must(t, err)
	keys, err := c.specialKeys(t.Context())
	must(t, err)
	// A record, a lease, the note, the words twice, and the dead row.
	if got := rowsOf(t, s); !tidied || got != 3 || len(keys) != 6 {
		t.Errorf("then %d rows, and %q", got, keys)
	}
	if got := idsOf(t, s); got != "b c a" {
		t.Errorf("entries %q", got)
	}
	// All of it replaced at once: nothing is listed as dead, a floor is enough.
	putAll(t, s, entry("a", "1"), entry("b", "2"), entry("c", "3"))
	if r := c.known().record; r.Floor == 0 || len(r.Dead) != 0 || r.Entries != 3 || idsOf(t, s) != "a b c" {
		t.Errorf("%+v, entries %q", r, idsOf(t, s))
	}
}

// The average length may change so much that old rows are weighed anew. They
// keep their places.
func TestDrift(t *testing.T) {
	e := startEngine(t)
	s := small(t, e.config())
	reference, err := local.Stage().Open(t.Context(), sdk.Setup{StateDir: t.TempDir()}, nil)
	must(t, err)
	_, err = reference.(sdk.Store).Open(t.Context(), "c", sdk.Schema{Dimension: 2, Analyzer: "standard"})
	must(t, err)
	var short, long []sdk.Entry
	for i := range 300 {
		short = append(short, entry(fmt.Sprintf("short %03d", i), fmt.Sprintf("tea number%d", i%50)))
		long = append(long, entry(fmt.Sprintf("long %03d", i), strings.Repeat(fmt.Sprintf("tea word%d ", i%20), 1+i%30)))
	}
	for _, each := range []sdk.Store{s, reference.(sdk.Store)} {
		for _, entries := range [][]sdk.Entry{short, long} {
			must(t, each.Put(t.Context(), "c", entries))
			must(t, each.Commit(t.Context(), "c", []byte(entries[0].ID)))
		}
	}
	r := s.collection("c").known().record
	if average := r.average(); r.Lowest*drift < average || average*drift < r.Highest || r.Entries != 600 {
		t.Errorf("the average is %v and rows are weighed with %v to %v; %d entries", average, r.Lowest, r.Highest, r.Entries)
	}
	if got := strings.Fields(idsOf(t, s)); got[0] != "short" || got[1] != "000" || got[len(got)-1] != "299" || got[len(got)-2] != "long" {
		t.Errorf("the order is %q ... %q", got[:4], got[len(got)-4:])
	}
	for _, text := range []string{"tea", "number7", "tea word3", "word5 word5 number9 nothing"} {
		for _, depth := range []int{1, 10, 90} {
			q := []sdk.Query{{Text: text}}
			a, err := s.Search(t.Context(), "c", sdk.Search{Mode: sdk.ModeLexical, NumCandidates: depth}, q)
			must(t, err)
			b, err := reference.(sdk.Store).Search(t.Context(), "c", sdk.Search{Mode: sdk.ModeLexical, NumCandidates: depth}, q)
			must(t, err)
			same := slices.EqualFunc(a[0].Lexical, b[0].Lexical, func(a, b sdk.Hit) bool {
				return a.ID == b.ID && math.Abs(float64(a.Lexical-b.Lexical)) < 1e-5
			})
			if !same {
				t.Errorf("%q, depth %d: %d and %d hits differ", text, depth, len(a[0].Lexical), len(b[0].Lexical))
			}
		}
	}
}
