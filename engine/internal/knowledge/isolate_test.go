package knowledge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

var errCrash = fmt.Errorf("embed.k: %w", sdk.ErrCrashed)

// If the embedder answers nothing, no row is the cause: the build ends, and the stored entries stay.
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

// If one passage of a document ends the enricher or yields an invalid result, only that passage stays unenriched.
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
