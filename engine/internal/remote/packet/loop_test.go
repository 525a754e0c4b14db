package packet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/remote/packet"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/result"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

var builtin = engine.Serve(append(enginetest.Stages(), enginetest.Alphabet(), enginetest.TheirsFile(), moody()))

// moody is a model that answers with the item's last word where its prompt allows that, says what it
// took, and has its moods: each a word of the text.
func moody() sdk.Stage {
	return sdk.SampleStage("moody", "A voter of the test.", func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) {
		return &mood{asked: map[string]int{}}, nil
	}, sdk.Reads(sdk.ColumnText, sdk.ColumnPrompts))
}

type mood struct {
	mu    sync.Mutex
	asked map[string]int
}

func (m *mood) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, failed := make([][]sdk.Sample, len(b.Items)), sdk.RowErrors{}
	for i, it := range b.Items {
		words := strings.Fields(it.Text)
		m.asked[it.Text]++
		switch {
		case words[0] == "busy" && m.asked[it.Text] == 1:
			failed[i] = sdk.Transient(errors.New("the model is busy"), 0)
		case words[0] == "never":
			failed[i] = sdk.Refused(errors.New("the model does not want to talk about it"))
		case words[0] == "stop":
			failed[i] = &sdk.Error{Code: sdk.CodeStopped, Err: errors.New("the budget is spent: raise it, and resume the run")}
		case words[0] == "broken":
			failed[i] = sdk.Invalid(errors.New("the model cannot read this: shorten it"))
		default:
			answer := words[len(words)-1]
			if words[0] == "unsure" && it.Drawn == 0 {
				answer = "perhaps " + answer
			}
			all[i] = []sdk.Sample{{
				Answers: []sdk.Answer{{Label: answer, Weight: 1, Reading: "its last word", Explanation: "é <b>", Accepted: true}},
				Usage:   sdk.Usage{InputTokens: uint64(len(it.Text)), OutputTokens: 3, CachedTokens: 1},
				Model:   "m-1", Key: sdk.KeyOf(it.Text, fmt.Sprint(it.Drawn)),
			}}
		}
	}
	if len(failed) > 0 {
		return all, failed
	}
	return all, nil
}

// loop is a Remote whose orders and answers travel as packets, to a workspace that takes part in
// the run.
type loop struct {
	t     *testing.T
	path  string
	o     engine.Options
	keep  journal.Keep
	trim  bool
	part  *engine.Pipeline
	items atomic.Int64
	size  atomic.Int64

	mu   sync.Mutex
	took map[int]time.Duration // by line, there
}

func (l *loop) Begin(ctx context.Context, b engine.Beginning) (err error) {
	l.o.Part = &engine.Part{Manifest: b.Manifest}
	if l.part, err = engine.Open(ctx, l.path, l.o); err != nil {
		return err
	}
	l.t.Cleanup(l.part.Close)
	return l.part.Join(ctx)
}

func (l *loop) End(context.Context, error) error { return nil }
func (l *loop) Window(int) int                   { return 2 }

func (l *loop) Answer(ctx context.Context, o run.Order) (run.Answers, error) {
	data, err := packet.EncodeOrder(o)
	if err != nil {
		return run.Answers{}, err
	}
	if o, err = packet.DecodeOrder(data); err != nil {
		return run.Answers{}, err
	}
	a, err := l.part.Take(ctx, o)
	if err != nil {
		return a, err
	}
	if l.trim {
		a = packet.Trim(a, l.keep, l.o.Lists)
	}
	if data, err = packet.EncodeAnswers(o.Rows, a); err != nil {
		return run.Answers{}, err
	}
	l.items.Add(int64(len(o.Rows)))
	l.size.Add(int64(len(data)))
	_, a, err = packet.DecodeAnswers(data)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range a.Results {
		l.took[a.Results[i].Line] = a.Results[i].Latency
	}
	return a, err
}

const known = `
knowledge "k" {
  embed { use = "alphabet" }
  store {
    use = "theirs_file"
    config { collection = "COLLECTION" }
  }
}
pipeline "p" {
  retrieve "near" {
    from  = knowledge.k
    top_k = 5
    keep  = "score > 0.6"
  }
`

