package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// builtin is the result of the first statement of main, which is Serve(plugins.All()) in a program.
// A test has no main of its own, so Serve runs before that, with small stages.
var builtin = workspace.Serve(append(enginetest.Stages(), enginetest.Alphabet(), enginetest.TheirsFile(), paid(), asker(), moody()))

const knowledgeBlock = `
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "memory" }
}
`

const election = `
pipeline "p" {
  retrieve "near" { from = knowledge.k }
  sample "vote" { use = "neighbours" }
  elect "e" { use = "soft" }
}
`

// write writes a pipeline file beside the rows of its knowledge.
func write(t *testing.T, text string) (path string, o workspace.Options) {
	t.Helper()
	dir := t.TempDir()
	rows := "text\tlabel\nred apple\tfruit\ngreen pear\tfruit\nblue car\tvehicle\nfast train\tvehicle\n"
	path = filepath.Join(dir, "p.hcl")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	beside(t, path, "rows.tsv", rows)
	return path, workspace.Options{Builtin: builtin, State: filepath.Join(dir, "state")}
}

// beside writes a file into the folder of a pipeline file.
func beside(t *testing.T, pipeline, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(filepath.Dir(pipeline), name)
	must.Do(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func mustOpen(t *testing.T, path string, o workspace.Options) *workspace.Pipeline {
	t.Helper()
	p, err := workspace.Open(t.Context(), path, o)
	must.Do(t, err)
	return p
}

func opened(t *testing.T, text string) *workspace.Pipeline {
	t.Helper()
	path, o := write(t, text)
	p := mustOpen(t, path, o)
	t.Cleanup(p.Close)
	return p
}

func TestOpenRefuses(t *testing.T) {
	several := knowledgeBlock + election + strings.Replace(election, `"p"`, `"q"`, 1)
	t.Run("no stages", func(t *testing.T) {
		path, o := write(t, knowledgeBlock+election)
		o.Builtin = workspace.Builtin{}
		if _, err := workspace.Open(t.Context(), path, o); err == nil || !strings.Contains(err.Error(), "engine.Serve(plugins.All())") {
			t.Fatalf("%v does not say what to call", err)
		}
	})
	t.Run("a mistake in the file", func(t *testing.T) {
		path, o := write(t, strings.Replace(knowledgeBlock, "hashing", "hashin", 1)+election)
		_, err := workspace.Open(t.Context(), path, o)
		var found *workspace.DiagnosticsError
		if !errors.As(err, &found) || found.Sources[path] == nil || !found.Diagnostics.HasErrors() {
			t.Fatalf("%v is no error with diagnostics and sources", err)
		}
		if want := path + ":4:17: "; !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), `"hashing"`) {
			t.Errorf("%v does not begin with %s, or does not suggest the name", err, want)
		}
	})
	t.Run("a choice of pipelines", func(t *testing.T) {
		path, o := write(t, several)
		_, err := workspace.Open(t.Context(), path, o)
		var option *workspace.OptionError
		if !errors.As(err, &option) || !strings.Contains(err.Error(), "choose one with Options.Pipeline: p, q") || option.Option != "Pipeline" {
			t.Fatalf("%v does not name the option", err)
		}
		o.Pipeline = "q"
		p := mustOpen(t, path, o)
		p.Close()
	})
}

