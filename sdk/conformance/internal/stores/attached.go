package stores

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance/internal/harness"
	"github.com/racflow/racflow/sdk/flat"
)

// This file checks stores that serve collections of another program (sdk.Attacher). The model holds
// the same rows; the stage's own test makes the collections.

// Foreign makes collections as another program would, without the stage under test.
type Foreign struct {
	// Make makes a new collection with the rows, and returns the config by which the stage attaches
	// it. Each row has an id, a text, a context, a label, metadata and a vector; the store must find
	// all of it.
	Make func(t *harness.T, rows []sdk.Entry) (config string)
	// Look returns everything of a collection that a write could change, as another client sees it:
	// the number of rows, the fields, the indexes. The suite compares two results of Look.
	Look func(t *harness.T, config string) string
}

// attachedCases are all checks of attached collections.
var attachedCases = []struct {
	name, why, fix string
	run            func(*view)
}{
	{"opens", "A run says what it reads, and notices when something else stands behind the name.",
		"Say in Attached what was found; ID is that of the collection itself, and the same until there is another one.", (*view).opens},
	{"rows", "Labels, centroids and examples come from the rows of a scan.",
		"Map each field to its part of an entry, letter by letter; end pages at a place that is found again.", (*view).pages},
	{"get", "What a search found is shown by its id.",
		"Return an entry for each id, in the order of the ids; an unknown one gives an empty entry.",
		func(v *view) { v.get(v.rows[3].ID, "unknown", v.rows[0].ID, v.rows[3].ID, "") }},
	{"dense", "Rules compare dense scores with thresholds, which mean the same with every store.",
		"Return the cosine of the vectors, whatever the server measures by.", (*view).dense},
	{"vectors of any length", "Whoever made the collection may not have normalised its vectors.",
		"Where the metric depends on the lengths, compute the cosine from the vectors of what was found; sdk.Search.Norm is of more than the first rows.", (*view).anyLength},
	{"filters", filtersWhy,
		"Let the server select what sdk.Filter selects; where it cannot, have it select more, and check what it found.", (*view).filters},
	{"words", "A hybrid search uses what the collection has, and says what it goes without.",
		"Set Attached.Lexical only where the server searches a text by words; else leave Hits.Lexical nil in a hybrid search, and refuse a lexical one.", (*view).lexical},
	{"refuses to write", "The collection belongs to another program: nothing may be written there.",
		"Refuse Put, Delete, Commit and Drop of its name with sdk.Invalid.", (*view).refuses},
	{"unknown collection", "A wrong name in a file is told to the person who wrote it.",
		"Return sdk.Invalid with the name; make no collection of that name.", (*view).unknown},
	{"only after Attach", "A process that was started again reads what the one before it did, or nothing.",
		"Refuse Search, Get and Scan until Attach was called.", (*view).before},
	{"attach while searching", "A long run looks from time to time whether the collection was replaced.",
		"Let searches run on while Attach looks.", (*view).together},
}

// AttachedChecks returns all checks of a store on collections that foreign makes. Each check has a
// new collection and a process of its own.
func AttachedChecks(foreign Foreign) (all []harness.Check) {
	for _, c := range attachedCases {
		run := func(t *harness.T, s *harness.Subject) error {
			v := &view{foreign: foreign, collection: &collection{T: t, Subject: s, schema: sdk.Schema{Dimension: dimension}}}
			v.make(rows(count))
			c.run(v)
			return nil
		}
		all = append(all, harness.Check{Name: "attached/" + c.name, Why: c.why, Fix: c.fix, Within: harness.Longest, Run: run})
	}
	return all
}

// view is an attached collection with its model. Its methods end the check at an error.
type view struct {
	*collection
	foreign Foreign
	found   sdk.Attached
	rows    []sdk.Entry
	norm    float64 // of sdk.Search
}

// make makes a collection, and attaches it in a process of its own.
func (v *view) make(rows []sdk.Entry) {
	v.setup = v.Setup(v.T)
	v.rows, v.setup.Config = rows, v.foreign.Make(v.T, rows)
	v.process, v.found = v.attach()
	v.name, v.model = v.found.Name, flat.New(&memory{})
	_, err := v.model.Open(v.Context(), v.name, v.schema)
	if err := errors.Join(err, v.model.Put(v.Context(), v.name, rows), v.model.Commit(v.Context(), v.name, nil)); err != nil {
		v.Fatalf("write to the model: %v", err)
	}
}

