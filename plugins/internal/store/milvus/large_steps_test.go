package milvus

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/store/local"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// largeTask is the environment variable with the task of a process, as JSON.
const largeTask = "RACFLOW_TEST_MILVUS_LARGE_TASK"

// task is the work of a process of TestLarge with a store.
type task struct {
	Step, Store, Config, Folder string
	Rows                        int
	Result                      string // file for the figures, as JSON
}

// The steps.
const (
	stepFill   = "filling"
	stepSearch = "searching"
	stepChange = "changing"
	stepOpen   = "opening"
)

// start runs the task in another process.
func (w task) start(t *testing.T) (f figures) {
	t.Helper()
	w.Result = filepath.Join(t.TempDir(), "figures.json")
	text, err := json.Marshal(w)
	must.Do(t, err)
	child := exec.Command(os.Args[0], "-test.run=^TestLarge$", "-test.v")
	child.Env = append(os.Environ(), largeTask+"="+string(text))
	output, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%s, %s: %v\n%s", w.Store, w.Step, err, output)
	}
	text, err = os.ReadFile(w.Result)
	must.Do(t, err)
	must.Do(t, json.Unmarshal(text, &f))
	t.Logf("%s, %s: %v", w.Store, w.Step, f.Lines)
	return f
}

func runLargeTask(t *testing.T, text string) {
	var w task
	must.Do(t, json.Unmarshal([]byte(text), &w))
	stage := Stage()
	if w.Store == "local" {
		stage = local.Stage()
	}
	opened, err := stage.Open(t.Context(), sdk.Setup{StateDir: w.Folder}, []byte(w.Config))
	must.Do(t, err)
	r := &largeRun{TB: t, Store: opened.(sdk.Store), Corpus: apitest.NewCorpus(8, 16), rows: w.Rows, folder: w.Folder}
	map[string]func(){stepFill: r.fill, stepSearch: r.search, stepChange: r.change, stepOpen: r.open}[w.Step]()
	r.Memory = peakMemory(t, os.Getpid())
	r.Lines = append(r.Lines, megabytes("memory of racflow "+w.Step, r.Memory))
	result, err := json.Marshal(r.figures)
	must.Do(t, err)
	must.Do(t, os.WriteFile(w.Result, result, 0o600))
}

// largeRun is a task in its own process.
type largeRun struct {
	testing.TB
	sdk.Store
	apitest.Corpus
	figures
	rows   int
	folder string
}

func (r *largeRun) schema() {
	_, err := r.Store.Open(r.Context(), "c", sdk.Schema{Dimension: apitest.CorpusDimension, Analyzer: "standard"})
	must.Do(r, err)
}

func (r *largeRun) put(first, n int) {
	for part := range slices.Chunk(r.Entries(first, n), 250) { // as the engine does
		must.Do(r, r.Put(r.Context(), "c", part))
	}
}

func (r *largeRun) fill() {
	r.schema()
	start := time.Now()
	for first := 0; first < r.rows; first += 1000 {
		r.put(first, min(1000, r.rows-first))
	}
	loaded := time.Now()
	must.Do(r, r.Commit(r.Context(), "c", []byte("filled")))
	r.Lines = append(r.Lines, seconds("load", loaded.Sub(start)), seconds("commit and index", time.Since(loaded)))
}

// open opens the collection and makes a first search.
func (r *largeRun) open() {
	start := time.Now()
	r.schema()
	r.find(sdk.ModeHybrid, 60, r.query(nil))
	r.Lines = append(r.Lines, seconds("open, to the first answer", time.Since(start)))
}

func (r *largeRun) query(filter *sdk.Filter) sdk.Query {
	return sdk.Query{Text: r.Text(5), Vector: r.Vector(), Filter: filter}
}

// find returns what a retrieve block with defaults keeps of that many candidates.
func (r *largeRun) find(mode sdk.Mode, candidates int, q sdk.Query) []sdk.Candidate {
	r.Helper()
	ranking := sdk.Ranking{Search: sdk.Search{Mode: mode, NumCandidates: candidates}, Fusion: sdk.Fusion{Method: support.Weighted, DenseWeight: 0.7}, TopK: 60}
	hits, err := r.Search(r.Context(), "c", ranking.Search, []sdk.Query{q})
	must.Do(r, err)
	return support.Fuse(hits[0], ranking.Fusion, ranking.TopK)
}

func (r *largeRun) search() {
	r.open()
	label := &sdk.Filter{Op: sdk.FilterIn, Field: sdk.FieldLabel, Values: []any{apitest.EntryLabel(7)}}
	for _, ask := range []struct {
		name       string
		mode       sdk.Mode
		candidates int
		filter     *sdk.Filter
	}{
		{"dense search", sdk.ModeDense, 60, nil},
		{"lexical search", sdk.ModeLexical, 60, nil},
		{"hybrid search", sdk.ModeHybrid, 60, nil},
		{"hybrid search, 240 candidates", sdk.ModeHybrid, 240, nil},
		{"hybrid search in one label of 150", sdk.ModeHybrid, 60, label},
	} {
		var times []time.Duration
		for range 30 {
			q := r.query(ask.filter)
			start := time.Now()
			best := r.find(ask.mode, ask.candidates, q)
			times = append(times, time.Since(start))
			best = best[:min(10, len(best))]
			for i := range best { // JSON has no NaN, and the score is enough
				best[i] = sdk.Candidate{ID: best[i].ID, Score: best[i].Score}
			}
			r.Best = append(r.Best, best)
		}
		r.Lines = append(r.Lines, percentiles(ask.name, times))
	}
}

// change replaces rows and adds as many new ones. Then the store cleans up: in Milvus the next writer removes the
// replaced rows, and the embedded store merges its files.
func (r *largeRun) change() {
	r.schema()
	const half = 500
	start := time.Now()
	r.put(r.rows/2, half)
	r.put(r.rows, half)
	must.Do(r, r.Commit(r.Context(), "c", []byte("changed")))
	r.Lines = append(r.Lines, seconds("change of 1,000 rows", time.Since(start)))
	if r.folder == "" {
		return // in Milvus the replaced rows are gone
	}
	start = time.Now()
	_, err := local.Compact(r.Context(), local.Location{Dir: r.folder, Name: "c"})
	must.Do(r, err)
	r.Lines = append(r.Lines, seconds("clearing up", time.Since(start)))
}
