package knowledge_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/knowledge"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// adder is an enricher. Like an enricher with a cache, it never asks again for a known answer.
type adder struct {
	add  func(sdk.Passage) sdk.Addition
	fail func(sdk.Passage) error // nil: no passage fails
	slow func(sdk.Passage)       // nil: it is fast
	ends func(sdk.Passage) error // for a whole call; nil: none fails

	pends func() // called for each ask with delayed results; nil: results are immediate
	asks  int    // number of pending asks

	mu             sync.Mutex
	kept           map[string]bool
	asked          []string // passages for which it had to ask, as document:text
	calls          [][]string
	underWay, most int
}

func (a *adder) Fingerprint() string { return "" }

func (a *adder) Enrich(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	if a.pends == nil {
		return a.find(ctx, passages)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asks++
	a.pends()
	return nil, &sdk.Pending{Handle: fmt.Sprint(a.asks)}
}

func (a *adder) find(ctx context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	a.mu.Lock()
	a.underWay++
	a.most = max(a.most, a.underWay)
	var documents []string
	for _, p := range passages {
		documents = append(documents, p.Document.ID)
	}
	a.calls = append(a.calls, slices.Compact(documents))
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.underWay--
		a.mu.Unlock()
	}()
	all, failed := make([]sdk.Addition, len(passages)), sdk.RowErrors{}
	for i, p := range passages {
		if a.slow != nil {
			a.slow(p)
		}
		if a.ends != nil && a.ends(p) != nil {
			return nil, a.ends(p)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a.mu.Lock()
		key := p.Document.ID + ":" + p.Text()
		if !a.kept[key] {
			a.asked = append(a.asked, key)
			if a.fail != nil && a.fail(p) != nil {
				failed[i] = a.fail(p)
				a.mu.Unlock()
				continue
			}
			if a.kept == nil {
				a.kept = map[string]bool{}
			}
			a.kept[key] = true
		}
		a.mu.Unlock()
		all[i] = a.add(p)
	}
	if len(failed) > 0 {
		return all, failed
	}
	return all, nil
}

// situate returns a passage's document as context, and its doubled text as terms.
func situate(p sdk.Passage) sdk.Addition {
	return sdk.Addition{Context: "of " + p.Document.ID, Terms: []string{p.Text() + p.Text()}}
}

// enriched is a shelf with an enrich block.
type enriched struct {
	*shelf
	adder *adder
	stage *pipeline.Stage
}

func newEnriched(t *testing.T, files map[string]string) *enriched {
	s := newShelf(t, files)
	e := &enriched{s, &adder{add: situate}, &pipeline.Stage{
		Block: "enrich", Name: "situate", Kind: sdk.KindEnrich, Use: "context",
		Enabled: true, Embedded: true, Lexical: true, Info: sdk.Stage{Name: "context", Network: true},
	}}
	s.block.Enrich = []*pipeline.Stage{e.stage}
	s.stages.enrich = map[string]*adder{"context": e.adder}
	return e
}

// numbered returns n files with the same content.
func numbered(n int, content string) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("%02d.txt", i)] = content
	}
	return files
}

// look opens the knowledge. It returns what was asked and what was embedded.
func (e *enriched) look() (k *knowledge.Knowledge, asked, embedded []string) {
	e.t.Helper()
	e.adder.asked = nil
	k, _, embedded = e.shelf.look(knowledge.Options{})
	slices.Sort(e.adder.asked)
	return k, e.adder.asked, embedded
}

// fails opens the knowledge, which must fail. Its processes end with it, and time passes only while
// all of them wait.
func (e *enriched) fails() (err error) {
	e.t.Helper()
	e.adder.asked = nil
	e.t.Run("failing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			own := e.stages
			own.t = t
			_, err = knowledge.Open(t.Context(), e.block, own, knowledge.Options{})
		})
	})
	if err == nil {
		e.t.Fatal("the build worked out")
	}
	return err
}

