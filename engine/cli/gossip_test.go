package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// gossipConfig is the config of stages that reveal the content of a file: the key of another stage.
type gossipConfig struct {
	From sdk.Path `config:"from,required" doc:"The file."`
	Fail bool     `config:"fail" doc:"Say it in errors of rows."`
}

type gossip struct {
	what string
	fail bool
}

// gossipStages returns the stages of the plugin leak.
func gossipStages() []sdk.Stage {
	open := func(_ context.Context, s sdk.Setup, c gossipConfig) (gossip, error) {
		what, err := os.ReadFile(string(c.From))
		fmt.Fprintf(os.Stderr, "a line with %s, and one in two ", what)
		_, _ = os.Stderr.Write(what[:5]) // the key in two halves, by two writes
		_, _ = os.Stderr.Write(append(what[5:], '\n'))
		s.Log.Warn("opened by "+string(what), string(what), []string{string(what)})
		return gossip{string(what), c.Fail}, err
	}
	return []sdk.Stage{
		sdk.SampleStage("gossip", "", func(ctx context.Context, s sdk.Setup, c gossipConfig) (sdk.Sampler, error) { return open(ctx, s, c) },
			sdk.Reads(sdk.ColumnText)),
		sdk.PromptStage("prompt", "", func(ctx context.Context, s sdk.Setup, c gossipConfig) (sdk.Prompter, error) { return open(ctx, s, c) },
			sdk.Reads(sdk.ColumnText)),
		sdk.ElectStage("elect", "", func(ctx context.Context, s sdk.Setup, c gossipConfig) (sdk.Elector, error) { return open(ctx, s, c) }),
		sdk.EnrichStage("enrich", "", func(ctx context.Context, s sdk.Setup, c gossipConfig) (sdk.Enricher, error) { return open(ctx, s, c) }),
	}
}

func (g gossip) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	out, failed := make([][]sdk.Sample, len(b.Items)), sdk.RowErrors{}
	for i := range b.Items {
		fmt.Fprintf(os.Stderr, "%s of item %d\n{\"level\":\"INFO\",\"msg\":\"again\",\"key\":%q}\n", g.what, i, g.what)
		out[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: "answer " + g.what, Weight: 1}, {Weight: 1, Reason: "no " + g.what}}}}
		if g.fail {
			failed[i] = errors.New("failed at " + g.what)
		}
	}
	if g.fail {
		return out, failed
	}
	return out, nil
}

func (g gossip) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	out := make([][]sdk.Prompt, len(b.Items))
	for i, item := range b.Items {
		out[i] = []sdk.Prompt{{Messages: []sdk.Message{{Role: "user", Text: g.what + " about " + item.Text}}}}
	}
	return out, nil
}

func (g gossip) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	out := make([]sdk.Verdict, len(b.Items))
	for i := range b.Items {
		if out[i] = (sdk.Verdict{Answer: "elected " + g.what, Agreement: 1}); i%2 > 0 {
			out[i] = sdk.Verdict{Reason: "none but " + g.what}
		}
	}
	return out, nil
}

func (g gossip) Enrich(_ context.Context, passages []sdk.Passage) ([]sdk.Addition, error) {
	out := make([]sdk.Addition, len(passages))
	for i := range out {
		out[i] = sdk.Addition{Context: "context " + g.what, Terms: []string{"term " + g.what}}
	}
	return out, nil
}

const gossipFile = `
variable "from" { type = path }
variable "fail" { default = false }
variable "model" { default = "" }
knowledge "k" {
  source { path = "rows.tsv" }
  chunk { use = "recursive" }
  enrich "aside" {
    use = "leak/enrich"
    config { from = var.from }
  }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "rows.tsv" }
  batch = 16
  retrieve "near" { from = knowledge.k }
  prompt "asked" {
    use = "leak/prompt"
    config { from = var.from }
  }
  sample "model" {
    use     = "openai"
    enabled = var.model != ""
    config { model = var.model }
  }
  sample "other" {
    use      = "leak/gossip"
    on_error = "skip"
    config {
      from = var.from
      fail = var.fail
    }
  }
  elect "e" {
    use = "leak/elect"
    config { from = var.from }
  }
  # It comes last, so that all others start before the stage that has the key.
  sample "owner" {
    use = "leak/voter"
    on_error = "skip"
    retries = 0
    config {
      key   = secret("LEAK_KEY")
      token = "none"
      how   = "quiet"
    }
  }
}
`

