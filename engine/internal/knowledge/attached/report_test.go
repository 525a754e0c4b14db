package attached

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

func TestForeignVectors(t *testing.T) {
	for name, c := range map[string]struct {
		angle    float64 // between the embedder's vectors and those of the collection
		fails    bool
		warns    bool
		contains string
	}{
		"the same":     {0, false, false, "mean cosine 1.000 with the vectors of letters over 50 entries"},
		"nearly":       {0.2, false, false, "mean cosine 0.980"},
		"a relative":   {1, false, true, "mean cosine 0.540"},
		"another one":  {1.5, true, false, "the vectors of collection theirs are not those of letters: mean cosine 0.07 over 50 entries that were embedded again; embed with the model that made"},
		"the opposite": {math.Pi, true, false, "mean cosine -1.00"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, many(200)...)
			b.model.angle = c.angle
			got, err := b.open()
			unusable := new(UnusableError)
			if c.fails {
				if !errors.As(err, &unusable) || unusable.Range.Filename != "embed" || !strings.Contains(err.Error(), c.contains) || !strings.HasPrefix(err.Error(), `knowledge "k": `) {
					t.Errorf("%v", err)
				}
				if _, err := b.open(); err == nil || b.counts.passages != 50 {
					t.Errorf("another opening: %v, with %d passages embedded", err, b.counts.passages-50)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r := got.Report()
			if (r.Doubt() != "") != c.warns || !strings.Contains(r.Sampled(), c.contains) {
				t.Errorf("%q, %q", r.Sampled(), r.Doubt())
			}
			if b.counts.passages != 50 {
				t.Errorf("%d passages were embedded", b.counts.passages)
			}
			b.must()
			if b.counts.passages != 50 {
				t.Errorf("a warm opening embedded %d", b.counts.passages-50)
			}
			b.model.angle += 0.01 // another embedder
			b.must()
			if b.counts.passages != 100 {
				t.Errorf("another embedder embedded %d", b.counts.passages-50)
			}
			b.must(func(o *Options) { o.Refresh = true })
			if b.counts.passages != 100 { // the rows are the same
				t.Errorf("after a refresh it embedded %d", b.counts.passages-100)
			}
			b.theirs.Change("1", many(201)...)
			b.must(func(o *Options) { o.Refresh = true })
			if b.counts.passages != 150 {
				t.Errorf("of another sample it embedded %d", b.counts.passages-100)
			}
		})
	}
}

// If the owner has embedded the collection again, a stored sample does not cause an error.
func TestEmbeddedAnew(t *testing.T) {
	b := newBench(t, many(60)...)
	b.must()
	anew := many(60)
	for i := range anew {
		turn(anew[i].Vector, 1.5)
	}
	b.theirs.Change("1", anew...)
	b.model.angle = 1.5
	c := b.must()
	if r := c.Report(); r.Cosine < 0.99 || r.Kept {
		t.Errorf("%+v", r)
	}
	b.model.angle = 0
	if _, err := b.open(); err == nil {
		t.Error("another embedder is taken")
	}
}

// Contexts may have been embedded with the texts.
func TestContexts(t *testing.T) {
	entries := rows("a", "b", "ab")
	for i := range entries {
		entries[i].Context = "cc"
		entries[i].Vector = count("cc" + entries[i].Text)
	}
	r := newBench(t, entries...).must().Report()
	if r.Cosine < 0.999 || !strings.Contains(strings.Join(r.Notes, " "), "contexts and texts together") {
		t.Errorf("%+v", r)
	}
}

// A learning embedder learns from the sample, once.
func TestFits(t *testing.T) {
	b := newBench(t, many(20)...)
	b.model.fits = true
	for range 3 {
		if c := b.must(); c.Embedder.Fits() || c.Report().Cosine < 0.99 {
			t.Fatal("it has not learnt")
		}
	}
	if b.counts.fitted != 20 || b.counts.passages != 20 {
		t.Errorf("it learnt from %d rows, and embedded %d passages", b.counts.fitted, b.counts.passages)
	}
}

func TestNothingToCompare(t *testing.T) {
	entries := rows("a", "b")
	entries[0].Vector, entries[1].Text = make([]float32, 4), ""
	b := newBench(t, entries...)
	r := b.must().Report()
	if r.Compared != 0 || b.counts.passages != 0 || !strings.Contains(r.Doubt(), "is not known") {
		t.Errorf("%+v", r)
	}
	huge := rows("a" + strings.Repeat("b", longest))
	b = newBench(t, huge...)
	if r := b.must().Report(); r.Compared != 0 || r.Sample != 1 {
		t.Errorf("a huge text: %+v", r)
	}
}

// A plan calls no service, so it does not start an embedder that is a service.
func TestPlan(t *testing.T) {
	b := newBench(t, many(10)...)
	b.block.Embed.Info.Network = true
	c := b.must(func(o *Options) { o.Plan = true })
	if b.counts.started != 0 || !strings.Contains(strings.Join(c.Report().Notes, " "), "was not looked at") {
		t.Errorf("%+v, %+v", b.counts, c.Report())
	}
	b.must()
	if b.counts.started != 1 || b.counts.passages != 10 {
		t.Errorf("%+v", b.counts)
	}
}

func TestUnusable(t *testing.T) {
	wide := rows("a")
	wide[0].Vector = make([]float32, 5)
	for name, c := range map[string]struct {
		entries []sdk.Entry
		change  func(*bench)
		in      string // block with the error; empty: none
		want    string
	}{
		"dimension":          {wide, func(*bench) {}, "embed", "the vectors of collection theirs have 5 dimensions, and those of letters have 4: embed with the model that made"},
		"empty":              {rows("a"), func(b *bench) { b.theirs.Empty() }, "store", "collection theirs holds no entries that can be read: fill it"},
		"dropped":            {rows("a"), func(b *bench) { b.theirs.Drop() }, "", "was dropped: attach another one"},
		"no embedding":       {rows("a"), func(b *bench) { b.model.fail = sdk.Invalid(errors.New("no model")) }, "", "embed entries of collection theirs again, to compare their vectors: no model"},
		"folder is no place": {rows("a"), func(b *bench) { _ = os.WriteFile(b.dir, nil, 0o600) }, "", "keep a sample of it"},
	} {
		b := newBench(t, c.entries...)
		c.change(b)
		_, err := b.open()
		unusable := new(UnusableError)
		if errors.As(err, &unusable) != (c.in != "") || unusable.Range.Filename != c.in || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v", name, unusable.Range.Filename, err)
		}
	}
}