// attach attaches the collection in another process.
func (v *view) attach() (*harness.Process, sdk.Attached) {
	p, err := v.Open(v.T, v.setup)
	if err != nil {
		v.Fatalf("open the stage: %v", err)
	}
	found, err := p.Stage.Attach(v.Context())
	if err != nil {
		v.Fatalf("attach: %v", err)
	}
	return p, found
}

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
	if v.make(v.rows); v.found.ID == a.ID {
		v.Errorf("two collections have the ID %q", a.ID)
	}
}

func (v *view) pages() {
	for _, limit := range []int{0, 7, 1000} {
		v.scan(sdk.Scan{Limit: limit, Texts: true, Vectors: true})
	}
	v.scan(sdk.Scan{})
	for _, labels := range [][]string{{"parcel"}, {"größe", "refund"}, {""}, {"PARCEL"}} {
		v.scan(sdk.Scan{Labels: labels, Limit: 9})
	}
}

// search returns a search for the n best entries.
func (v *view) search(mode sdk.Mode, n int) sdk.Ranking {
	r := ranking(mode, weighted, n, n)
	r.Norm = v.norm
	return r
}

func (v *view) dense() {
	all := queries(12)
	for _, n := range []int{1, 10, len(v.rows), len(v.rows) + 50} {
		v.compare(v.search(sdk.ModeDense, n), all...)
	}
	v.compare(v.search(sdk.ModeDense, 5), all[0], sdk.Query{Text: "walrus", Vector: make([]float32, dimension)}) // the zero vector finds nothing
}

func (v *view) anyLength() {
	v.make(rows(0))
	v.cosines()
	v.make(rows(count / 2))
	for _, e := range v.rows {
		v.norm += norm(e.Vector) / count
	}
	v.cosines()
}

// cosines checks the scores, and the order if the search finds all entries.
func (v *view) cosines() {
	all := queries(6)
	v.compare(v.search(sdk.ModeDense, len(v.rows)), all...)
	lists, err := v.retrieve(v.search(sdk.ModeDense, 10), all...)
	if err != nil {
		v.Fatalf("%v", err)
	}
	for i, q := range all { // the choice of the ten by the server may depend on the lengths
		for _, c := range lists[i] {
			v.checkDense(q, c)
		}
	}
}

// checkDense compares the dense score of a candidate with its cosine.
func (v *view) checkDense(q sdk.Query, c sdk.Candidate) {
	i := slices.IndexFunc(v.rows, func(e sdk.Entry) bool { return e.ID == c.ID })
	if i < 0 {
		v.Fatalf("there is no row %q", c.ID)
	}
	own := cosine(q.Vector, v.rows[i].Vector)
	if !(math.Abs(float64(c.Dense)-own) <= v.Options.Tolerance) {
		v.Fatalf("%q has the dense score %v, its cosine is %v", c.ID, c.Dense, own)
	}
}

// filters filters on every part of the suite's rows, with values of every type, and with some values
// that no row has: a column of a fixed type is also compared with values of other types.
func (v *view) filters() {
	if !v.Stage.Filters {
		v.Skipf("the stage does not declare sdk.Filters, so it gets no filter")
	}
	fields, values := fieldsOf(v.rows[:6], meta("missing"), meta("Lang"))
	values = append(values, "unknown", "01000", "re", "%", "2000", 2000.5, math.Inf(-1))
	filters := slices.Concat(compared(sdk.FilterIn, fields, values), negated(compared(sdk.FilterIn, fields, values)), compared(sdk.FilterPrefix, fields, values),
		compared(sdk.FilterLess, fields, values), compared(sdk.FilterGreaterEqual, fields, values))
	random, leaves := rand.New(rand.NewPCG(6, 6)), filters
	for range 20 {
		filters = append(filters, randomFilter(random, leaves, 3))
	}
	asked := make([]sdk.Query, len(filters))
	for i := range filters {
		asked[i] = sdk.Query{Vector: queries(1)[0].Vector, Filter: &filters[i]}
	}
	for _, n := range []int{3, len(v.rows)} {
		v.compare(v.search(sdk.ModeDense, n), asked...)
	}
}