// TestStateFolder: the permissions of the state folder are narrowed if it has the default name.
func TestStateFolder(t *testing.T) {
	_, o := write(t, knowledgeBlock)
	for name, want := range map[string]os.FileMode{workspace.DefaultState: 0o700, "shared": 0o755} {
		o.State = filepath.Join(t.TempDir(), name)
		must.Do(t, errors.Join(os.Mkdir(o.State, 0o700), os.Chmod(o.State, 0o755)))
		w, err := workspace.NewWorkspace(t.Context(), o)
		must.Do(t, err)
		w.Close()
		if info, err := os.Stat(o.State); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// An argument that a stage refuses when it starts is also reported at its place.
func TestStartRefuses(t *testing.T) {
	p := opened(t, knowledgeBlock+election)
	beside(t, p.File().Path, "rows.tsv", "\x00\x00\n")
	_, err := p.Answer(t.Context(), workspace.Item{Text: "x"})
	var found *workspace.DiagnosticsError
	if !errors.As(err, &found) || !strings.Contains(err.Error(), "p.hcl:3:") {
		t.Fatalf("%v does not point at the source", err)
	}
}

// A caller may leave the loop, although the items never end and wait for something.
func TestRunLeft(t *testing.T) {
	p := opened(t, knowledgeBlock+election)
	stuck := make(chan struct{})
	defer close(stuck)
	items := func(yield func(workspace.Item) bool) {
		for range 3 {
			if !yield(workspace.Item{Text: "red apple"}) {
				return
			}
		}
		<-stuck
	}
	n := 0
	for r, err := range p.Run(t.Context(), items) {
		if err != nil || r.Answer != "fruit" {
			t.Fatalf("%+v, %v", r, err)
		}
		if n++; n == 2 {
			break
		}
	}
	if r, err := p.Answer(t.Context(), workspace.Item{Text: "blue car"}); err != nil || r.Answer != "vehicle" || r.RunnerUp != "fruit" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A run that ends early yields the reason, once and last.
func TestRunEndsEarly(t *testing.T) {
	p := opened(t, knowledgeBlock+election)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	items := func(yield func(workspace.Item) bool) {
		for yield(workspace.Item{Text: "red apple"}) {
		}
	}
	n, errs := 0, 0
	for _, err := range p.Run(ctx, items) {
		if n++; n == 1 {
			cancel()
		}
		if errs > 0 {
			t.Fatal("something comes after the error")
		}
		if err != nil {
			if errs++; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	}
	if errs != 1 {
		t.Errorf("%d errors", errs)
	}
}

func TestTogether(t *testing.T) {
	p := opened(t, knowledgeBlock+election)
	var all sync.WaitGroup
	for i := range 16 {
		text, want := "red apple", "fruit"
		if i%2 == 1 {
			text, want = "fast train", "vehicle"
		}
		all.Go(func() {
			r, err := p.Answer(t.Context(), workspace.Item{ID: fmt.Sprint(i), Text: text})
			if err != nil || string(r.Answer) != want || r.ID != fmt.Sprint(i) {
				t.Errorf("%s: %+v, %v", text, r, err)
			}
			found, err := p.Retrieve(t.Context(), workspace.Item{Text: text})
			if err != nil || len(found) == 0 || found[0].Text != text {
				t.Errorf("%s: %+v, %v", text, found, err)
			}
		})
	}
	all.Wait()
	if _, err := p.Answer(t.Context(), workspace.Item{Text: "bad \xff"}); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("a bad text: %v", err)
	}
	if _, err := p.Retrieve(t.Context(), workspace.Item{}); err == nil {
		t.Error("no text is found for")
	}
}

type service struct {
	URL string `config:"url,required" doc:"What is asked."`
}

// paid is a voter that asks a service about prompts, with 1,000 tokens in and 10 out.
func paid() sdk.Stage {
	return sdk.SampleStage("paid", "A voter of the test.", func(_ context.Context, s sdk.Setup, c service) (sdk.Sampler, error) {
		return model{c.URL, s.Host}, nil
	}, sdk.Network(), sdk.Reads(sdk.ColumnPrompts))
}

type model struct {
	url  string
	host sdk.Host
}

func (m model) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i := range b.Items {
		release, err := m.host.Acquire(ctx, sdk.Call{Endpoint: m.url})
		if err != nil {
			return nil, err
		}
		usage := sdk.Usage{InputTokens: 1000, OutputTokens: 10}
		reply, err := http.Get(m.url)
		if err != nil {
			release(sdk.Result{Status: sdk.StatusDown})
			return nil, err
		}
		label, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		release(sdk.Result{Status: sdk.StatusOK, Usage: usage})
		if err != nil {
			return nil, err
		}
		samples[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: string(label), Weight: 1}}, Usage: usage}}
	}
	return samples, nil
}

// Only Answer asks a model, and reports the usage.
func TestModel(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, "fruit")
	}))
	defer server.Close()
	p := opened(t, knowledgeBlock+fmt.Sprintf(`
pipeline "p" {
  retrieve "near" { from = knowledge.k }
  prompt "shots" { use = "chat" }
  sample "llm" {
    use = "paid"
    price {
      input  = 1
      output = 10
    }
    config { url = %q }
  }
  elect "e" { use = "soft" }
}
`, server.URL))
	if found, err := p.Retrieve(t.Context(), workspace.Item{Text: "red apple"}); err != nil || found[0].Label != "fruit" {
		t.Fatalf("%+v, %v", found, err)
	}
	if n := asked.Load(); n != 0 {
		t.Fatalf("the model was asked %d times for what is found without it", n)
	}
	r, err := p.Answer(t.Context(), workspace.Item{Text: "red apple"})
	if err != nil || r.Answer != "fruit" || asked.Load() == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if r.Usage.InputTokens != 1000 || r.Cost != 0.0011 { // from the price of a million tokens
		t.Errorf("usage %+v, cost %v", r.Usage, r.Cost)
	}
	if spent, any := p.Workspace().Spent(); !any || spent.Total.Calls != 1 {
		t.Errorf("spent %+v", spent)
	}
}

// A run that was left early is resumed: finished answers come from its journal. The same holds for
// a run whose election has learned its weights and resolved them.
func TestRunResumed(t *testing.T) {
	for _, use := range []string{"soft", "witness"} {
		t.Run(use, func(t *testing.T) { testRunResumed(t, strings.Replace(election, "soft", use, 1)) })
	}
}

