package review

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// queue has two items of a run and a row of a knowledge.
func queue(t *testing.T, path string) *Queue {
	t.Helper()
	q := NewQueue(path, "run-000001", []Case{
		{Text: "Where is it?", Items: []string{"17", "20"}, Answer: "lost", doubt: .5},
		{Text: "my card", Items: []string{"18"}, doubt: 1},
		{Text: "a row", Row: "r7", Answer: "order", doubt: .1},
	}, []string{"order", "lost", "order"}, sdk.LabelForm{})
	q.now = func() time.Time { return noon }
	return q
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

func decide(t *testing.T, q *Queue, r Request) *Decision {
	t.Helper()
	d, err := q.Decide(r)
	must.Do(t, err)
	return d
}

// A decision is in the file when Decide returns, another process can read it, and Undo restores the
// file step by step.
func TestDecideAndUndo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "reviewed.jsonl")
	q := queue(t, path)
	if got := []string{q.Cases()[0].Text, q.Cases()[1].Text, q.Cases()[2].Text}; !cmp.Equal(got, []string{"my card", "Where is it?", "a row"}) {
		t.Errorf("the order is %q", got)
	}
	where, row := idOf("Where is it?", ""), idOf("a row", "r7")

	first := decide(t, q, Request{Case: where, Label: " order ", Reviewer: "Ada", Page: "1"})
	one := `{"id":"` + reviewed.ID("Where is it?", "") + `","text":"Where is it?","label":"order","reviewer":"Ada","reviewed_at":"2026-11-23T12:00:00Z","run":"run-000001","item":"17","was":"lost"}` + "\n"
	if got := content(t, path); got != one {
		t.Errorf("the file has %s", got)
	}
	second := decide(t, q, Request{Case: where, Label: "lost", Reviewer: "Ada", Page: "1", Version: first.Version})
	decide(t, q, Request{Case: row, Drop: true, Reviewer: "Ada", Page: "1"})
	two := content(t, path)
	if !strings.Contains(two, `"text":"a row","label":null,"reviewer":"Ada","reviewed_at":"2026-11-23T12:00:00Z","was":"order","replaces":"r7"}`) || strings.Count(two, "\n") != 2 {
		t.Errorf("the file has %s", two)
	}

	later := queue(t, path) // a later process
	now, errs := later.Decisions()
	if len(errs) > 0 || len(now) != 2 || *now[where] != (Decision{"lost", "Ada", noon, second.Version}) || now[row].Label != "" {
		t.Errorf("read again: %+v, %v", now, errs)
	}
	decide(t, later, Request{Case: where, Withdraw: true, Reviewer: "Ben", Page: "9", Version: second.Version})
	if now, _ := q.Decisions(); now[where] != nil {
		t.Errorf("withdrawn: %+v", now[where])
	}
	if id, d, err := later.Undo("9"); err != nil || id != where || *d != *second {
		t.Errorf("undo of a withdrawal: %s, %+v, %v", id, d, err)
	}

	for _, want := range []struct{ id, file string }{{row, two[:strings.Index(two, "\n")+1]}, {where, one}, {where, ""}} {
		id, _, err := q.Undo("1")
		// The row was appended after the new decision about the first one. A decision that was
		// withdrawn and restored is at the end.
		if got := content(t, path); err != nil || id != want.id || len(got) != len(want.file) {
			t.Errorf("undo: %s, %v, the file has %q, want %q", id, err, got, want.file)
		}
	}
	if _, _, err := q.Undo("1"); !errors.Is(err, ErrUndo) {
		t.Errorf("undo of nothing: %v", err)
	}
}

