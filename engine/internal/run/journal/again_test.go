package journal_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/run/journal"

	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/sdk"
)

type none struct{}

// counted counts what stages of the test are asked for.
type counted struct {
	mu     sync.Mutex
	embeds []string // passages
	asked  []string // texts of items
}

func (c *counted) add(to *[]string, texts ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*to = append(*to, texts...)
}

// letters embeds a text as how often it has each letter.
type letters struct{ *counted }

func (letters) Dimension() int { return 26 }

func (l letters) Embed(_ context.Context, role sdk.Role, texts []string) ([][]float32, error) {
	if role == sdk.RolePassage {
		l.add(&l.embeds, texts...)
	}
	all := make([][]float32, len(texts))
	for i, text := range texts {
		all[i] = make([]float32, 26)
		for _, r := range text {
			if 'a' <= r && r <= 'z' {
				all[i][r-'a']++
			}
		}
		square := 0.
		for _, x := range all[i] {
			square += float64(x * x)
		}
		for j := range all[i] {
			all[i][j] /= float32(math.Sqrt(max(square, 1)))
		}
	}
	return all, nil
}

// shots writes a prompt with two random examples.
type shots struct{}

func (shots) Random() sdk.Draw { return sdk.Draw{Count: 2, Seed: 7} }

func (shots) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	all := make([][]sdk.Prompt, len(b.Items))
	for i, item := range b.Items {
		text := ""
		for _, c := range item.Random {
			text += c.ID + "=" + c.Label + " "
		}
		all[i] = []sdk.Prompt{{Messages: []sdk.Message{{Role: sdk.MessageUser, Text: text}}}}
	}
	return all, nil
}

// model votes by a hash of all that it sees, so that nothing of it can change unnoticed.
type model struct{ *counted }

func (m model) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	all := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		m.add(&m.asked, item.Text)
		h := uint64(len(b.Labels))
		see := func(text string) {
			for _, r := range text {
				h = h*31 + uint64(r)
			}
		}
		for _, c := range item.Candidates {
			see(fmt.Sprint(c.ID, c.Label, c.Score))
		}
		for _, p := range item.Prompts {
			see(p.Messages[0].Text)
		}
		all[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: b.Labels[h%uint64(len(b.Labels))], Weight: 1}}}}
	}
	return all, nil
}

func (c *counted) catalog() enginetest.Catalog {
	return append(enginetest.Stages(),
		sdk.EmbedStage("letters", "Counts letters.", func(context.Context, sdk.Setup, none) (sdk.Embedder, error) { return letters{c}, nil }),
		sdk.PromptStage("shots", "Shows random examples.", func(context.Context, sdk.Setup, none) (sdk.Prompter, error) { return shots{}, nil }, sdk.Reads(sdk.ColumnText, sdk.ColumnRandom)),
		sdk.SampleStage("model", "A voter of the test.", func(context.Context, sdk.Setup, none) (sdk.Sampler, error) { return model{c}, nil },
			sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates, sdk.ColumnLabels)),
		sdk.SampleStage("prompted", "A voter of the test.", func(context.Context, sdk.Setup, none) (sdk.Sampler, error) { return model{c}, nil },
			sdk.Reads(sdk.ColumnText, sdk.ColumnLabels, sdk.ColumnPrompts)))
}

const file = `
knowledge "k" {
  source { path = "rows.tsv" }
  source {
    path     = "reviewed.jsonl"
    reviewed = true
  }
  embed { use = "letters" }
  store { use = "memory" }
}
pipeline "p" {
  retrieve "near" {
    from  = knowledge.k
    mode  = "MODE"
    top_k = 3
  }
  BLOCKS
  sample "v" { use = "model" }
  elect "e" { use = "soft" }
}
`

// bench is a pipeline with runs.
type bench struct {
	*counted
	t       *testing.T
	dir     string
	catalog enginetest.Catalog
	state   string
	rows    []source.Row
}

