package attached

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/racflow/racflow/sdk"
)

func (v *view) opens() {
	a := v.found
	if a.Dimension != dimension || a.Entries < len(v.rows) || !a.Labels {
		v.Errorf("attached %d entries of dimension %d, with labels: %v; there are %d of dimension %d, with labels", a.Entries, a.Dimension, a.Labels, len(v.rows), dimension)
	}
	parts := map[string]bool{}
	for _, f := range a.Fields {
		if f.Field == "" || f.Why == "" {
			v.Errorf("field %+v says neither where the part comes from nor why", f)
		}
		parts[f.Part] = true
	}
	for _, part := range []string{"id", "text", "vector", "label"} {
		if !parts[part] {
			v.Errorf("Fields do not say where the %s of an entry comes from", part)
		}
	}
	again, err := v.process.Stage.Attach(v.Context())
	if err != nil || again.ID != a.ID || again.Name != a.Name {
		v.Errorf("Attach called again: %q with ID %q, %v; want %q with ID %q", again.Name, again.ID, err, a.Name, a.ID)
	}
	if _, other := v.attach(); other.ID != a.ID || other.Name != a.Name {
		v.Errorf("another process attaches %q with ID %q, not %q with ID %q", other.Name, other.ID, a.Name, a.ID)
	}
	first := v.found
	if v.make(v.rows); v.found.ID == first.ID {
		v.Errorf("two collections have the ID %q", first.ID)
	}
}

func (v *view) pages() {
	for _, limit := range []int{0, 7, 1000} {
		scanned := v.scan(sdk.Scan{Limit: limit, Texts: true, Vectors: true})
		if len(scanned) != len(v.rows) {
			v.Errorf("in pages of %d there are %d rows, want %d", limit, len(scanned), len(v.rows))
		}
		for _, e := range scanned {
			if err := v.same(e, true); err != nil {
				v.Fatalf("in pages of %d: %v", limit, err)
			}
			if want := v.byID[e.ID].Vector; len(e.Vector) != dimension || math.Abs(cosine(e.Vector, want)-1) > v.Options.Tolerance {
				v.Fatalf("row %q has the vector %v, want the direction of %v", e.ID, e.Vector, want)
			}
		}
	}
	for _, e := range v.scan(sdk.Scan{}) {
		if e.Text != "" || e.Vector != nil || e.Label != v.byID[e.ID].Label {
			v.Fatalf("a scan of ids and labels gives %+v", e)
		}
	}
	for _, labels := range [][]string{{"parcel"}, {"größe", "refund"}, {""}, {"PARCEL"}} {
		want := 0
		for _, e := range v.rows {
			if slices.Contains(labels, e.Label) {
				want++
			}
		}
		if got := v.scan(sdk.Scan{Labels: labels, Limit: 9}); len(got) != want || slices.ContainsFunc(got, func(e sdk.Entry) bool { return !slices.Contains(labels, e.Label) }) {
			v.Errorf("a scan of the labels %q gives %d rows, want %d", labels, len(got), want)
		}
	}
}

// scan returns the rows of all pages, each of which may have s.Limit.
func (v *view) scan(s sdk.Scan) (all []sdk.Entry) {
	v.Helper()
	seen := map[string]bool{}
	for {
		page, err := v.process.Stage.Scan(v.Context(), v.found.Name, s)
		if err != nil {
			v.Fatalf("scan: %v", err)
		}
		if s.Limit > 0 && len(page.Entries) > s.Limit {
			v.Fatalf("a page has %d rows, the limit was %d", len(page.Entries), s.Limit)
		}
		for _, e := range page.Entries {
			if seen[e.ID] {
				v.Fatalf("row %q is in two pages", e.ID)
			}
			seen[e.ID] = true
		}
		all = append(all, page.Entries...)
		if s.After = page.Next; s.After == "" {
			return all
		}
	}
}

func (v *view) get() {
	ids := []string{v.rows[3].ID, "unknown", v.rows[0].ID, v.rows[3].ID, ""}
	got, err := v.process.Stage.Get(v.Context(), v.found.Name, ids)
	if err != nil || len(got) != len(ids) {
		v.Fatalf("get: %d entries for %d ids, %v", len(got), len(ids), err)
	}
	for i, e := range got {
		if v.byID[ids[i]].ID == "" {
			if e.ID != "" {
				v.Errorf("the unknown id %q gives %q", ids[i], e.ID)
			}
		} else if err := v.same(e, true); e.ID != ids[i] || e.Vector != nil || err != nil {
			v.Errorf("id %q gives %q, its vector %v, %v", ids[i], e.ID, e.Vector, err)
		}
	}
}

// same compares an entry with its row.
func (v *view) same(e sdk.Entry, texts bool) error {
	want, ok := v.byID[e.ID]
	switch {
	case !ok:
		return fmt.Errorf("there is no row %q", e.ID)
	case e.Label != want.Label:
		return fmt.Errorf("row %q has the label %q, want %q", e.ID, e.Label, want.Label)
	case !texts:
		return nil
	case e.Text != want.Text || e.Context != want.Context:
		return fmt.Errorf("row %q has the text %q and the context %q, want %q and %q", e.ID, e.Text, e.Context, want.Text, want.Context)
	case !reflect.DeepEqual(e.Meta, want.Meta):
		return fmt.Errorf("row %q has the metadata %v, want %v", e.ID, e.Meta, want.Meta)
	}
	return nil
}