// find searches by BM25, so it ignores the query's vector.
func find(t *testing.T, k *knowledge.Knowledge, text string) []sdk.Candidate {
	t.Helper()
	ranking := sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeLexical, NumCandidates: 10, Texts: true}, Fusion: sdk.Fusion{Method: support.Weighted}, TopK: 10}
	found, _, err := k.Retrieve(t.Context(), ranking, []sdk.Query{{Text: text, Vector: []float32{1}}})
	must.Do(t, err)
	return found[0]
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	must.Equal(t, what, want, got, cmpopts.EquateEmpty())
}

// A block's own delimiter is in the embedded text, but is never shown.
func TestDelimiter(t *testing.T) {
	e := newEnriched(t, map[string]string{"a.txt": "a"})
	_, _, _ = e.look()
	e.block.Enrich[0].Delimiter = "<##-##>"
	k, asked, embedded := e.look()
	same(t, "asked", asked) // the addition is known
	same(t, "embedded", embedded, "of a.txt\na\n<##-##>\naa")
	if found := find(t, k, "aa"); len(found) != 1 || found[0].Text != "a" || found[0].Context != "of a.txt\n---\naa" {
		t.Errorf("found %+v", found)
	}
}

func TestEnrichedAreKeptInStep(t *testing.T) {
	e := newEnriched(t, map[string]string{"a.txt": "a b", "b.txt": "c"})
	plain := e.block.Enrich
	e.block.Enrich = nil
	k, _, _ := e.look()
	without, _ := k.Generation()
	e.block.Enrich = plain

	k, asked, embedded := e.look()
	same(t, "asked", asked, "a.txt:a", "a.txt:b", "b.txt:c")
	same(t, "embedded", embedded, "of a.txt\na\n---\naa", "of a.txt\nb\n---\nbb", "of b.txt\nc\n---\ncc")
	if with, _ := k.Generation(); with == without {
		t.Error("it went into the generation without additions")
	}
	if found := find(t, k, "bb"); len(found) != 1 || found[0].Text != "b" || found[0].Context != "of a.txt\n---\nbb" {
		t.Errorf("found %+v", found)
	}
	_, asked, embedded = e.look()
	same(t, "asked of nothing new", asked)
	same(t, "embedded of nothing new", embedded)
	e.write(map[string]string{"b.txt": "c d"})
	_, asked, embedded = e.look()
	same(t, "asked of a changed document", asked, "b.txt:d")
	same(t, "embedded of a changed document", embedded, "of b.txt\nc\n---\ncc", "of b.txt\nd\n---\ndd")
	e.block.Enrich = nil
	if k, _, _ := e.look(); k.Report.Changed != 1 { // b.txt, which that build has not seen yet
		t.Errorf("without enrichment again: %+v", k.Report)
	}
	e.block.Enrich = plain
	if k, asked, _ := e.look(); !k.Report.Unchanged || len(asked) > 0 {
		t.Errorf("with it again: %+v, asked %q", k.Report, asked)
	}
}

func TestSwitches(t *testing.T) {
	tests := []struct {
		embedded, lexical bool
		passage           string
		context, meta     string
	}{
		{true, true, "of a.txt\na\n---\naa", "of a.txt\n---\naa", ""},
		{false, true, "a", "of a.txt\n---\naa", ""},
		{true, false, "of a.txt\na\n---\naa", "", "of a.txt\naa"},
		{false, false, "a", "", "of a.txt\naa"},
	}
	e := newEnriched(t, map[string]string{"a.txt": "a"})
	for i, test := range tests {
		t.Run(fmt.Sprint(test.embedded, test.lexical), func(t *testing.T) {
			e.stage.Embedded, e.stage.Lexical = test.embedded, test.lexical
			k, asked, embedded := e.look()
			if i > 0 && len(asked) > 0 {
				t.Errorf("asked %q again", asked)
			}
			same(t, "embedded", embedded, test.passage)
			found := find(t, k, "a")
			if len(found) != 1 || found[0].Text != "a" || found[0].Context != test.context {
				t.Fatalf("found %+v", found)
			}
			if meta, _ := found[0].Meta["situate"].(string); meta != test.meta {
				t.Errorf("metadata %q, want %q", meta, test.meta)
			}
		})
	}
}