func newBench(t *testing.T, mode, blocks string, rows, items []string) *bench {
	b := &bench{counted: &counted{}, t: t, state: t.TempDir()}
	b.catalog = b.counted.catalog()
	b.dir = runtest.Folder(t, map[string]string{
		runtest.File: strings.NewReplacer("MODE", mode, "BLOCKS", blocks).Replace(file), "rows.tsv": "id\ttext\tlabel\n" + strings.Join(rows, "\n") + "\n",
	})
	for i, text := range items {
		b.rows = append(b.rows, source.Row{Line: i + 2, ID: fmt.Sprint("i", i), Text: text})
	}
	return b
}

// run takes the items through the pipeline, with the answers of an earlier run where they hold.
func (b *bench) run(earlier string) (id string, results []outcome.Result, totals outcome.Totals, terms journal.EarlierTerms) {
	b.t.Helper()
	fail := func(err error) {
		b.t.Helper()
		if err != nil {
			b.t.Fatal(err)
		}
	}
	b.embeds, b.asked = nil, nil
	var report knowledge.BuildReport
	o := run.Options{Launch: runtest.Launch(b.t, b.dir), Knowledge: func(r knowledge.BuildReport) { report = r }}
	o.Basis, o.Fitted = true, filepath.Join(b.dir, "fitted")
	p := runtest.Load(b.t, b.catalog, b.dir).Pipelines[0]
	r, err := run.Open(b.t.Context(), p, o)
	fail(err)
	var labels [][]string
	m := journal.Manifest{File: "p.hcl", Pipeline: "p"}
	for _, k := range r.Graph().Knowledge() {
		labels = append(labels, k.Labels)
	}
	m.Labels = journal.ListsDigest(labels)
	for _, g := range r.Generations() {
		m.Knowledge = append(m.Knowledge, journal.ManifestKnowledge(g))
	}
	for _, s := range r.Graph().Identities() {
		m.Stages = append(m.Stages, journal.ManifestStage{Stage: s.Stage, Use: s.Use, Learnt: s.Learnt})
	}
	kept := journal.RunsOf(b.state)
	book, _, err := kept.Begin(m, journal.Options{}, journal.Retention{})
	fail(err)
	var to run.Journal = book
	if earlier != "" {
		old, err := kept.Open(earlier)
		fail(err)
		fail(journal.CheckSame(old.Manifest, m))
		terms = journal.EarlierTermsOf(old.Manifest, m, r.Graph().Searchable())
		both := journal.NewWithEarlier(book, old, terms)
		to = both
		defer func() { fail(both.Done()) }()
	}
	totals, err = r.Items(b.t.Context(), runtest.Rows(b.rows...), to, runtest.Each(func(r outcome.Result) error {
		results = append(results, r)
		return nil
	}))
	fail(err)
	fail(book.Close(journal.NewTotals(totals, nil)))
	if len(b.embeds) != report.Added+report.Changed {
		b.t.Errorf("%d passages were embedded, and %d added, %d changed", len(b.embeds), report.Added, report.Changed)
	}
	return book.ID(), results, totals, terms
}

func (b *bench) decide(rows ...reviewed.Row) {
	b.t.Helper()
	if err := reviewed.Write(filepath.Join(b.dir, "reviewed.jsonl"), nil, rows); err != nil {
		b.t.Fatal(err)
	}
}

// work is how many rows a stage had.
func work(t outcome.Totals, stage string) int {
	for _, s := range t.Stages {
		if s.Stage == stage {
			return s.Rows
		}
	}
	return 0
}

// same ignores what is not of the answer.
var same = cmpopts.IgnoreFields(outcome.Result{}, "Latency", "From", "Candidates", "Lists", "Prompts", "Usages", "Skipped")