var loops = map[string]string{
	"search": known + `}`,
	"neighbours": known + `
  sample "vote" { use = "neighbours" }
  sample "words" { use = "words" }
  elect "e" {
    use  = "soft"
    flag = "agreement < 0.7"
  }
}`,
	"cascade": known + `
  sample "vote" { use = "neighbours" }
  prompt "q" {
    use = "chat"
    config { none = "none" }
  }
  sample "llm" {
    use       = "moody"
    when      = "not (item.text contains 'car')"
    accept    = "answer in ['fruit', 'vehicle']"
    resamples = 1
    retries   = 2
    price {
      input  = 1
      output = 10
    }
  }
  elect "e" {
    use  = "majority"
    flag = "agreement < 1"
  }
}`,
	"passages": known + `
  prompt "q" { use = "answer" }
  sample "llm" {
    use      = "moody"
    on_error = "skip"
  }
  elect "e" { use = "first" }
}`,
}

// TestLoop has the answers of a run travel: its outputs, its journal and what it says at the end
// are those of a run here.
func TestLoop(t *testing.T) {
	moods := []string{"", "busy ", "never ", "broken ", "unsure "}
	var items strings.Builder
	for i := range 90 {
		label := []string{"fruit", "vehicle"}[i%2]
		fmt.Fprintf(&items, "%s%s item %d %s\t%s\t%d\t\"q\xff\"\n", moods[i/7%len(moods)], []string{"red apple", "blue car", "nothing"}[i%3], i, []string{label, "[2]"}[i/50], label, i*1000)
	}
	shows := map[string][]string{ // of what journals have, so that this is compared
		"search":     {`"candidates":[{"id":"e`, `"meta":{"first_line":`},
		"neighbours": {`"votes":[{"voter":"vote"`, `"seen":{"lists":[{"stage":"retrieve.near"`, `"flagged":true`, `"basis":{"found":`},
		"cascade":    {`"requests":{"llm":[`, `"prompts":{"prompt.q":["`, `"rule":"accept"`, `"rule":"when"`, `"rule":"keep"`, `"retries":[{"stage":"sample.llm","why":`, `"spent":{"llm":[`, `"explanation":`, "the model cannot read this"},
		"passages":   {`"citations":[{"number":2,"id":"e`, `"rule":"on_error"`},
	}
	for name, text := range loops {
		for _, keep := range []journal.Keep{journal.KeepAll, journal.KeepNotable} {
			if testing.Short() && name != "cascade" {
				continue
			}
			t.Run(fmt.Sprintf("%s, %s", name, keep), func(t *testing.T) {
				path, o := scene(t, text, map[string]string{
					"items-1.tsv": "text\tlabel\tnumber\tother\n" + items.String(),
					"items-2.tsv": "text\tlabel\tnumber\tother\nlast pear fruit\tfruit\t1\tx\n\tfruit\t1\tno text\n",
				}, keep)
				here := work(t, path, o, nil)
				far := &loop{t: t, path: path, o: engine.Options{Builtin: builtin, State: o.State, Input: o.Input}, keep: keep, trim: keep == journal.KeepNotable, took: map[int]time.Duration{}}
				o.Remote = far
				alike(t, "a run there", here, work(t, path, o, func(r outcome.Result) {
					far.mu.Lock() // later batches are still being answered
					took, asked := far.took[r.Line]
					far.mu.Unlock()
					if asked && took != r.Latency {
						t.Errorf("line %d took %v there, and is said to have taken %v", r.Line, took, r.Latency)
					}
				}))
				if far.items.Load() != 91 || strings.Count(here["tsv"], "\n") != 93 {
					t.Errorf("%d items were asked there, %d lines were written", far.items.Load(), strings.Count(here["tsv"], "\n"))
				}
				for _, part := range shows[name] {
					if keep == journal.KeepAll && !strings.Contains(here["journal.jsonl"]+here["failures.jsonl"], part) {
						t.Errorf("the journal does not have %s:\n%.3000s", part, here["journal.jsonl"])
					}
				}
				t.Logf("%d bytes an item", far.size.Load()/max(far.items.Load(), 1))
			})
		}
	}
}

