package knowledge_test

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"testing"

	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// rows returns n labelled rows, with some replaced or removed (empty).
func rows(n int, but map[int]string) (all []string) {
	for i := range n {
		row, other := but[i]
		if !other {
			row = fmt.Sprintf("r%d\ttext %d\tx%d", i, i, i%3)
		}
		if row != "" {
			all = append(all, row)
		}
	}
	return all
}

func items(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("item %d", i))
	}
	return ids
}

// drawn returns the ids and texts of a draw's parts, each as one text.
func drawn(t *testing.T, k *knowledge.Knowledge, ids []string, draw sdk.Draw, others bool) map[string]string {
	t.Helper()
	all := must.Get(k.Random(t.Context(), ids, draw, others))(t)
	parts := map[string]string{}
	in := max(1, draw.Parts)
	each := (draw.Count + in - 1) / in
	for i, of := range all {
		if len(of) != draw.Count {
			t.Fatalf("%s: %d entries of %d", ids[i], len(of), draw.Count)
		}
		seen := map[string]bool{}
		for j, c := range of {
			seen[c.ID] = true
			parts[fmt.Sprint(ids[i], " ", j/each)] += " " + c.ID + "=" + c.Text + ";"
		}
		if len(seen) != draw.Count || others && seen[ids[i]] {
			t.Fatalf("%s gets %v", ids[i], of)
		}
	}
	return parts
}

// An added, changed or removed row changes only those parts of draws that include the row before or
// after.
func TestRandomExamplesAreStable(t *testing.T) {
	changes := map[string]struct {
		but map[int]string
		row string
	}{
		"added in the middle": {map[int]string{150: "r150\ttext 150\tx0\nnew\tnew text\tx1"}, "new"},
		"another text":        {map[int]string{150: "r150\tother text\tx0"}, "r150"},
		"removed":             {map[int]string{150: ""}, "r150"},
	}
	draws := map[string]sdk.Draw{
		"item": {Count: 10}, "sample": {Count: 30, Parts: 3, Seed: 7}, "run": {Count: 10, Shared: true}, "uneven": {Count: 9, Parts: 2},
	}
	for change, c := range changes {
		for name, draw := range draws {
			for _, others := range []bool{false, true} {
				ids := items(400)
				if others {
					ids = append(ids, "r3", "r4", "r77")
				}
				b := newBench(t)
				k, _ := b.open(rows(300, nil)...)
				before := drawn(t, k, ids, draw, others)
				k, _ = b.open(rows(300, c.but)...)
				after := drawn(t, k, ids, draw, others)
				changed, shown := 0, 0
				for part, texts := range before {
					has := regexpRow(c.row).MatchString(texts) || regexpRow(c.row).MatchString(after[part])
					if has {
						shown++
					}
					if texts != after[part] {
						changed++
					}
					if has != (texts != after[part]) {
						t.Errorf("%s, %s: the part %s has the row: %t\n%s\n%s", change, name, part, has, texts, after[part])
					}
				}
				if changed != shown || changed == 0 && !draw.Shared {
					t.Errorf("%s, %s: %d parts of %d have changed, %d show the row", change, name, changed, len(before), shown)
				}
			}
		}
	}
}

func regexpRow(id string) *regexp.Regexp { return regexp.MustCompile(" " + id + "=") }

// Each entry is drawn about as often as any other, also in each part: within 5 standard deviations
// of chance. Another seed draws other entries.
func TestRandomExamplesAreRandom(t *testing.T) {
	k, _ := newBench(t).open(rows(200, nil)...)
	ids := items(6000)
	all := must.Get(k.Random(t.Context(), ids, sdk.Draw{Count: 10, Parts: 2}, false))(t)
	times, pairs := map[string]int{}, map[string]int{}
	for _, of := range all {
		for j, c := range of {
			times[fmt.Sprint(c.ID, " ", j/5)]++
		}
		pairs[of[0].ID+of[5].ID]++
	}
	near := func(what string, n int, p float64) {
		if d := math.Abs(float64(n) - 6000*p); d > 5*math.Sqrt(6000*p*(1-p)) {
			t.Errorf("%s was drawn %d times, expected about %g", what, n, 6000*p)
		}
	}
	if len(times) != 400 {
		t.Errorf("%d of 400 entries in parts were drawn", len(times))
	}
	for what, n := range times {
		near(what, n, 5./200)
	}
	if most := slices.Max(slices.Collect(maps.Values(pairs))); most > 6 { // by chance: one in 100,000
		t.Errorf("a pair of entries was drawn %d times, expected about %g", most, 6000./200/199)
	}
	other := drawn(t, k, ids[:100], sdk.Draw{Count: 10, Parts: 2, Seed: 1}, false)
	for part, texts := range drawn(t, k, ids[:100], sdk.Draw{Count: 10, Parts: 2}, false) {
		if other[part] == texts {
			t.Errorf("another seed draws the same for %s:%s", part, texts)
		}
	}
}

// If a knowledge has hardly enough entries for all parts, no entry is drawn twice.
func TestFewRandomExamples(t *testing.T) {
	k, _ := newBench(t).open(rows(31, nil)...)
	drawn(t, k, items(300), sdk.Draw{Count: 30, Parts: 3}, false)
	drawn(t, k, []string{"r0", "r5", "r30"}, sdk.Draw{Count: 30, Parts: 3}, true)
	all, err := k.Random(t.Context(), []string{"p"}, sdk.Draw{Count: 40, Parts: 4}, false)
	if err != nil || len(all[0]) != 31 {
		t.Errorf("%d entries of 31, error %v", len(all[0]), err)
	}
}