// Changes that do not affect the content of a knowledge keep its index version: other keys,
// timeouts, batch sizes.
func TestNeutralArguments(t *testing.T) {
	e := newEnriched(t, map[string]string{"a.txt": "a"})
	open := func() string {
		t.Helper()
		k, _, _ := e.look()
		name, _ := k.Generation()
		return name
	}
	first := open()
	for _, s := range []*pipeline.Stage{e.block.Chunk, e.stage, e.block.Embed} {
		s.Batch, s.Retries, s.Timeout, s.Workers = 3, 1, time.Minute, 2
		s.Config.Public = []byte(`{"key":"(secret)","timeout":"5s"}`)
		if name := open(); name != first {
			t.Errorf("%s: a timeout makes another generation", s.Block)
		}
		s.Config.Identity = []byte(`{"model":"other"}`)
		if name := open(); name == first {
			t.Errorf("%s: another model makes no other generation", s.Block)
		}
		s.Config.Identity = nil
	}
}

func TestAdditionsTakeNoColumn(t *testing.T) {
	e := newEnriched(t, map[string]string{"a.txt": "a"})
	e.stage.Name, e.stage.Lexical = "title", false
	if err := e.fails(); !strings.Contains(err.Error(), `a column "title"`) {
		t.Error(err)
	}
}

// Additions are in the order of the blocks, whichever enricher finishes first.
func TestSeveralEnrichers(t *testing.T) {
	e := newEnriched(t, map[string]string{"a.txt": "a b", "b.txt": "c"})
	both := make(chan struct{})
	meet := func(p sdk.Passage) { // both work on the first document at the same time
		if p.Document.ID == "a.txt" && p.Start == 0 {
			select {
			case both <- struct{}{}:
			case <-both:
			case <-t.Context().Done():
			}
		}
	}
	e.adder.slow = meet
	path := &adder{slow: meet, add: func(p sdk.Passage) sdk.Addition {
		return sdk.Addition{Context: "path", Terms: []string{"t" + p.Text()}}
	}}
	e.stages.enrich["path"] = path
	e.block.Enrich = append(e.block.Enrich,
		&pipeline.Stage{Block: "enrich", Name: "off", Use: "path"},
		&pipeline.Stage{Block: "enrich", Name: "place", Use: "path", Enabled: true, Lexical: true})
	k, _, embedded := e.look()
	same(t, "embedded", embedded, "of a.txt\na\n---\naa", "of a.txt\nb\n---\nbb", "of b.txt\nc\n---\ncc")
	if found := find(t, k, "tb"); len(found) != 1 || found[0].Context != "of a.txt\npath\n---\nbb\ntb" {
		t.Errorf("found %+v", found)
	}
	if h := e.history(); len(h.Generations) != 1 || len(h.Generations[0].Enrich) != 2 || h.Generations[0].Enrich[1].Name != "place" {
		t.Errorf("history %+v", h.Generations)
	}
}

// The limit sets how many documents are in progress. They are stored in their order, whichever
// finishes first.
func TestDocumentsUnderWay(t *testing.T) {
	files := numbered(30, "a b")
	e := newEnriched(t, files)
	e.stage.Limit = &pipeline.Limit{Concurrency: 3}
	var three sync.WaitGroup // three are in progress at a time, and the first finishes last
	three.Add(3)
	last := make(chan struct{})
	e.adder.slow = func(p sdk.Passage) {
		if p.Document.ID > "02.txt" {
			return
		}
		if p.Start == 0 {
			three.Done()
			three.Wait()
		}
		switch {
		case p.Document.ID == "00.txt":
			<-last
		case p.Document.ID == "02.txt" && p.Start > 0:
			close(last)
		}
	}
	e.embedder.passages = nil
	must.Get(knowledge.Open(t.Context(), e.block, e.stages, knowledge.Options{}))(t)
	var order []string
	for _, text := range e.embedder.passages {
		of, _, _ := strings.Cut(text, "\n")
		order = append(order, strings.TrimPrefix(of, "of "))
	}
	same(t, "order", slices.Compact(order), slices.Sorted(maps.Keys(files))...)
	if e.adder.most != 3 {
		t.Errorf("%d documents were under way at a time, want 3", e.adder.most)
	}
	for _, call := range e.adder.calls {
		if len(call) != 1 {
			t.Errorf("a call for %q", call)
		}
	}

	e.stage.Info.Network, e.stage.Batch, e.stage.Name, e.adder.calls, e.adder.slow = false, 8, "here", nil, nil
	e.look()
	if len(e.adder.calls) != 8 || len(e.adder.calls[0]) != 4 {
		t.Errorf("a local one was called with %q", e.adder.calls)
	}
}

