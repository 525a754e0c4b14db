package knowledge_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/knowledge"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/knowledge/reviewed"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// several gives a bench a second file of rows, and a file of decisions, which does not exist yet.
func several(t *testing.T) (b *bench, second, decisions string) {
	b = newBench(t)
	dir := filepath.Dir(b.block.Sources[0].Path)
	second, decisions = filepath.Join(dir, "second.csv"), filepath.Join(dir, "reviewed.jsonl")
	b.block.Sources = append(b.block.Sources,
		pipeline.Source{Path: second, ID: "number", Text: "body", Label: "kind"},
		pipeline.Source{Path: decisions, Form: source.Form{Format: source.JSONL}, Reviewed: true})
	put(t, second, "number,body,kind\ns1,bb,y\n")
	return b, second, decisions
}

func put(t *testing.T, path, content string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(content), 0o600))
}

// entries lists the entries as "id text label reviewer".
func entries(t *testing.T, k *knowledge.Knowledge) (all []string) {
	t.Helper()
	err := k.Entries(t.Context(), sdk.Scan{Texts: true}, func(e sdk.Entry) {
		who, _ := e.Meta["reviewer"].(string)
		all = append(all, strings.TrimSpace(strings.Join([]string{e.ID, e.Text, e.Label, who}, " ")))
	})
	must.Do(t, err)
	slices.Sort(all)
	return all
}

// TestSources: people's decisions add to rows of several files, change rows and drop rows. Nothing else is embedded
// again.
func TestSources(t *testing.T) {
	b, second, decisions := several(t)
	rows := []string{"1\ta\tx", "2\tab\tx"}
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	decide := func(r reviewed.Row) func() {
		return func() {
			r.Reviewer, r.ReviewedAt = "Ada", at
			must.Do(t, reviewed.Write(decisions, nil, []reviewed.Row{r}))
		}
	}
	added := reviewed.ID("ca", "") + " ca z Ada"
	for _, step := range []struct {
		name     string
		do       func()
		embedded []string
		report   knowledge.BuildReport
		entries  []string
		labels   []string
		invalid  []string
	}{
		{"a first build", func() {}, []string{"a", "ab", "bb"}, knowledge.BuildReport{Entries: 3, Added: 3}, []string{"1 a x", "2 ab x", "s1 bb y"}, []string{"x", "y"}, nil},
		{"nothing changed", func() {}, nil, knowledge.BuildReport{Entries: 3, Unchanged: true}, []string{"1 a x", "2 ab x", "s1 bb y"}, []string{"x", "y"}, nil},
		{"a row of the second file", func() { put(t, second, "number,body,kind\ns1,bb,y\ns2,cc,y\n") }, []string{"cc"}, knowledge.BuildReport{Entries: 4, Added: 1},
			[]string{"1 a x", "2 ab x", "s1 bb y", "s2 cc y"}, []string{"x", "y"}, nil},
		{"a decision", decide(reviewed.Row{Text: "ca", Label: "z"}), []string{"ca"}, knowledge.BuildReport{Entries: 5, Added: 1},
			[]string{"1 a x", "2 ab x", added, "s1 bb y", "s2 cc y"}, []string{"x", "y", "z"}, nil},
		{"another label for a row", decide(reviewed.Row{Text: "ab", Label: "y", Replaces: "2"}), []string{"ab"}, knowledge.BuildReport{Entries: 5, Changed: 1},
			[]string{"1 a x", "2 ab y Ada", added, "s1 bb y", "s2 cc y"}, []string{"x", "y", "z"}, nil},
		{"a row of the second file dropped", decide(reviewed.Row{Text: "cc", Replaces: "s2"}), nil, knowledge.BuildReport{Entries: 4, Removed: 1},
			[]string{"1 a x", "2 ab y Ada", added, "s1 bb y"}, []string{"x", "y", "z"}, nil},
		{"another decision about it", decide(reviewed.Row{Text: "cc", Label: "z", Replaces: "s2"}), []string{"cc"}, knowledge.BuildReport{Entries: 5, Added: 1},
			[]string{"1 a x", "2 ab y Ada", added, "s1 bb y", "s2 cc z Ada"}, []string{"x", "y", "z"}, nil},
		{"the row is gone from its file, and ids stand twice", func() {
			put(t, second, "number,body,kind\ns1,bb,y\n1,again,x\n")
			put(t, decisions, "{broken\n"+string(lines(t, decisions)))
		}, nil, knowledge.BuildReport{Entries: 4, Removed: 1, InvalidCount: 3}, []string{"1 a x", "2 ab y Ada", added, "s1 bb y"}, []string{"x", "y", "z"}, []string{
			`/reviewed.jsonl:1: column 2: it is not JSON: invalid character 'b' looking for beginning of object key string`,
			`/second.csv:3: its id "1" stands on line 2 of ` + b.block.Sources[0].Path + ` already; ids must be unique`,
			`/reviewed.jsonl:4: it replaces the row "s2", which no other source has any more: remove the line or, to keep it as a row of its own, its member replaces`,
		}},
		{"no decisions any more", func() { put(t, decisions, "") }, []string{"ab"}, knowledge.BuildReport{Entries: 3, Changed: 1, Removed: 1, InvalidCount: 1},
			[]string{"1 a x", "2 ab x", "s1 bb y"}, []string{"x", "y"}, []string{`/second.csv:3: its id "1" stands on line 2 of ` + b.block.Sources[0].Path + ` already; ids must be unique`}},
	} {
		t.Run(step.name, func(t *testing.T) {
			b.t = t
			step.do()
			k, embedded := b.open(rows...)
			must.Equal(t, "embedded", step.embedded, embedded)
			if d := gocmp.Diff(step.report, k.Report, cmpopts.IgnoreFields(knowledge.BuildReport{}, "Name", "Embedder", "Store", "Documents", "Invalid")); d != "" {
				t.Errorf("report (-want +got):\n%s", d)
			}
			must.Equal(t, "entries", step.entries, entries(t, k))
			must.Equal(t, "labels", step.labels, k.Labels)
			must.Equal(t, "invalid", step.invalid, b.faults(k))
		})
	}
}