// TestOnlyWhatDependsOnIt: after a decision, only its text is embedded and only the items that
// find it are asked about, and every answer is what it would be without any that is taken.
func TestOnlyWhatDependsOnIt(t *testing.T) {
	rows := []string{"1\taaab\tx", "2\taabb\tx", "3\tcccd\ty", "4\tccdd\ty", "5\teeef\tz", "6\teeff\tz"}
	b := newBench(t, "dense", "", rows, []string{"aab", "ab", "ccd", "cd", "eef", "zq zq"})
	first, _, totals, _ := b.run("")
	if len(b.embeds) != 6 || len(b.asked) != 6 || work(totals, "search.memory") != 6 {
		t.Fatalf("embedded %q, asked about %q", b.embeds, b.asked)
	}
	b.decide(reviewed.Row{Text: "ZQ  zq", Label: "x", Reviewer: "Ada"}, reviewed.Row{Text: "ccccd", Label: "y"})
	second, taken, totals, terms := b.run(first)
	if terms.All || len(terms.Changed) > 0 {
		t.Fatalf("terms %+v", terms)
	}
	slices.Sort(b.embeds)
	slices.Sort(b.asked)
	if want := []string{"ZQ  zq", "ccccd"}; !slices.Equal(b.embeds, want) {
		t.Errorf("embedded %q, want %q", b.embeds, want)
	}
	if want := []string{"ccd", "cd"}; !slices.Equal(b.asked, want) {
		t.Errorf("asked about %q, want %q", b.asked, want)
	}
	if totals.Taken != 3 || totals.Decided != 1 || totals.Items != 6 || totals.Earlier != 0 || work(totals, "sample.v") != 2 || work(totals, "search.memory") != 5 || work(totals, "elect.e") != 2 {
		t.Errorf("totals %+v", totals)
	}
	if taken[0].From != first || taken[2].From != "" || taken[5].Decided == nil {
		t.Errorf("results %+v", taken)
	}
	_, anew, _, _ := b.run("")
	if d := cmp.Diff(anew, taken, same, cmpopts.EquateNaNs()); d != "" {
		t.Errorf("(-anew +taken):\n%s", d)
	}
	// What was taken is an answer of that run, too: a third one takes it, with where it is from.
	_, third, totals, terms := b.run(second)
	if !terms.All || totals.Taken != 5 || len(b.asked)+len(b.embeds)+work(totals, "search.memory") != 0 || third[0].From != first || third[2].From != second {
		t.Errorf("nothing has changed, and %+v was done; %+v, %+v", totals, terms, third)
	}
}