// Another person's decision is not replaced unseen, neither by a decision nor by Undo. A change of
// the file by hand counts, too.
func TestConflicts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reviewed.jsonl")
	q := queue(t, path)
	id := idOf("my card", "")
	ada := decide(t, q, Request{Case: id, Label: "lost", Reviewer: "Ada", Page: "1"})

	var conflict *ConflictError
	_, err := q.Decide(Request{Case: id, Label: "order", Reviewer: "Ben", Page: "2"})
	if !errors.As(err, &conflict) || *conflict.Now != *ada || err.Error() != `Ada has decided meanwhile: "lost"` {
		t.Fatalf("got %v", err)
	}
	decide(t, q, Request{Case: id, Label: "order", Reviewer: "Ben", Page: "2", Version: ada.Version})
	if _, now, err := q.Undo("1"); !errors.As(err, &conflict) || now.Reviewer != "Ben" {
		t.Errorf("undo of what Ben has replaced: %+v, %v", now, err)
	}
	if _, _, err := q.Undo("1"); !errors.Is(err, ErrUndo) {
		t.Errorf("the change that cannot be undone is in the way: %v", err)
	}
	// By hand, with other spaces: it is the same text.
	must.Do(t, os.WriteFile(path, []byte(`{"text":"My  card","label":"found"}`+"\nno JSON\n"), 0o600))
	if _, _, err := q.Undo("2"); !errors.As(err, &conflict) || err.Error() != `somebody has decided meanwhile: "found"` {
		t.Errorf("undo of what was edited by hand: %v", err)
	}
	now, errs := q.Decisions()
	if now[id] == nil || now[id].Label != "found" || len(errs) != 1 || !strings.Contains(errs[0].Error(), "reviewed.jsonl:2: ") {
		t.Errorf("%+v, %v", now[id], errs)
	}
	decide(t, q, Request{Case: id, Label: "found", Reviewer: "Ada", Page: "1", Version: now[id].Version}) // a label of the file is known
	if got := content(t, path); strings.Count(got, "card") != 1 || !strings.HasSuffix(got, "no JSON\n") {
		t.Errorf("the file has %s", got)
	}
	must.Do(t, os.Remove(path))
	if _, err := q.Decide(Request{Case: id, Label: "order", Reviewer: "Ben", Page: "2", Version: now[id].Version}); !errors.As(err, &conflict) || conflict.Now != nil {
		t.Errorf("the decision that was shown is gone: %v", err)
	}
}

func TestRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reviewed.jsonl")
	q := queue(t, path)
	id := idOf("my card", "")
	for name, test := range map[string]struct {
		r    Request
		want error
	}{
		"no case":             {Request{Case: "r-0", Label: "lost", Reviewer: "Ada"}, ErrCase},
		"nobody":              {Request{Case: id, Label: "lost", Reviewer: " \t"}, ErrReviewer},
		"a name that hides":   {Request{Case: id, Label: "lost", Reviewer: "A\u202ea"}, ErrReviewer},
		"a long name":         {Request{Case: id, Label: "lost", Reviewer: strings.Repeat("é", 101)}, ErrReviewer},
		"no label":            {Request{Case: id, Reviewer: "Ada"}, ErrLabel},
		"two lines":           {Request{Case: id, Label: "a\nb", New: true, Reviewer: "Ada"}, ErrLabel},
		"an unconfirmed one":  {Request{Case: id, Label: "lsot", Reviewer: "Ada"}, ErrNew},
		"an item is no row":   {Request{Case: id, Drop: true, Reviewer: "Ada"}, ErrDrop},
		"withdraw, by nobody": {Request{Case: id, Withdraw: true}, ErrReviewer},
	} {
		if _, err := q.Decide(test.r); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := content(t, path); got != "" {
		t.Errorf("the file has %s", got)
	}
	if d, err := q.Decide(Request{Case: id, Withdraw: true, Reviewer: "Ada"}); d != nil || err != nil {
		t.Errorf("withdrawing nothing: %v, %v", d, err)
	}
	decide(t, q, Request{Case: id, Label: "ganz neu", New: true, Reviewer: "Ada"})
	if got := q.Labels(); !cmp.Equal(got, []string{"ganz neu", "lost", "order"}) {
		t.Errorf("labels %q", got)
	}
	broken := queue(t, t.TempDir()) // the path is a folder
	if _, err := broken.Decide(Request{Case: id, Label: "lost", Reviewer: "Ada"}); err == nil {
		t.Error("a decision that cannot be kept is no error")
	}
	if _, _, err := broken.Undo(""); !errors.Is(err, ErrUndo) {
		t.Errorf("a decision that was not kept can be undone: %v", err)
	}
}