// A slow document does not delay the documents behind it, until four times the documents in
// progress are held.
func TestSlowDocuments(t *testing.T) {
	e := newEnriched(t, numbered(30, "a"))
	e.stage.Limit = &pipeline.Limit{Concurrency: 3}
	var others sync.WaitGroup
	others.Add(11)
	held := 0
	e.adder.slow = func(p sdk.Passage) {
		if p.Document.ID != "00.txt" {
			if p.Document.ID < "12.txt" {
				others.Done()
			}
			return
		}
		others.Wait()
		time.Sleep(20 * time.Millisecond) // time for the twelfth document behind it to begin
		e.adder.mu.Lock()
		held = len(e.adder.calls)
		e.adder.mu.Unlock()
	}
	k, asked, _ := e.look()
	if held != 12 || e.adder.most > 3 || len(asked) != 30 || k.Report.Entries != 30 {
		t.Errorf("%d documents were held, %d under way, %d asked about", held, e.adder.most, len(asked))
	}
}

// Once a service cannot continue, no other document is begun.
func TestNothingIsBegunAfterTheEnd(t *testing.T) {
	e := newEnriched(t, numbered(30, "a"))
	e.stage.Limit, e.stage.Retries = &pipeline.Limit{Concurrency: 2}, 5
	ended := make(chan struct{})
	e.adder.slow = func(p sdk.Passage) {
		if p.Document.ID == "00.txt" { // this document is being answered, and the build waits for it
			<-ended
			time.Sleep(200 * time.Millisecond) // until the build has noticed it
		}
	}
	e.adder.fail = func(p sdk.Passage) error {
		switch p.Document.ID {
		case "02.txt": // it would be retried, but nobody waits for that
			return sdk.Transient(errors.New("busy"), time.Hour/100)
		case "04.txt":
			select {
			case <-ended:
			default:
				close(ended)
			}
			return &sdk.Error{Code: sdk.CodeStopped, Err: errors.New("the budget is spent")}
		}
		return nil
	}
	err := e.fails()
	if sdk.CodeOf(err) != sdk.CodeStopped || strings.Count(err.Error(), "resumes from there") != 1 || strings.Count(err.Error(), "enrich.situate") != 1 {
		t.Errorf("error %v", err)
	}
	same(t, "asked", slices.Sorted(slices.Values(e.adder.asked)), "00.txt:a", "01.txt:a", "02.txt:a", "03.txt:a", "04.txt:a")
	if g := e.history().Current(); g == nil || g.Entries != 2 {
		t.Errorf("what was complete: %+v", g)
	}
}

func TestPassagesThatFail(t *testing.T) {
	e := newEnriched(t, map[string]string{"a.txt": "a b", "x.txt": "c", "y.txt": "d"})
	refuse := errors.New("it was refused")
	e.adder.fail = func(p sdk.Passage) error {
		if p.Text() == "b" {
			return refuse
		}
		return nil
	}
	for range 2 { // the addition persists
		k, asked, embedded := e.look()
		if k.Report.Unenriched != 1 || !errors.Is(k.Report.FirstUnenriched.Err, refuse) || !strings.HasSuffix(k.Report.FirstUnenriched.String(), "a.txt: chunk 1: enrich.situate: it was refused") {
			t.Errorf("report %+v", k.Report)
		}
		if found := find(t, k, "b"); len(found) != 1 || found[0].Context != "" {
			t.Errorf("found %+v", found)
		}
		if k.Report.Added == 0 {
			same(t, "asked", asked, "a.txt:b")
			same(t, "embedded", embedded, "b", "of a.txt\na\n---\naa")
		}
	}
	e.adder.fail = nil
	k, asked, _ := e.look()
	same(t, "asked once it works", asked, "a.txt:b")
	if k.Report.Unenriched != 0 || len(find(t, k, "bb")) != 1 {
		t.Errorf("report %+v", k.Report)
	}
	if k, asked, _ = e.look(); !k.Report.Unchanged || len(asked) > 0 {
		t.Errorf("report %+v, asked %q", k.Report, asked)
	}
}

