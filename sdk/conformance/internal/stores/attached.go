package stores

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance/internal/harness"
)

// This file is the part of the conformance suite that checks stores which serve
// collections that another program makes (sdk.Attacher). The rows, and what searches ought to find
// among them, are computed here; the stage's own test makes the collections.

func (v *view) opens() {
	a := v.found
	if a.Dimension != attachedDimension || a.Entries < len(v.rows) || !a.Labels {
		v.Errorf("attached %d entries of dimension %d, with labels: %v; there are %d of dimension %d, with labels", a.Entries, a.Dimension, a.Labels, len(v.rows), attachedDimension)
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
			if want := v.byID[e.ID].Vector; len(e.Vector) != attachedDimension || math.Abs(cosine(e.Vector, want)-1) > v.Options.Tolerance {
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

func (v *view) refuses() {
	before := v.foreign.Look(v, v.setup.Config)
	s, ctx, name := v.process.Stage, v.Context(), v.found.Name
	for what, err := range map[string]error{
		"Put":    s.Put(ctx, name, []sdk.Entry{{ID: "1", Text: "new", Vector: v.rows[0].Vector}}),
		"Delete": s.Delete(ctx, name, []string{v.rows[0].ID}),
		"Commit": s.Commit(ctx, name, []byte("note")),
		"Drop":   s.Drop(ctx, name),
	} {
		if err == nil || sdk.CodeOf(err) != sdk.CodeInvalid {
			v.Errorf("%s gives %v, want an error made by sdk.Invalid", what, err)
		}
	}
	lists, err := v.retrieve(sdk.ModeDense, 5, queries(1)[0])
	if err != nil {
		v.Fatalf("a search after that: %v", err)
	}
	v.check(queries(1)[0], 5, lists[0])
	v.process.Close()
	if after := v.foreign.Look(v, v.setup.Config); after != before {
		v.Errorf("the collection was changed: from\n%s\nto\n%s", before, after)
	}
}

// unknown attaches a collection that is not there.
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
	p, err := v.Open(v, v.setup)
	if err != nil {
		v.Fatalf("open the stage: %v", err)
	}
	for range 2 { // the first call has not made it
		if _, err := p.Stage.Attach(v.Context()); err == nil || sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), name) {
			v.Fatalf("a collection %s that is not there gives %v, want an error made by sdk.Invalid that names it", name, err)
		}
	}
}

// before uses the name in a process that has not attached it.
func (v *view) before() {
	p, err := v.Open(v, v.setup)
	if err != nil {
		v.Fatalf("open the stage: %v", err)
	}
	v.process = p
	_, searched := v.retrieve(sdk.ModeDense, 5, queries(1)[0])
	_, got := p.Stage.Get(v.Context(), v.found.Name, []string{v.rows[0].ID})
	_, scanned := p.Stage.Scan(v.Context(), v.found.Name, sdk.Scan{})
	if searched == nil || got == nil || scanned == nil {
		v.Errorf("before Attach, Search gives %v, Get %v, Scan %v", searched, got, scanned)
	}
}