// lexical checks what the words of a query find, alone and together with its vector. It does not
// check the meaning of the server's scores.
func (v *view) lexical() {
	if !v.found.Lexical {
		v.withoutWords()
		return
	}
	refund := label.is("refund")
	for _, filter := range []*sdk.Filter{nil, &refund} {
		if filter != nil && !v.Stage.Filters {
			continue
		}
		q := queries(1)[0]
		q.Text, q.Filter = "walrus violin", filter
		for _, mode := range []sdk.Mode{sdk.ModeLexical, sdk.ModeHybrid} {
			lists, err := v.retrieve(v.search(mode, len(v.rows)), q)
			if err != nil {
				v.Fatalf("%s search: %v", mode, err)
			}
			found := map[string]bool{}
			for i, c := range lists[0] {
				found[c.ID] = c.Lexical > 0
				if !math.IsNaN(float64(c.Dense)) {
					v.checkDense(q, c)
				}
				if mode == sdk.ModeLexical && i > 0 && !(c.Lexical <= lists[0][i-1].Lexical) {
					v.Errorf("place %d has the lexical score %v", i, c.Lexical)
				}
			}
			for _, e := range v.rows {
				selected := filter.Match(e.ID, e.Label, e.Meta)
				words := selected && (strings.Contains(e.Text, "walrus") || strings.Contains(e.Text, "violin"))
				if _, ok := found[e.ID]; found[e.ID] != words || ok != (words || selected && mode == sdk.ModeHybrid) {
					v.Fatalf("%s search, filter %s: row %q, %q, is found: %v, by the words %q: %v", mode, filter, e.ID, e.Text, ok, q.Text, found[e.ID])
				}
				delete(found, e.ID)
			}
			if len(found) > 0 {
				v.Fatalf("%s search: there are no rows %v", mode, found)
			}
		}
	}
}

// withoutWords checks a collection that cannot be searched by words.
func (v *view) withoutWords() {
	q := queries(1)[0]
	if _, err := v.retrieve(v.search(sdk.ModeLexical, 5), sdk.Query{Text: q.Text}); err == nil || sdk.CodeOf(err) != sdk.CodeInvalid || errors.As(err, new(sdk.RowErrors)) {
		v.Errorf("a lexical search gives %v; it is invalid as a whole", err)
	}
	lists, err := v.retrieve(v.search(sdk.ModeHybrid, 10), q)
	if err != nil {
		v.Fatalf("hybrid search: %v", err)
	}
	want, _ := v.rankings(v.search(sdk.ModeDense, 10), q)
	if err := v.sameRanking(v.search(sdk.ModeDense, 10), lists[0], want[0][0]); err != nil {
		v.Fatalf("hybrid search: %v", err)
	}
	for _, c := range lists[0] {
		if c.Score != c.Dense || !math.IsNaN(float64(c.Lexical)) {
			v.Fatalf("hybrid search: %q has the score %v, dense %v and lexical %v; without words it is a dense search", c.ID, c.Score, c.Dense, c.Lexical)
		}
	}
}

func (v *view) refuses() {
	before := v.foreign.Look(v.T, v.setup.Config)
	s, ctx := v.process.Stage, v.Context()
	for what, err := range map[string]error{
		"Put":    s.Put(ctx, v.name, []sdk.Entry{{ID: "1", Text: "new", Vector: v.rows[0].Vector}}),
		"Delete": s.Delete(ctx, v.name, []string{v.rows[0].ID}),
		"Commit": s.Commit(ctx, v.name, []byte("note")),
		"Drop":   s.Drop(ctx, v.name),
	} {
		if err == nil || sdk.CodeOf(err) != sdk.CodeInvalid {
			v.Errorf("%s gives %v, want an error made by sdk.Invalid", what, err)
		}
	}
	v.compare(v.search(sdk.ModeDense, 5), queries(1)[0])
	v.process.Close()
	if after := v.foreign.Look(v.T, v.setup.Config); after != before {
		v.Errorf("the collection was changed: from\n%s\nto\n%s", before, after)
	}
}