// A build asks about a passage once. That also holds if the embedder first learns from all entries,
// and if the store is lost during the build.
func TestPassagesAreAskedAboutOnce(t *testing.T) {
	files := map[string]string{"a.txt": "a b c", "b.txt": "x x", "c.txt": "d"}
	asked := []string{"a.txt:a", "a.txt:b", "a.txt:c", "b.txt:x", "b.txt:x", "c.txt:d"}
	fails := []string{"a.txt:b", "b.txt:x", "b.txt:x"}
	for _, test := range []struct {
		name          string
		fits, network bool
		losses        int64
	}{
		{"an embedder that learns", true, true, 0},
		{"it learns, documents together", true, false, 0},
		{"a lost store", false, true, 1},
		{"it learns, a lost store", true, true, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEnriched(t, files)
			e.embedder.fits, e.stage.Info.Network = test.fits, test.network
			e.stages.losses = &atomic.Int64{}
			e.stages.losses.Store(test.losses)
			e.adder.fail = func(p sdk.Passage) error {
				switch p.Text() {
				case "b":
					return errors.New("it was refused")
				case "x":
					return sdk.Transient(errors.New("busy"), 0)
				}
				return nil
			}
			k, got, _ := e.look()
			same(t, "asked", got, asked...)
			if k.Report.Unenriched != 3 || !strings.HasSuffix(k.Report.FirstUnenriched.String(), "a.txt: chunk 1: enrich.situate: it was refused") {
				t.Errorf("report %+v", k.Report)
			}
			for text, context := range map[string]string{"a": "of a.txt\n---\naa", "b": "", "x": "", "d": "of c.txt\n---\ndd"} {
				if found := find(t, k, text); len(found) == 0 || found[0].Context != context {
					t.Errorf("%s: found %+v", text, found)
				}
			}
			k, got, _ = e.look()
			same(t, "asked by the next build", got, fails...)
			if k.Report.Unenriched != 3 {
				t.Errorf("report %+v", k.Report)
			}
			e.adder.fail = nil
			if k, _, _ = e.look(); k.Report.Unenriched != 0 || len(find(t, k, "bb")) != 1 {
				t.Errorf("once it works: report %+v", k.Report)
			}
		})
	}
}

func TestTransientFailures(t *testing.T) {
	e := newEnriched(t, map[string]string{"a.txt": "a b", "b.txt": "c"})
	e.stage.Retries = 1
	failures := 0
	e.adder.fail = func(p sdk.Passage) error {
		if p.Text() == "b" && failures < 2 { // asked twice per failure
			failures++
			return sdk.Transient(errors.New("busy"), time.Millisecond)
		}
		return nil
	}
	k, asked, _ := e.look()
	same(t, "asked", asked, "a.txt:a", "a.txt:b", "a.txt:b", "b.txt:c")
	if k.Report.Unenriched != 0 {
		t.Errorf("report %+v", k.Report)
	}
}