// writeApples writes a pipeline file and an input of 500 apples.
func writeApples(t *testing.T, election string) (path string, o workspace.Options) {
	t.Helper()
	path, o = write(t, knowledgeBlock+election)
	o.Journal, o.Input = true, beside(t, path, "items.tsv", "text\n"+strings.Repeat("red apple\n", 500))
	return path, o
}

// takeApples reads results of a run, at most most or, with 0, all.
func takeApples(t *testing.T, path string, o workspace.Options, most int) (n int) {
	t.Helper()
	p := mustOpen(t, path, o)
	defer p.Close()
	for r, err := range p.Run(t.Context(), nil) {
		if err != nil || r.Answer != "fruit" {
			t.Fatalf("%+v, %v", r, err)
		}
		if n++; n == most {
			break
		}
	}
	return n
}

func testRunResumed(t *testing.T, election string) {
	t.Helper()
	path, o := writeApples(t, election)
	takeApples(t, path, o, 1)
	kept := journal.RunsOf(o.State).List()
	if len(kept) != 1 || kept[0].Answered == 0 || kept[0].State != journal.Unfinished {
		t.Fatalf("after the first result: %+v", kept)
	}
	o.Resume = workspace.Newest
	if n := takeApples(t, path, o, 0); n != 500 {
		t.Errorf("%d results", n)
	}
	if kept = journal.RunsOf(o.State).List(); len(kept) != 1 || kept[0].Answered != 500 || kept[0].State != journal.Complete {
		t.Errorf("in the end: %+v", kept)
	}
	must.Do(t, os.WriteFile(o.Input, []byte("text\nblue car\n"), 0o600))
	o.Resume = kept[0].ID
	p := mustOpen(t, path, o)
	defer p.Close()
	for _, err := range p.Run(t.Context(), nil) {
		var changed *workspace.ChangedError
		if !errors.As(err, &changed) || !strings.Contains(err.Error(), "the input") {
			t.Errorf("another input: %v", err)
		}
	}
}

type mood struct {
	Starts sdk.Path `config:"starts,required" doc:"A file with a byte for each start."`
	Level  int      `config:"level" doc:"What it answers; the number of its starts where the file leaves it out."`
}

// moody is a voter that gives another answer each time it starts, unless an argument sets the
// answer.
func moody() sdk.Stage {
	return sdk.SampleStage("moody", "A voter of the test.", func(_ context.Context, _ sdk.Setup, c mood) (sdk.Sampler, error) {
		if c.Level > 0 {
			return level(c.Level), nil
		}
		starts, err := os.ReadFile(string(c.Starts))
		if err != nil {
			return nil, err
		}
		return level(len(starts) + 1), os.WriteFile(string(c.Starts), append(starts, '.'), 0o600)
	}, sdk.Network(), sdk.Reads(sdk.ColumnText))
}

type level int

func (l level) Resolved() map[string]any { return map[string]any{"level": int(l)} }

func (l level) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i := range samples {
		samples[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: fmt.Sprintf("level %d", l), Weight: 1}}, Usage: sdk.Usage{InputTokens: 1000}}}
	}
	return samples, nil
}

// A resumed run uses the values that stages chose at its beginning, and its prices.
func TestResolvedIsResumed(t *testing.T) {
	text := `
pipeline "p" {
  sample "v" {
    use = "moody"
    price {
      input  = 1
      output = 1
    }
    config { starts = path("starts") }
  }
  elect "e" { use = "majority" }
}
`
	path, o := write(t, text)
	beside(t, path, "starts", "")
	o.Journal, o.Input = true, beside(t, path, "items.tsv", "text\n"+strings.Repeat("x\n", 5000))
	run := func(most int) (answers map[string]int, cost float64) {
		t.Helper()
		p := mustOpen(t, path, o)
		defer p.Close()
		answers = map[string]int{}
		n := 0
		for r, err := range p.Run(t.Context(), nil) {
			must.Do(t, err)
			answers[string(r.Answer)]++
			cost = max(cost, r.Cost)
			if n++; n == most {
				break
			}
		}
		return answers, cost
	}
	if answers, cost := run(1); answers["level 1"] != 1 || cost != 0.001 {
		t.Fatalf("begun: %v at %v", answers, cost)
	}
	must.Do(t, os.WriteFile(path, []byte(strings.Replace(text, "input  = 1", "input  = 3", 1)), 0o600))
	o.Resume = workspace.Newest
	if answers, cost := run(0); len(answers) != 1 || answers["level 1"] != 5000 || cost != 0.001 {
		t.Errorf("resumed: %v at %v", answers, cost)
	}
	o.Resume = ""
	if answers, cost := run(1); answers["level 2"] != 1 || cost != 0.003 {
		t.Errorf("begun anew: %v at %v", answers, cost)
	}
}