// together searches while Attach is called.
func (v *view) together() {
	q := queries(1)[0]
	var calls errgroup.Group
	lists := make([][][]sdk.Candidate, 16)
	for i := range lists {
		calls.Go(func() (err error) {
			if i%4 == 0 {
				_, err = v.process.Stage.Attach(v.Context())
			}
			if err == nil {
				lists[i], err = v.retrieve(sdk.ModeDense, 10, q)
			}
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		v.Fatalf("%v", err)
	}
	for _, list := range lists {
		v.check(q, 10, list[0])
	}
}

// attachedDimension is that of all vectors.
const attachedDimension = 8

// count is how many rows there are.
const count = 200

// words are in the texts of the rows, row i having the words i and i+1.
var words = strings.Fields("walrus lantern meadow copper violin harbour pepper saddle glacier thimble " +
	"orchard magnet puzzle ribbon tunnel basket canyon drummer feather goblin")

// rows are what a collection under test holds. Their ids are decimal numbers, so that they fit keys
// of either type, every row has every key of the metadata, and no number needs more than a float32.
// The vectors of the first ones by id have the norm 1, the others any.
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
			Vector: vector(random),
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

// vector is a random one of norm 1.
func vector(random *rand.Rand) []float32 {
	v := make([]float32, attachedDimension)
	for d := range v {
		v[d] = float32(random.NormFloat64())
	}
	n := float32(norm(v))
	for d := range v {
		v[d] /= n
	}
	return v
}

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// Foreign makes collections as another program would, without the stage under test.
type Foreign struct {
	// Make makes a new collection that holds the rows, and returns the config by which the stage attaches
	// it. Each row has an id, a text, a context, a label, metadata and a vector, and all of that
	// is to be found again.
	Make func(t harness.T, rows []sdk.Entry) (config string)
	// Look says all of a collection that a write could change, as another client sees it: how many
	// rows it has, its fields, its indexes. The suite compares it with itself.
	Look func(t harness.T, config string) string
}

// Case is one check, on a new collection of somebody else's in a process of its own.
type Case struct {
	Name, Why, Fix string
	run            func(*view)
}

// Cases are all checks of attached collections.
var Cases = []Case{
	{"opens", "A run says what it reads, and notices when something else stands behind the name.",
		"Say in Attached what was found; ID is that of the collection itself, and the same until there is another one.", (*view).opens},
	{"rows", "Labels, centroids and examples come from the rows of a scan.",
		"Map each field to its part of an entry, letter by letter; end pages at a place that is found again.", (*view).pages},
	{"get", "What a search found is shown by its id.",
		"Return an entry for each id, in the order of the ids; an unknown one gives an empty entry.", (*view).get},
	{"dense", "Rules compare dense scores with thresholds, which mean the same with every store.",
		"Return the cosine of the vectors, whatever the server measures by.", (*view).dense},
	{"vectors of any length", "Whoever made the collection may not have normalised its vectors.",
		"Where the metric depends on the lengths, compute the cosine from the vectors of what was found; sdk.Search.Norm is of more than the first rows.", (*view).anyLength},
	{"filters", "Filters choose entries before the best are chosen; one too many or too few is a wrong answer that nobody sees.",
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

// Run runs a case on a stage whose collections another program makes.
func (c Case) Run(t harness.T, subject *harness.Subject, foreign Foreign) {
	v := &view{T: t, Subject: subject, foreign: foreign}
	v.make(rows(count))
	c.run(v)
}

// view is an attached collection, and what it holds. Its methods end the check at an error.
type view struct {
	harness.T
	*harness.Subject
	foreign Foreign
	setup   harness.Setup
	process *harness.Process
	found   sdk.Attached
	rows    []sdk.Entry
	byID    map[string]sdk.Entry
	norm    float64 // of sdk.Search
}

// make makes a collection, and attaches it in a process of its own.
func (v *view) make(rows []sdk.Entry) {
	v.Helper()
	v.rows, v.byID = rows, map[string]sdk.Entry{}
	for _, e := range rows {
		v.byID[e.ID] = e
	}
	v.setup = v.Setup(v)
	v.setup.Config = v.foreign.Make(v, rows)
	v.process, v.found = v.attach()
}

// attach attaches the collection in another process.
func (v *view) attach() (*harness.Process, sdk.Attached) {
	v.Helper()
	p, err := v.Open(v, v.setup)
	if err != nil {
		v.Fatalf("open the stage: %v", err)
	}
	found, err := p.Stage.Attach(v.Context())
	if err != nil {
		v.Fatalf("attach: %v", err)
	}
	return p, found
}

// lexical checks what the words of a query find; that the server's scores mean something is its own affair.
func (v *view) lexical() {
	if !v.found.Lexical {
		v.withoutWords()
		return
	}
	refund := is(sdk.FieldLabel, "", "refund")
	for _, filter := range []*sdk.Filter{nil, &refund} {
		if filter != nil && !v.Stage.Filters {
			continue
		}
		q := sdk.Query{Text: "walrus violin", Filter: filter}
		lists, err := v.retrieve(sdk.ModeLexical, len(v.rows), q)
		if err != nil {
			v.Fatalf("lexical search: %v", err)
		}
		found := map[string]bool{}
		for i, c := range lists[0] {
			if found[c.ID] = true; !(c.Lexical > 0) || i > 0 && c.Lexical > lists[0][i-1].Lexical {
				v.Errorf("place %d has the lexical score %v", i, c.Lexical)
			}
		}
		for _, e := range v.rows {
			want := (strings.Contains(e.Text, "walrus") || strings.Contains(e.Text, "violin")) && filter.Match(e.ID, e.Label, e.Meta)
			if found[e.ID] != want {
				v.Fatalf("filter %s: row %q, %q, is found by the words %q: %v", filter, e.ID, e.Text, q.Text, found[e.ID])
			}
		}
	}
	v.hybrid()
}

// hybrid checks that both legs of a hybrid search find something.
func (v *view) hybrid() {
	q := queries(1)[0]
	lists, err := v.retrieve(sdk.ModeHybrid, len(v.rows), q)
	if err != nil || len(lists[0]) != len(v.rows) {
		v.Fatalf("hybrid search: %d candidates, want %d, %v", len(lists[0]), len(v.rows), err)
	}
	byWords := 0
	for _, c := range lists[0] {
		if c.Lexical > 0 {
			byWords++
		}
		if !math.IsNaN(float64(c.Dense)) && !v.near(c.Dense, cosine(q.Vector, v.byID[c.ID].Vector)) {
			v.Errorf("%q has the dense score %v in a hybrid search", c.ID, c.Dense)
		}
	}
	if want := 2 * len(v.rows) / len(words); byWords != want {
		v.Errorf("a hybrid search finds %d rows by the word %q, want %d", byWords, q.Text, want)
	}
}

// withoutWords checks a collection that cannot be searched by words.
func (v *view) withoutWords() {
	q := queries(1)[0]
	if _, err := v.retrieve(sdk.ModeLexical, 5, sdk.Query{Text: q.Text}); err == nil || sdk.CodeOf(err) != sdk.CodeInvalid || errors.As(err, new(sdk.RowErrors)) {
		v.Errorf("a lexical search gives %v; it is invalid as a whole", err)
	}
	lists, err := v.retrieve(sdk.ModeHybrid, 10, q)
	if err != nil {
		v.Fatalf("hybrid search: %v", err)
	}
	v.check(q, 10, lists[0])
	for _, c := range lists[0] {
		if c.Score != c.Dense || !math.IsNaN(float64(c.Lexical)) {
			v.Fatalf("hybrid search: %q has the score %v, dense %v and lexical %v; without words it is a dense search", c.ID, c.Score, c.Dense, c.Lexical)
		}
	}
}
