package explain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/show/explain"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/plugins"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// builtin is the result of the first statement of a program's main.
var builtin = workspace.Serve(plugins.All())

const file = `
variable "url" {}
variable "rows" { default = "rows.tsv" }
knowledge "k" {
  source { path = var.rows }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "items.tsv" }
  retrieve "near" {
    from  = knowledge.k
    top_k = 6
    keep  = "rank <= 5"
  }
  rerank "best" {
    use   = "local"
    top_k = 3
  }
  sample "knn" { use = "neighbours" }
  prompt "ask" { use = "completion" }
  sample "llm" {
    use       = "openai"
    n         = 2
    resamples = 1
    when      = "item.text != 'a car'"
    accept    = "answer in labels"
    price {
      input  = 1
      output = 2
    }
    config {
      base_url = var.url
      model    = "m"
      api_key  = secret("EXPLAIN_KEY", "none")
    }
  }
  elect "e" {
    use  = "majority"
    flag = "item.text contains 'odd'"
    config { weights = { knn = 0 } }
  }
}
`

const rows = "id\ttext\tlabel\nr1\tred apple\tfruit\nr2\tgreen apple\tfruit\nr3\tyellow banana\tfruit\nr4\tfast car\tvehicle\nr5\tslow bus\tvehicle\nr6\told train\tvehicle\n"

// kept runs the pipeline over items and keeps Seen of all items.
type kept struct {
	dir    string
	server *modelserver.Server
	run    string
	o      workspace.Options
}