// A build that a service ends keeps what was complete, and the next build continues.
func TestBuildsThatEnd(t *testing.T) {
	for _, code := range []sdk.Code{sdk.CodeStopped, sdk.CodeUnavailable} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			files, want := numbered(20, "a b"), []string(nil)
			for _, name := range slices.Sorted(maps.Keys(files)) {
				want = append(want, name+"#0", name+"#1")
			}
			e := newEnriched(t, files)
			e.stage.Limit = &pipeline.Limit{Concurrency: 2}
			e.adder.fail = func(p sdk.Passage) error {
				if p.Document.ID >= "10.txt" { // the documents before have begun by then
					return &sdk.Error{Code: code, Err: errors.New("the budget is spent")}
				}
				return nil
			}
			err := e.fails()
			if sdk.CodeOf(err) != code || !strings.Contains(err.Error(), "enrich.situate: the budget is spent; its answers are kept: the same command resumes from there") {
				t.Errorf("error %v", err)
			}
			h := e.history()
			if g := h.Current(); g == nil || g.State != generation.Incomplete || g.Entries != 20 {
				t.Errorf("what was complete: %+v", g)
			}
			e.adder.fail = nil
			done := len(e.adder.kept)
			k, asked, _ := e.look()
			if len(asked) != 40-done {
				t.Errorf("asked %d of %d again", len(asked)-(40-done), done)
			}
			same(t, "entries", ids(t, k), want...)
		})
	}
}

// An update that ends leaves the knowledge as it was.
func TestUpdatesThatEnd(t *testing.T) {
	e := newEnriched(t, map[string]string{"a.txt": "a", "b.txt": "b"})
	e.look()
	e.write(map[string]string{"a.txt": "aa", "b.txt": "bb", "c.txt": "d"})
	e.adder.fail = func(p sdk.Passage) error {
		if p.Text() == "d" {
			return &sdk.Error{Code: sdk.CodeStopped, Err: errors.New("the budget is spent")}
		}
		return nil
	}
	_ = e.fails()
	if g := e.history().Current(); g == nil || g.State != generation.Current || g.Entries != 2 {
		t.Errorf("generation %+v", g)
	}
	e.adder.fail = nil
	k, asked, _ := e.look()
	same(t, "asked", asked, "c.txt:d")
	if k.Report.Added != 1 || k.Report.Changed != 2 {
		t.Errorf("report %+v", k.Report)
	}
}

func TestPlanAsksNobody(t *testing.T) {
	e := newEnriched(t, map[string]string{"a.txt": "a bb", "b.txt": "ccc"})
	k, _, _ := e.shelf.look(knowledge.Options{Plan: true})
	if len(e.adder.calls) > 0 {
		t.Errorf("it asked for %q", e.adder.calls)
	}
	want := []knowledge.Asks{{Stage: e.stage, Passages: 3, Characters: 1 + 2 + 3}}
	if diff := cmp.Diff(want, k.Report.Asks, cmpopts.IgnoreFields(pipeline.Stage{}, "Info"), cmpopts.IgnoreUnexported(pipeline.Config{})); diff != "" {
		t.Error(diff)
	}
	e.stage.Info.Reads = sdk.Of(sdk.ColumnText) // the service gets whole documents
	k, _, _ = e.shelf.look(knowledge.Options{Plan: true})
	if got, want := k.Report.Asks[0].Characters, 4+1+4+2+3+3; got != want {
		t.Errorf("%d characters with the documents, want %d", got, want)
	}
	e.look()
	e.write(map[string]string{"b.txt": "d"})
	e.adder.calls = nil
	if k, _, _ = e.shelf.look(knowledge.Options{Plan: true}); len(k.Report.Asks) != 1 || k.Report.Asks[0].Passages != 1 || len(e.adder.calls) > 0 {
		t.Errorf("asks %+v, calls %q", k.Report.Asks, e.adder.calls)
	}
	e.stages.enrich["path"] = &adder{add: func(sdk.Passage) sdk.Addition { return sdk.Addition{Context: "path"} }}
	e.block.Enrich = append(e.block.Enrich, &pipeline.Stage{Block: "enrich", Name: "place", Use: "path", Enabled: true, Lexical: true, Embedded: true})
	var texts []string
	r, err := knowledge.BuildTexts(t.Context(), e.block, e.stages, nil, func(text string) { texts = append(texts, text) })
	if err != nil || len(e.adder.calls) > 0 || len(r.Asks) != 1 || r.Asks[0].Passages != 3 {
		t.Errorf("texts gave %+v, %v, calls %q", r.Asks, err, e.adder.calls)
	}
	same(t, "texts", texts, "path\na", "path\nbb", "path\nd")
}