// unknown attaches a collection that does not exist.
func (v *view) unknown() {
	const name = "no_such_collection_of_anybody"
	var config map[string]any
	if err := json.Unmarshal([]byte(v.setup.Config), &config); err != nil {
		v.Fatalf("the config that Make returned: %v", err)
	}
	config[v.Stage.Attaches] = name
	raw, err := json.Marshal(config)
	if err != nil {
		v.Fatalf("%v", err)
	}
	v.setup.Config = string(raw)
	p, err := v.Open(v.T, v.setup)
	if err != nil {
		v.Fatalf("open the stage: %v", err)
	}
	for range 2 { // the first call must not have created it
		if _, err := p.Stage.Attach(v.Context()); err == nil || sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), name) {
			v.Fatalf("a collection %s that is not there gives %v, want an error made by sdk.Invalid that names it", name, err)
		}
	}
}

// before uses the name in a process that has not attached it.
func (v *view) before() {
	p, err := v.Open(v.T, v.setup)
	if err != nil {
		v.Fatalf("open the stage: %v", err)
	}
	v.process = p
	_, searched := v.retrieve(v.search(sdk.ModeDense, 5), queries(1)[0])
	_, got := p.Stage.Get(v.Context(), v.name, []string{v.rows[0].ID})
	_, scanned := p.Stage.Scan(v.Context(), v.name, sdk.Scan{})
	if searched == nil || got == nil || scanned == nil {
		v.Errorf("before Attach, Search gives %v, Get %v, Scan %v", searched, got, scanned)
	}
}

// together searches while Attach is called.
func (v *view) together() {
	q, r := queries(1)[0], v.search(sdk.ModeDense, 10)
	want, err := v.rankings(r, q)
	if err != nil {
		v.Fatalf("search the model: %v", err)
	}
	calls, ctx := errgroup.WithContext(v.Context())
	for i := range 16 {
		calls.Go(func() error {
			if err := v.attachAgain(ctx, i); err != nil {
				return err
			}
			lists, err := v.retrieve(r, q)
			if err != nil {
				return err
			}
			return v.sameRanking(r, lists[0], want[0][0])
		})
	}
	if err := calls.Wait(); err != nil {
		v.Fatalf("%v", err)
	}
}

// attachAgain calls Attach before every fourth search.
func (v *view) attachAgain(ctx context.Context, search int) error {
	if search%4 > 0 {
		return nil
	}
	_, err := v.process.Stage.Attach(ctx)
	return err
}

// count is the number of rows.
const count = 200

// words are the words of the rows' texts: row i has the words i and i+1.
var words = strings.Fields("walrus lantern meadow copper violin harbour pepper saddle glacier thimble " +
	"orchard magnet puzzle ribbon tunnel basket canyon drummer feather goblin")

// rows returns the rows of a collection under test. Their ids are decimal numbers, so that they fit
// keys of either type. Every row has every key of the metadata, and a float32 can hold every number.
// The vectors of the first rows by id have the norm 1, the others any norm.
func rows(unit int) []sdk.Entry {
	random := rand.New(rand.NewPCG(11, 23))
	labels := []string{"refund", "parcel", "", "größe"}
	languages := []string{"en", "de", "日本語", ""}
	all := make([]sdk.Entry, count)
	for i := range all {
		all[i] = sdk.Entry{
			ID:      strconv.Itoa(1000 + 37*i%count),
			Text:    fmt.Sprintf("%s %s\n%d \"quoted\" ünï 日本", words[i%len(words)], words[(i+1)%len(words)], i),
			Context: fmt.Sprint("title ", i),
			Label:   labels[i%len(labels)],
			Meta: sdk.Meta{
				"lang": languages[i/4%len(languages)], "year": float64(1990 + i%40), "price": float64(i%17)/4 - 1, "open": i%3 == 0,
			},
			Vector: unitVector(random),
		}
		if 37*i%count >= unit {
			scale := float32(math.Exp2(float64(random.IntN(8) - 4)))
			for d := range all[i].Vector {
				all[i].Vector[d] *= scale
			}
		}
	}
	return all
}

// unitVector returns a random vector of norm 1.
func unitVector(random *rand.Rand) []float32 {
	v := randomVector(random)
	n := float32(norm(v))
	for d := range v {
		v[d] /= n
	}
	return v
}

// queries returns n queries with random vectors.
func queries(n int) []sdk.Query {
	random := rand.New(rand.NewPCG(3, 5))
	all := make([]sdk.Query, n)
	for i := range all {
		all[i] = sdk.Query{Text: words[i%len(words)], Vector: randomVector(random)} // the vector's length does not matter
	}
	return all
}