// Two processes decide about one case at the same time: the later process gets a conflict, even if the
// other writes between its reading and its writing.
func TestDecidedBetween(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reviewed.jsonl")
	ada, ben := queue(t, path), queue(t, path)
	id := idOf("my card", "")
	ada.now = func() time.Time { // Ada has been shown that there is no decision
		decide(t, ben, Request{Case: id, Label: "order", Reviewer: "Ben", Page: "2"})
		return noon
	}
	var conflict *ConflictError
	if _, err := ada.Decide(Request{Case: id, Label: "lost", Reviewer: "Ada", Page: "1"}); !errors.As(err, &conflict) || conflict.Now.Reviewer != "Ben" {
		t.Errorf("got %v", err)
	}
	if got := content(t, path); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"reviewer":"Ben"`) {
		t.Errorf("the file has %s", got)
	}
	if _, _, err := ada.Undo("1"); !errors.Is(err, ErrUndo) {
		t.Errorf("undo of what was not kept: %v", err)
	}
}

// Labels of the knowledge are accepted unchanged, also labels that nobody would type.
func TestOddLabels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reviewed.jsonl")
	for _, label := range []string{" lost ", "two\tcells", "\u200fאבד", strings.Repeat("long", 60)} {
		q := NewQueue(path, "run-000001", []Case{{Text: label, Items: []string{"1"}, Answer: label}}, []string{label, "lost"}, sdk.LabelForm{})
		if d := decide(t, q, Request{Case: q.Cases()[0].ID, Label: label, Reviewer: "Ada"}); d.Label != label {
			t.Errorf("%q became %q", label, d.Label)
		}
	}
}

// TestSets: a decision about a set is written in one form, whatever the order of its labels. Each
// label is in the knowledge or marked as new.
func TestSets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	many := sdk.LabelForm{Many: true}
	q := NewQueue(path, "run-000001", []Case{{Text: "one", Items: []string{"1"}, Answer: "b; c"}}, []string{"a", "b", "c"}, many)
	id := q.Cases()[0].ID
	first := decide(t, q, Request{Case: id, Label: "c;  a; c", Reviewer: "Ada"})
	if first.Label != "a; c" || !strings.Contains(content(t, path), `"label":"a; c"`) {
		t.Errorf("it is %+v, in the file %s", first, content(t, path))
	}
	for label, want := range map[string]error{"a; new": ErrNew, " ;": ErrNew, "; ": ErrLabel, "a; \x01": ErrLabel} {
		if _, err := q.Decide(Request{Case: id, Label: label, Reviewer: "Ada", Version: first.Version}); !errors.Is(err, want) {
			t.Errorf("%q: %v", label, err)
		}
	}
	decide(t, q, Request{Case: id, Label: "a; new", New: true, Reviewer: "Ada", Version: first.Version})
	if got := NewQueue(path, "", nil, nil, many).Labels(); !cmp.Equal(got, []string{"a", "new"}) {
		t.Errorf("the decisions have the labels %q", got)
	}
}

// TestLevels: a node above the labels of the knowledge can be chosen without being new.
func TestLevels(t *testing.T) {
	q := NewQueue(filepath.Join(t.TempDir(), "r.jsonl"), "run-000001", []Case{{Text: "one", Items: []string{"1"}}}, []string{"a/b/c", "d"}, sdk.LabelForm{Levels: "/"})
	if got := q.Labels(); !cmp.Equal(got, []string{"a", "a/b", "a/b/c", "d"}) {
		t.Errorf("the labels are %q", got)
	}
	if d := decide(t, q, Request{Case: q.Cases()[0].ID, Label: "a/b", Reviewer: "Ada"}); d.Label != "a/b" {
		t.Errorf("%+v", d)
	}
}