func lines(t *testing.T, path string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(path))(t)
}

// TestSourcesAreLoadedAgain: chunked rows are read a second time, with their decisions.
func TestSourcesAreLoadedAgain(t *testing.T) {
	b, _, decisions := several(t)
	b.stages.chunker = &words{}
	b.block.Chunk = &pipeline.Stage{Block: "chunk", Use: "words"}
	for _, r := range []reviewed.Row{{Text: "c a", Label: "z"}, {Text: "b", Label: "z", Replaces: "2"}, {Replaces: "s1"}} {
		must.Do(t, reviewed.Write(decisions, nil, []reviewed.Row{r}))
	}
	k, embedded := b.open("1\ta\tx", "2\tab\tx")
	if want := []string{"a", "a", "b", "c"}; !slices.Equal(embedded, want) {
		t.Errorf("embedded %q, want %q", embedded, want)
	}
	if n := len(entries(t, k)); n != 4 {
		t.Errorf("%d entries", n)
	}
}

// TestOneSourceIsAsEver: the content of a single source of rows has the same digest as before, and so the same index
// version.
func TestOneSourceIsAsEver(t *testing.T) {
	b := newBench(t)
	k, _ := b.open("1\ta\tx")
	digest := must.Get(source.Digest(b.block.Sources[0].Path))(t)
	all := must.Get(b.store().List(t.Context()))(t)
	_, content := k.Generation()
	if i := slices.IndexFunc(all, func(c sdk.Collection) bool { return strings.Contains(string(c.Note), digest) }); i < 0 || content == "" {
		t.Errorf("no note has the digest %s of the file", digest)
	}
}