// TestNoStageTellsTheSecretOfAnother runs stages that reveal the key of another stage in every place
// where they can write.
func TestNoStageTellsTheSecretOfAnother(t *testing.T) {
	long(t)
	run := newGossip(t, 40)
	for _, test := range []struct {
		args []string
		want string // one of the many places of the key
	}{
		{[]string{"run", "p.hcl"}, `"reason":"none but (secret)"`},
		{[]string{"run", "--format", "tsv", "p.hcl"}, "elected (secret)"},
		{[]string{"run", "--format", "table", "p.hcl"}, "none but (secret)"},
		{[]string{"run", "--output", "out.jsonl", "p.hcl"}, "one in two (secret)"},
		{[]string{"run", "-var", "fail=true", "p.hcl"}, "failed at (secret)"},
		{[]string{"eval", "p.hcl"}, "(secret)=[(secret)]"},
		{[]string{"eval", "--json", "p.hcl"}, "(secret)"},
		{[]string{"plan", "-var", "model=m", "p.hcl"}, "user: (secret) about"},
		{[]string{"knowledge", "list", "--json", "p.hcl"}, "opened by (secret)"},
	} {
		c := run("debug", test.args...)
		out, err := c.CombinedOutput()
		if n := bytes.Count(out, []byte("sk-hush")); n > 0 || err != nil || !bytes.Contains(out, []byte(test.want)) {
			t.Errorf("%v: %v, the key is said %d times, want %q in\n%.4000s", test.args, err, n, test.want, out)
		}
	}
}

// newGossip makes a folder with n rows. When the test ends, none of its files may contain the key. It
// returns a function that makes a command there.
func newGossip(t *testing.T, n int) func(log string, args ...string) *exec.Cmd {
	t.Helper()
	const key = "sk-hush-4711"
	dir := folder(t, map[string]string{"p.hcl": gossipFile, "rows.tsv": rows(n)})
	from := filepath.Join(folder(t, map[string]string{"key": key}), "key")
	linkPlugin(t, dir, "leak")
	t.Cleanup(func() { checkFiles(t, dir, "sk-hush") })
	return func(log string, args ...string) *exec.Cmd {
		c := racflow(t, dir, append(args, "--plugins", ".", "-var", "from="+from)...)
		c.Env = append(os.Environ(), "LEAK_KEY="+key, "RACFLOW_LOG="+log)
		return c
	}
}

// TestASecretIsSaidOften: for each of many rows, a stage reveals the key of another stage in two
// lines of its log, and in each result. Every occurrence is masked, and nothing else is missing.
func TestASecretIsSaidOften(t *testing.T) {
	long(t)
	const items = 299
	results, log := good(t, newGossip(t, items)("info", "run", "p.hcl"))
	said := func(text, with string) (n int) {
		for line := range strings.Lines(text) {
			if strings.Contains(line, with) && strings.Contains(line, "(secret)") {
				n++
			}
		}
		return n
	}
	lines, structured, inResults := said(log, "of item"), said(log, "msg=again"), said(results, `"id"`)
	if lines != items || structured != items || inResults != items {
		t.Errorf("it was masked in %d and %d lines of the log and in %d results, want %d of each", lines, structured, inResults, items)
	}
	for name, text := range map[string]string{"log": log, "results": results} {
		if n := strings.Count(text, "sk-hush"); n > 0 {
			t.Errorf("the %s has the key %d times", name, n)
		}
	}
}