// Each unchunked row is one passage.
func TestRowsAreEnriched(t *testing.T) {
	e := newEnriched(t, nil)
	e.block.Chunk, e.stages.chunker = nil, nil
	e.block.Sources[0] = newBench(t).block.Sources[0]
	e.block.Sources[0].Context = "label"
	k, embedded := e.open("1\tab\tcards", "2\tcd\tcards", "3\tb\t")
	same(t, "embedded", embedded, "cards\nof 1\nab\n---\nabab", "cards\nof 2\ncd\n---\ncdcd", "of 3\nb\n---\nbb")
	if found := find(t, k, "cdcd"); len(found) != 1 || found[0].Context != "cards\nof 2\n---\ncdcd" {
		t.Errorf("found %+v", found)
	}
	// The centroids are updated when a missing addition arrives.
	e.adder.kept, e.adder.fail = nil, func(p sdk.Passage) error { return errors.New("no") }
	e.block.Sources[0].Context, e.stage.Name = "", "again"
	k, _ = e.open("1\tab\tcards", "2\tcd\tcards", "3\tb\t")
	centroid := func() float32 {
		found, err := k.Prototypes(t.Context(), [][]float32{{1, 1, 0, 0}}, 1)
		if err != nil || len(found[0]) != 1 {
			t.Fatalf("%v, %v", found, err)
		}
		return float32(found[0][0].Dense)
	}
	before := centroid()
	e.adder.fail = nil
	e.adder.add = func(sdk.Passage) sdk.Addition { return sdk.Addition{Terms: []string{"aaaabbbb"}} }
	if k, _ = e.open("1\tab\tcards", "2\tcd\tcards", "3\tb\t"); k.Report.Unenriched != 0 || centroid() <= before {
		t.Errorf("report %+v, similarity %v, then %v", k.Report, before, centroid())
	}
}

func TestLongAdditions(t *testing.T) {
	e := newEnriched(t, map[string]string{"a.txt": "a"})
	e.adder.add = func(sdk.Passage) sdk.Addition {
		return sdk.Addition{Context: strings.Repeat("ä", 29_000), Terms: []string{strings.Repeat("word ", 1000)}}
	}
	k, _, embedded := e.look()
	found := find(t, k, "a")
	if len(found) != 1 || len(found[0].Context) > 60_000 || len(found[0].Context) < 59_990 || !strings.HasSuffix(found[0].Context, " word") {
		t.Errorf("found %d with %d bytes of context", len(found), len(found[0].Context))
	}
	if len(embedded) != 1 || !strings.HasSuffix(embedded[0], " word") {
		t.Errorf("embedded %d texts", len(embedded))
	}
}

// Long work is reported by its name, in bytes of documents and by passage.
func TestProgress(t *testing.T) {
	e := newEnriched(t, map[string]string{"a.txt": "a b", "b.txt": "c"})
	told := func() (all []string) {
		e.stage.Name += "x" // another index version
		if _, err := knowledge.Open(t.Context(), e.block, e.stages, knowledge.Options{Progress: func(s progress.Step) {
			all = append(all, fmt.Sprintf("%s %d of %d %ss, %d passages", s.Doing, s.Done, s.Total, s.Unit, s.Passages))
		}}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	same(t, "enriched and embedded", told(), "enriching and embedding 3 of 4 bytes, 2 passages", "enriching and embedding 4 of 4 bytes, 3 passages")
	e.embedder.fits = true
	same(t, "with an embedder that learns", told(), "enriching 3 of 4 bytes, 2 passages", "enriching 4 of 4 bytes, 3 passages", "embedding 0 of 4 bytes, 3 passages", "embedding 4 of 4 bytes, 3 passages")
	e.block.Enrich, e.embedder.fingerprint = nil, "other"
	same(t, "not enriched", told(), "fitting 3 of 4 bytes, 2 passages", "fitting 4 of 4 bytes, 3 passages", "embedding 0 of 4 bytes, 3 passages", "embedding 4 of 4 bytes, 3 passages")
}
