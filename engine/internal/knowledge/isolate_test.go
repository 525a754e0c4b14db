package knowledge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

var errCrash = fmt.Errorf("embed.k: %w", sdk.ErrCrashed)

func crashesOn(poison string) func(string) error {
	return func(text string) error {
		if strings.Contains(text, poison) {
			return errCrash
		}
		return nil
	}
}

// A row that ends the embedder is left out, alone, and tried again by the next build.
func TestARowThatEndsTheEmbedder(t *testing.T) {
	b := newBench(t)
	b.embedder.ends = crashesOn("poison")
	k, embedded := b.open("1\ta\tx", "2\tpoison\tx", "3\tb\ty", "4\tc\ty")
	same(t, "embedded", embedded, "a", "b", "c")
	if r := k.Report; r.Entries != 3 || r.InvalidCount != 1 || r.Invalid[0].Line != 3 || !errors.Is(r.Invalid[0].Err, sdk.ErrCrashed) {
		t.Errorf("report %+v", r)
	}
	b.embedder.ends = nil
	k, embedded = b.open("1\ta\tx", "2\tpoison\tx", "3\tb\ty", "4\tc\ty")
	same(t, "embedded once it works", embedded, "poison")
	if r := k.Report; r.Entries != 4 || r.InvalidCount != 0 {
		t.Errorf("report %+v", r)
	}
}

// Where the embedder answers nothing, no row is to blame: the build ends, and what
// was there stays.
func TestAnEmbedderThatAnswersNothing(t *testing.T) {
	b := newBench(t)
	rows := []string{"1\ta\tx", "2\tb\ty", "3\tc\ty"}
	b.open(rows...)
	changed := "id\ttext\tlabel\n1\taa\tx\n2\tbb\ty\n3\tcc\ty\n"
	for name, err := range map[string]error{
		"ends": errCrash, "breaks": errors.New("out of order"), "is gone": &sdk.Error{Code: sdk.CodeUnavailable, Err: errors.New("not started again")},
	} {
		b.embedder.ends = func(string) error { return err }
		if got := b.openFailing(changed); !errors.Is(got, err) {
			t.Errorf("%s: got %v", name, got)
		}
	}
	b.embedder.ends = nil
	if k, embedded := b.open(rows...); len(embedded) > 0 || k.Report.Entries != 3 {
		t.Errorf("embedded %q again, report %+v", embedded, k.Report)
	}
}

// An embedder that is gone in the middle ends the build, with one row left, too.
func TestAnEmbedderThatIsGoneInTheMiddle(t *testing.T) {
	b := newBench(t)
	gone := &sdk.Error{Code: sdk.CodeUnavailable, Err: errors.New("not started again")}
	b.embedder.ends = func(text string) error {
		if text == "last" {
			return gone
		}
		return nil
	}
	content := "id\ttext\tlabel\n"
	for i := range 256 {
		content += fmt.Sprintf("%d\ta\tx\n", i)
	}
	if err := b.openFailing(content + "256\tlast\tx\n"); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	// The same row, where it is the row that is to blame.
	b.embedder.ends = crashesOn("last")
	if err := b.openFailing(content + "256\tlast\tx\n"); err != nil {
		t.Errorf("got %v", err)
	}
}

// Of a document that ends the enricher, or of which it makes nonsense, only the passage that does so is kept bare.
func TestAPassageThatEndsTheEnricher(t *testing.T) {
	nonsense := &sdk.Error{Code: sdk.CodeInternal, Err: errors.New("the stage returned 4 results for 5 rows")}
	for name, fault := range map[string]error{"ends": errCrash, "nonsense": nonsense} {
		t.Run(name, func(t *testing.T) {
			e := newEnriched(t, map[string]string{"a.txt": "a b c d e", "x.txt": "f"})
			e.adder.ends = func(p sdk.Passage) error {
				if p.Text() == "d" {
					return fault
				}
				return nil
			}
			k, asked, _ := e.look()
			same(t, "asked", asked, "a.txt:a", "a.txt:b", "a.txt:c", "a.txt:e", "x.txt:f")
			r, got := k.Report, k.Report.FirstUnenriched
			if r.Unenriched != 1 || !errors.Is(got.Err, fault) || !strings.Contains(got.String(), "a.txt: chunk 3: enrich.situate: ") {
				t.Errorf("report %+v", r)
			}
			for _, text := range []string{"cc", "ee", "ff"} {
				if found := find(t, k, text); len(found) != 1 || !strings.HasPrefix(found[0].Context, "of ") {
					t.Errorf("%s: found %+v", text, found)
				}
			}
		})
	}
}

// A row that was left out, and is all that a later build has to do, is left out again:
// the embedder works.
func TestARowThatEndsTheEmbedderAgain(t *testing.T) {
	b := newBench(t)
	b.embedder.ends = crashesOn("poison")
	rows := []string{"1\ta\tx", "2\tpoison\tx", "3\tb\ty", "4\tpoison, too\ty"}
	b.open(rows...)
	k, _ := b.open(rows...)
	if r := k.Report; r.Entries != 2 || r.InvalidCount != 2 || !errors.Is(r.Invalid[1].Err, sdk.ErrCrashed) {
		t.Errorf("report %+v", r)
	}
	k, embedded := b.open(append(rows, "5\tpoison, once more\tx")...)
	same(t, "embedded", embedded, "a") // whether it works
	if r := k.Report; r.Entries != 2 || r.InvalidCount != 3 {
		t.Errorf("report %+v", r)
	}
}