// TestWhatIsTakenIsWhatWouldBeAnswered changes a knowledge at random, and compares answers that
// are taken with those that are made anew, of voters that see candidates, centroids and random
// examples.
func TestWhatIsTakenIsWhatWouldBeAnswered(t *testing.T) {
	for name, blocks := range map[string]string{
		"candidates":      "",
		"centroids":       `sample "p" { use = "prototype" }`,
		"random examples": "prompt \"s\" { use = \"shots\" }\nsample \"w\" { use = \"prompted\" }",
		"what is learnt":  `sample "n" { use = "neighbours" }`,
		"words":           "",
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(len(blocks))))
			text := func() string {
				word := make([]byte, 6)
				for i := range word {
					word[i] = byte('a' + random.IntN(12))
				}
				return string(word[:3]) + " " + string(word[3:])
			}
			var rows, items, texts []string
			for i := range 60 {
				texts = append(texts, text())
				rows = append(rows, fmt.Sprintf("r%d\t%s\t%c", i, texts[i], 'x'+rune(i%3)))
				items = append(items, text())
			}
			mode := map[bool]string{true: "lexical", false: "dense"}[name == "words"]
			b := newBench(t, mode, blocks, rows, items)
			if name == "what is learnt" {
				b.dir = runtest.Folder(t, map[string]string{
					runtest.File: strings.Replace(strings.NewReplacer("MODE", mode, "BLOCKS", blocks).Replace(file), `use = "soft"`, `use = "witness"`, 1),
					"rows.tsv":   "id\ttext\tlabel\n" + strings.Join(rows, "\n") + "\n",
				})
			}
			last, _, _, _ := b.run("")
			takenOfAll := 0
			for step := range 8 {
				switch step % 4 {
				case 0:
					b.decide(reviewed.Row{Text: items[random.IntN(len(items))], Label: "y"})
				case 1:
					b.decide(reviewed.Row{Text: text(), Label: "z", Replaces: fmt.Sprint("r", random.IntN(60))})
				case 2: // the same text, which is found as before
					n := 3 * random.IntN(20)
					b.decide(reviewed.Row{Text: texts[n], Label: "z", Replaces: fmt.Sprint("r", n)})
				case 3:
					b.decide(reviewed.Row{Replaces: fmt.Sprint("r", random.IntN(60))})
				}
				id, taken, totals, _ := b.run(last)
				takenOfAll += totals.Taken
				_, anew, _, _ := b.run("")
				if d := cmp.Diff(anew, taken, same, cmpopts.EquateNaNs()); d != "" {
					t.Fatalf("step %d (-anew +taken):\n%s", step, d)
				}
				last = id
			}
			switch few := takenOfAll < 8*30; {
			case name == "candidates" || name == "random examples":
				if few {
					t.Errorf("%d answers were taken of 480", takenOfAll)
				}
			case takenOfAll > 0 && name == "what is learnt":
				t.Errorf("%d answers were taken, although the election has learnt from other rows", takenOfAll)
			}
		})
	}
}

// TestTerms: what has changed beside the knowledge affects every answer.
func TestTerms(t *testing.T) {
	base := func() journal.Manifest {
		return journal.Manifest{
			ID: "run-000001", Version: "1", Labels: "l", Parts: map[string]string{"sample.v": "a"}, Limit: 5,
			Knowledge: []journal.ManifestKnowledge{{Name: "k", Collection: "c", Content: "x"}},
			Stages:    []journal.ManifestStage{{Stage: "sample.v", Use: "linear", Learnt: "n"}},
		}
	}
	tests := map[string]struct {
		change  func(*journal.Manifest)
		waits   bool // a search needs another stage
		all     bool
		changed []string
	}{
		"nothing":             {func(*journal.Manifest) {}, true, true, nil},
		"the limit":           {func(m *journal.Manifest) { m.Limit = 0 }, false, true, nil},
		"the knowledge":       {func(m *journal.Manifest) { m.Knowledge[0].Content = "y" }, false, false, nil},
		"its generation":      {func(m *journal.Manifest) { m.Knowledge[0].Collection = "d" }, false, false, nil},
		"a search that waits": {func(m *journal.Manifest) { m.Knowledge[0].Content = "y" }, true, false, []string{"the knowledge, and a search waits for other stages"}},
		"its labels":          {func(m *journal.Manifest) { m.Knowledge[0].Content, m.Labels = "y", "m" }, false, false, []string{"the labels of the knowledge"}},
		"what a voter learnt": {func(m *journal.Manifest) { m.Knowledge[0].Content, m.Stages[0].Learnt = "y", "o" }, false, false, []string{"what sample.v has learnt"}},
		"the file":            {func(m *journal.Manifest) { m.Parts["sample.v"] = "b" }, false, false, []string{"sample.v of the file"}},
		"the version":         {func(m *journal.Manifest) { m.Version = "2" }, false, false, []string{"racflow is version 2, it was 1"}},
		"what it works with":  {func(m *journal.Manifest) { m.Stages[0].Fingerprint = "f" }, false, false, []string{"what sample.v works with, such as its model or template"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := base()
			test.change(&now)
			got := journal.EarlierTermsOf(base(), now, !test.waits)
			if want := (journal.EarlierTerms{Run: "run-000001", All: test.all, Changed: test.changed}); !cmp.Equal(want, got) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