func run(t *testing.T) *kept {
	t.Helper()
	k := &kept{dir: t.TempDir()}
	k.server = modelserver.Serve(t, modelserver.Options{Answer: func(a modelserver.Ask, _ int) string {
		if strings.Contains(a.Text(), "odd") {
			return "no label of ours"
		}
		return "fruit"
	}})
	for name, content := range map[string]string{
		"p.hcl": file, "rows.tsv": rows, "other.tsv": strings.Replace(rows, "red", "blue", 1),
		"items.tsv": "id\ttext\tlabel\tshop\na\tan apple\tfruit\tnorth\nb\ta car\tvehicle\tsouth\n\tan odd apple\tfruit\teast\nd\ta banana\tvehicle\twest\n",
	} {
		if err := os.WriteFile(filepath.Join(k.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k.o = workspace.Options{Builtin: builtin, State: filepath.Join(k.dir, "state"), Vars: map[string]string{"url": k.server.URL}}
	o := k.o
	o.Journal, o.Keep = true, journal.KeepAll
	p, err := workspace.Open(t.Context(), filepath.Join(k.dir, "p.hcl"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out, err := p.Work(t.Context(), func([]outcome.Result) error { return nil }, nil)
	if err != nil || out.Items != 4 || out.Failed != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	k.run = out.Run
	return k
}

// open opens the run with no other options.
func (k *kept) open(t *testing.T, run string) *explain.Run {
	t.Helper()
	r, err := explain.Open(t.Context(), workspace.Options{Builtin: builtin, State: k.o.State}, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func item(t *testing.T, r *explain.Run, id string) *explain.Item {
	t.Helper()
	one, err := r.Item(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return one
}

func TestItem(t *testing.T) {
	k := run(t)
	calls := k.server.Calls()
	r := k.open(t, workspace.Newest)
	must.Equal(t, "run, pipeline, labels, what is gone, whether there are totals", []any{k.run, "p", []string{"fruit", "vehicle"}, []string(nil), true}, []any{r.ID(), r.Manifest().Pipeline, r.Labels(), r.Gone(), r.Totals() != nil})

	// The details of the first answer: both lists with texts, and the exact prompts and replies.
	a := item(t, r, "a")
	must.Equal(t, "line, status, answer, expected, text, seen, gone", []any{2, journal.Answered, result.Answer("fruit"), "fruit", "an apple", true, []string(nil)}, []any{a.Line, a.Status, a.Answer, a.Expected, a.Text, a.Seen, a.Gone})
	if len(a.Fields) != 1 || a.Fields[0].Name != "shop" || a.Fields[0].Value != "north" {
		t.Errorf("fields %v", a.Fields)
	}
	var lists []string
	for _, l := range a.Lists {
		lists = append(lists, fmt.Sprintf("%s %d", l.Stage, len(l.Candidates)))
	}
	if !slices.Equal(lists, []string{"retrieve.near 5", "rerank.best 3"}) {
		t.Fatalf("lists %q", lists)
	}
	for _, c := range a.Lists[1].Candidates {
		at := slices.IndexFunc(a.Lists[0].Candidates, func(above result.Candidate) bool { return above.ID == c.ID })
		if at < 0 || c.Text == "" || c.Label == "" || c.Text != a.Lists[0].Candidates[at].Text || c.Dense == nil {
			t.Errorf("reranked %+v", c)
		}
	}
	asked := ""
	for _, ask := range k.server.Asks() {
		if strings.Contains(ask.Text(), "an apple") {
			asked = ask.Text()
		}
	}
	if len(a.Prompts) != 1 || a.Prompts[0].Stage != "prompt.ask" || len(a.Prompts[0].Prompts) == 0 || asked == "" || !strings.Contains(asked, strings.TrimSpace(a.Prompts[0].Prompts[0].Text)) {
		t.Errorf("prompts %+v, the model was asked %q", a.Prompts, asked)
	}
	if want := []explain.Reply{{Voter: "llm", Text: "fruit"}, {Voter: "llm", Text: "fruit"}}; !slices.Equal(a.Replies, want) {
		t.Errorf("replies %q", a.Replies)
	}
	keep := explain.Rule{Stage: "retrieve.near", Rule: "keep", Text: "rank <= 5", What: "it dropped 1 of 6 candidates"}
	if d := cmp.Diff([]explain.Rule{keep}, a.Rules); d != "" {
		t.Errorf("rules (-want +got):\n%s", d)
	}
	if u := a.Usages["llm"]; u.Input == 0 || u.Output == 0 || len(a.Usages) != 1 || a.Cost["llm"] != (float64(u.Input)+2*float64(u.Output))/1e6 {
		t.Errorf("usages %+v, cost %v", a.Usages, a.Cost)
	}

	// Accepted votes of a voter whose weight is 0 do not count.
	for _, v := range a.Votes {
		if counts, why := a.Counts(v); !v.Accepted || counts == (v.Voter == "knn") || v.Voter == "knn" && why != "the election has the weight 0 for knn" {
			t.Errorf("vote %+v counts: %v, %s", v, counts, why)
		}
	}

	// A voter that was not asked.
	b := item(t, r, "b")
	want := []explain.Rule{keep, {Stage: "sample.llm", Rule: "when", Text: "item.text != 'a car'", What: "it does not hold, so the stage did nothing for the item"}}
	if d := cmp.Diff(want, b.Rules); d != "" || b.Usages != nil || b.Cost != nil || len(b.Replies) > 0 {
		t.Errorf("rules (-want +got):\n%s; %+v, %+v", d, b.Usages, b.Replies)
	}

	// Refused answers, so that the model was asked again, and a flag. The row has no id.
	odd := item(t, r, "4")
	want = []explain.Rule{
		keep, {Stage: "sample.llm", Rule: "accept", Text: "answer in labels", What: "it refused 2 of 4 answers"},
		{Stage: "elect.e", Rule: "flag", Text: "item.text contains 'odd'", What: "it holds, so a person should look at the item"},
	}
	if d := cmp.Diff(want, odd.Rules) + cmp.Diff([]outcome.Retry{{Stage: "sample.llm", Why: "none of its answers was accepted", Times: 1}}, odd.Retries); d != "" || !odd.Flagged || odd.ID != "4" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, err := r.Item(t.Context(), "nobody"); err == nil || !strings.Contains(err.Error(), `no item "nobody"`) {
		t.Errorf("error %v", err)
	}
	if k.server.Calls() != calls {
		t.Error("the model was asked again")
	}
}

// TestItems: the items of a whole run equal the items that are read one by one, in the order of the
// input.
func TestItems(t *testing.T) {
	r := run(t).open(t, workspace.Newest)
	var ids []string
	for b, err := range r.Briefs(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, b.ID)
	}
	if !slices.Equal(ids, []string{"a", "b", "4", "d"}) {
		t.Errorf("briefs of %q", ids)
	}
	var got []string
	for one, err := range r.Items(t.Context(), func(b *explain.Brief) bool { return b.ID != "b" }) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, one.ID)
		if d := cmp.Diff(item(t, r, one.ID), one, cmpopts.IgnoreUnexported(explain.List{})); d != "" {
			t.Errorf("alone, together:\n%s", d)
		}
	}
	if !slices.Equal(got, []string{"a", "4", "d"}) {
		t.Errorf("items %q", got)
	}
	for range r.Items(t.Context(), func(*explain.Brief) bool { return true }) {
		break // the iteration may end early
	}
}

// TestJSON: the JSON for pages has these keys.
func TestJSON(t *testing.T) {
	r := run(t).open(t, workspace.Newest)
	text, err := json.Marshal(item(t, r, "4"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := []string{"agreement", "answer", "cost", "expected", "fields", "flagged", "id", "line", "lists", "prompts", "replies", "retries", "rules", "runner_up", "seen", "status", "text", "usages", "votes", "weights"}
	keys := slices.Sorted(maps.Keys(got))
	keys = slices.DeleteFunc(keys, func(k string) bool { return k == "confidence" || k == "runner_up" })
	want = slices.DeleteFunc(want, func(k string) bool { return k == "runner_up" })
	if d := cmp.Diff(want, keys); d != "" || got["status"] != "answered" {
		t.Errorf("status %v, keys (-want +got):\n%s", got["status"], d)
	}
	var again explain.Item
	if err := json.Unmarshal(text, &again); err != nil || again.Status != journal.Answered || again.Line != 4 {
		t.Errorf("%+v, %v", again.Brief, err)
	}
}

// TestGone removes or changes one thing after the run: the details that depend on it are reported
// as missing, and the others exist.
func TestGone(t *testing.T) {
	k := run(t)
	path := func(name string) string { return filepath.Join(k.dir, name) }
	saved := map[string][]byte{}
	for _, name := range []string{"p.hcl", "rows.tsv", "items.tsv"} {
		saved[name], _ = os.ReadFile(path(name))
	}
	write := func(name, content string) error { return os.WriteFile(path(name), []byte(content), 0o600) }
	again := func(t *testing.T) error { // another run replaces the generation of the knowledge
		p, err := workspace.Open(t.Context(), path("p.hcl"), k.o)
		if err != nil {
			return err
		}
		defer p.Close()
		_, err = p.Start(t.Context())
		return err
	}
	const texts, prompts, replies, input = "texts", "prompts", "replies", "input"
	for _, test := range []struct {
		name   string
		change func(*testing.T) error
		gone   string // reported for the run or for the item
		lost   []string
	}{
		{"the prompt differs", func(*testing.T) error {
			return write("p.hcl", strings.Replace(file, `prompt "ask" { use = "completion" }`, "prompt \"ask\" {\n    use = \"completion\"\n    config { k = 1 }\n  }", 1))
		}, "of prompt.ask: they are not what the stage writes now", []string{prompts}},
		{"the input changed", func(*testing.T) error { return write("items.tsv", "id\ttext\nx\ty\n") }, "items.tsv has changed since", []string{input, prompts}},
		{"the file is gone", func(*testing.T) error { return os.Remove(path("p.hcl")) }, "the file cannot be loaded as the run did", []string{texts, prompts}},
		{"the rows changed", func(t *testing.T) error {
			return errors.Join(write("rows.tsv", strings.Replace(rows, "red", "blue", 1)), again(t))
		}, "was made from other rows", []string{texts, prompts}},
		{"the cache was cleared", func(*testing.T) error { return os.RemoveAll(filepath.Join(k.o.State, workspace.CacheFolder)) }, "the response cache does not have them any more", []string{texts, prompts, replies}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := test.change(t); err != nil {
				t.Fatal(err)
			}
			r := k.open(t, k.run)
			a := item(t, r, "a")
			if said := strings.Join(slices.Concat(r.Gone(), a.Gone), "\n"); !strings.Contains(said, test.gone) {
				t.Errorf("gone:\n%s\nwant %q", said, test.gone)
			}
			for what, there := range map[string]bool{
				texts: a.Lists[0].Candidates[0].Text != "", prompts: len(a.Prompts) > 0, replies: len(a.Replies) == 2, input: a.Text != "",
			} {
				if lost := slices.Contains(test.lost, what); there == lost {
					t.Errorf("%s are there: %v", what, there)
				}
			}
			must.Equal(t, "answer, lists, rules, labels, whether there are votes", []any{result.Answer("fruit"), 2, 1, []string{"fruit", "vehicle"}, true}, []any{a.Answer, len(a.Lists), len(a.Rules), r.Labels(), len(a.Votes) > 0})
			must.Equal(t, "rule", "rank <= 5", a.Rules[0].Text)
			if test.name != "the rows changed" {
				for name, content := range saved {
					if err := os.WriteFile(path(name), content, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// TestNotSeen: for an item that is not notable, the journal has only the result. Several processes
// may open a run, and its folder may be missing.
func TestNotSeen(t *testing.T) {
	k := run(t)
	o := k.o
	o.Journal, o.Limit, o.Input = true, 2, filepath.Join(k.dir, "few.tsv")
	if err := os.WriteFile(o.Input, []byte("id\ttext\tlabel\na\tan apple\tfruit\nb\t\tvehicle\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := workspace.Open(t.Context(), filepath.Join(k.dir, "p.hcl"), o)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Work(t.Context(), func([]outcome.Result) error { return nil }, nil)
	p.Close()
	if err != nil {
		t.Fatal(err)
	}
	first, second := k.open(t, out.Run), k.open(t, out.Run)
	const gone = `what was seen: the run keeps that of items that are flagged, failed, wrong or without an answer; racflow run --keep all keeps it of every item, as does keep = "all" in the pipeline's journal block`
	for _, r := range []*explain.Run{first, second} {
		a := item(t, r, "a")
		must.Equal(t, "seen, lists, whether there are votes, what is gone", []any{false, 0, true, []string{gone}}, []any{a.Seen, len(a.Lists), len(a.Votes) > 0, a.Gone})
		if b := item(t, r, "b"); b.Error == nil || b.Seen || len(b.Gone) > 0 { // it failed before any stage saw it
			t.Errorf("%+v", b)
		}
		n := 0
		for range r.Briefs(t.Context()) {
			n++
		}
		if n != 2 {
			t.Errorf("%d items of a run over 2", n)
		}
	}
	for _, name := range []string{"run-000099", "nonsense"} {
		if _, err := explain.Open(t.Context(), k.o, name); err == nil {
			t.Errorf("%s is opened", name)
		}
	}
}

// TestOtherColumns: the input is read as the run read it, whatever columns the file now names.
func TestOtherColumns(t *testing.T) {
	k := run(t)
	path := filepath.Join(k.dir, "p.hcl")
	if err := os.WriteFile(path, []byte(strings.Replace(file, `input { path = "items.tsv" }`, "input {\n    path = \"items.tsv\"\n    text = \"id\"\n  }", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if a := item(t, k.open(t, k.run), "a"); a.Text == "a" || a.Text == "" {
		t.Errorf("the text is %q", a.Text)
	}
}