// TestLoopStops has a voter there that must stop: what is answered, what is left, and how the run
// ends is as it is here.
func TestLoopStops(t *testing.T) {
	alone := strings.Replace(loops["passages"], `on_error = "skip"`, "", 1)
	for name, test := range map[string]struct{ text, shows string }{
		"others vote": {loops["cascade"], `.Provisional = `},
		"nobody else": {alone, `.Left = `},
	} {
		t.Run(name, func(t *testing.T) {
			path, o := scene(t, test.text, map[string]string{
				"items-1.tsv": "text\tlabel\nred fruit\tfruit\nstop red apple pear\tfruit\nbroken\tfruit\nblue car vehicle\tvehicle\n",
			}, journal.KeepAll)
			here := work(t, path, o, nil)
			o.Remote = &loop{t: t, path: path, o: engine.Options{Builtin: builtin, State: o.State, Input: o.Input}, took: map[int]time.Duration{}}
			alike(t, "a run there", here, work(t, path, o, nil))
			if !strings.Contains(here["totals"], test.shows) || !strings.Contains(here["totals"], "the budget is spent") {
				t.Errorf("the run shows little:\n%s\n%s", here["totals"], here["error"])
			}
		})
	}
}

// scene writes a pipeline, its collection and its items, and returns the path of the first and the options of a run.
func scene(t *testing.T, pipeline string, items map[string]string, keep journal.Keep) (path string, o engine.Options) {
	t.Helper()
	dir := t.TempDir()
	items["collection.json"] = entries(t)
	items["p.hcl"] = strings.Replace(pipeline, "COLLECTION", filepath.Join(dir, "collection.json"), 1)
	for name, content := range items {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	o = engine.Options{Builtin: builtin, State: filepath.Join(dir, "state"), Input: filepath.Join(dir, "items-*.tsv"), Journal: true, Keep: keep}
	return filepath.Join(dir, "p.hcl"), o
}

// entries are those of a collection.
func entries(t *testing.T) string {
	t.Helper()
	all := enginetest.Filed{ID: "1"}
	for i := range 20 {
		text, label := fmt.Sprintf("red apple pear %c", 'a'+i), "fruit"
		if i%2 == 1 {
			text, label = fmt.Sprintf("blue car train %c", 'a'+i), "vehicle"
		}
		all.Entries = append(all.Entries, sdk.Entry{
			ID: fmt.Sprintf("e%02d", i), Text: text, Label: label, Vector: enginetest.AlphabetOf(text),
			Meta: sdk.Meta{"path": "guide.md", "first_line": float64(i), "last_line": float64(i + 2), "new": i%3 == 0},
		})
	}
	return string(must.Get(json.Marshal(all))(t))
}

// work runs a pipeline, and returns what came of it.
func work(t *testing.T, path string, o engine.Options, each func(outcome.Result)) map[string]string {
	t.Helper()
	p := must.Get(engine.Open(t.Context(), path, o))(t)
	defer p.Close()
	all, outs, writers := map[string]string{}, map[string]*bytes.Buffer{}, []result.Writer{}
	for _, format := range []string{result.JSONL, result.TSV, result.CSV, result.Table} {
		outs[format] = new(bytes.Buffer)
		w, err := result.NewWriter(outs[format], format, result.Options{Columns: []string{"id", "text", "answer", "agreement", "runner_up", "flagged", "reason", "error", "citations", "candidates", "missing", "votes", "fields"}})
		if err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
	}
	out, err := p.Work(t.Context(), func(batch []outcome.Result) error {
		for _, r := range batch {
			if each != nil {
				each(r)
			}
			for _, w := range writers {
				if err := w.Write(r); err != nil {
					return err
				}
			}
		}
		return nil
	}, nil)
	if out == nil {
		t.Fatal(err)
	}
	all["error"] = fmt.Sprintf("%v, %d", err, sdk.CodeOf(err))
	for _, w := range writers {
		must.Do(t, w.Close())
	}
	for format, text := range outs {
		all[format] = text.String()
	}
	for _, name := range []string{"journal.jsonl", "failures.jsonl", "provisional.jsonl"} {
		text, err := os.ReadFile(filepath.Join(o.State, "runs", out.Run, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n") // batches are kept as they come
		slices.Sort(lines)
		all[name] = strings.Join(lines, "\n")
	}
	totals := out.Totals
	totals.Elapsed = 0
	stages := slices.Clone(totals.Stages)
	for i := range stages {
		stages[i].Busy = 0
	}
	totals.Stages = stages
	all["totals"], all["dropped"] = told(totals), told(totals.Dropped())
	evaluation := out.Evaluation
	evaluation.ItemsPerSecond, evaluation.P50, evaluation.P99, evaluation.Stages = 0, 0, 0, nil // times
	all["evaluation"] = told(evaluation)
	return all
}