// writeLabels gives the entries of the only index version labels as racflow 0.1 did: in the file's spelling.
func (b *bench) writeLabels(written map[string]string) {
	ctx, store := b.t.Context(), must.Get(b.stages.Store(b.t.Context()))(b.t)
	for _, c := range must.Get(store.List(ctx))(b.t) {
		schema := sdk.Schema{Dimension: 4, Analyzer: b.block.Analyzer}
		if strings.HasSuffix(c.Name, "-labels") {
			schema.Analyzer = ""
		}
		must.Get(store.Open(ctx, c.Name, schema))(b.t)
		var entries []sdk.Entry
		must.Do(b.t, generation.Scan(ctx, store, c.Name, sdk.Scan{Texts: true, Vectors: true}, func(e sdk.Entry) { entries = append(entries, e) }))
		if strings.HasSuffix(c.Name, "-labels") {
			must.Do(b.t, store.Delete(ctx, c.Name, []string{"x", "y", "ü"}))
			entries = nil
			for _, label := range written {
				entries = append(entries, sdk.Entry{ID: label, Label: label, Vector: []float32{1, 0, 0, 0}})
			}
		}
		for i, e := range entries {
			entries[i].Label = cmp.Or(written[e.ID], e.Label)
			entries[i].Hash = source.Row{Text: e.Text, Label: entries[i].Label}.Hash()
		}
		must.Do(b.t, store.Put(ctx, c.Name, entries))
		must.Do(b.t, store.Commit(ctx, c.Name, c.Note))
	}
}

// TestLabelsOfEarlierVersions: knowledge whose labels would merge stays as it is until a person agrees, or has
// corrected its rows. If no labels would merge, the rows are processed again.
func TestLabelsOfEarlierVersions(t *testing.T) {
	for _, c := range []struct {
		name    string
		written map[string]string // labels in the file, by id
		after   map[string]string // nil: the same file
		agree   bool
		asked   string
		want    []string // nil: the file is refused
	}{
		{name: "nobody agrees", written: map[string]string{"1": "x", "2": "x ", "3": "y"}, asked: `"x" and "x "`},
		{name: "a person agrees", written: map[string]string{"1": "x", "2": "x\u200b", "3": "y"}, agree: true, asked: `"x" and "x\u200b"`, want: []string{"x", "y"}},
		{name: "two forms of Unicode", written: map[string]string{"1": "u\u0308", "2": "ü", "3": "y"}, agree: true, asked: `"u\u0308" and "\u00fc"`, want: []string{"y", "ü"}},
		{name: "none merge", written: map[string]string{"1": "x ", "2": "x ", "3": "y"}, want: []string{"x", "y"}},
		{name: "corrected", written: map[string]string{"1": "x", "2": "x ", "3": "y"}, after: map[string]string{"1": "x", "2": "x", "3": "y"}, want: []string{"x", "y"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			rows := func(labels map[string]string) []string {
				return []string{"1\ta\t" + labels["1"], "2\tab\t" + labels["2"], "3\tcd\t" + labels["3"]}
			}
			b.open(rows(c.written)...)
			b.writeLabels(c.written)
			if c.after != nil {
				put(t, b.block.Sources[0].Path, "id\ttext\tlabel\n"+strings.Join(rows(c.after), "\n")+"\n")
			}
			asked := ""
			open := func() (*knowledge.Knowledge, error) {
				return knowledge.Open(t.Context(), b.block, b.stages, knowledge.Options{MergeLabels: func(question string) bool { asked = question; return c.agree }})
			}
			k, err := open()
			if !strings.Contains(asked, c.asked) || (asked == "") != (c.asked == "") {
				t.Errorf("asked %q, want %q", asked, c.asked)
			}
			if c.want == nil {
				if err == nil || !strings.Contains(err.Error(), "RACFLOW_MERGE_LABELS=1") {
					t.Errorf("got %v", err)
				}
				return
			}
			must.Do(t, err)
			must.Equal(t, "labels", c.want, k.Labels)
			asked = ""
			if k = must.Get(open())(t); asked != "" || !k.Report.Unchanged {
				t.Errorf("it asks again: %q, %+v", asked, k.Report)
			}
		})
	}
}
