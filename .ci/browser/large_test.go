package browser

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/show/explain"
	"github.com/racflow/racflow/engine/internal/show/page"
	"github.com/racflow/racflow/engine/result"
)

// large is a run of many items, all of which can be explained.
type large struct{ items []*explain.Item }

func (large) ID() string { return "run-000042" }
func (large) Manifest() journal.Manifest {
	return journal.Manifest{ID: "run-000042", File: "large.hcl", Pipeline: "large", Answers: journal.LabelAnswers, Started: time.Unix(1.8e9, 0).UTC()}
}
func (large) Definition() *pipeline.Pipeline { return nil }
func (large) Weights() pipeline.Weights      { return pipeline.Weights{} }
func (l large) Totals() *journal.Totals {
	return &journal.Totals{Complete: true, Items: len(l.items), Answered: len(l.items), Seconds: 60, Cost: 1.25, InputTokens: 1 << 20, OutputTokens: 1 << 12,
		Stages: []journal.StageTime{{Stage: "search.local", Rows: len(l.items), Busy: 5}, {Stage: "rerank.best", Rows: len(l.items), Busy: 12}, {Stage: "sample.llm", Rows: len(l.items), Busy: 200}}}
}
func (large) Labels() []string { return nil }
func (large) Gone() []string   { return []string{hostile} }
func (l large) Briefs(context.Context) iter.Seq2[*explain.Brief, error] {
	return func(yield func(*explain.Brief, error) bool) {
		for _, it := range l.items {
			if !yield(&it.Brief, nil) {
				return
			}
		}
	}
}

func (l large) Items(_ context.Context, want func(*explain.Brief) bool) iter.Seq2[*explain.Item, error] {
	return func(yield func(*explain.Item, error) bool) {
		for _, it := range l.items {
			if want(&it.Brief) && !yield(it, nil) {
				return
			}
		}
	}
}

// newLarge makes a run of n items, 150 labels and 15,000 rows of knowledge: each item with the 60
// candidates of a search, the 20 of a reranking, the votes of four voters, and every tenth with a
// prompt and its replies.
func newLarge(n int) large {
	random := rand.New(rand.NewPCG(42, 42))
	words := strings.Fields("card account payment transfer balance how do i my the a lost please when will it arrive refund order cancel change address number pin limit abroad fee charge twice not working cannot find where is code gift discount parcel late missing wrong item broken return label invoice name")
	sentence := func() string {
		all := make([]string, 6+random.IntN(12))
		for i := range all {
			all[i] = words[random.IntN(len(words))]
		}
		return strings.Join(all, " ")
	}
	label := func() string { return fmt.Sprintf("label_number_%03d", random.IntN(150)) }
	rows := make([]result.Candidate, 15_000)
	for i := range rows {
		rows[i] = result.Candidate{ID: fmt.Sprintf("train-%05d", i), Text: sentence(), Label: label()}
	}
	found := func(stage string, n int) explain.List {
		l := explain.List{Stage: stage}
		for i := range n {
			c := rows[random.IntN(len(rows))]
			c.Score = float64(int(1e4*(1-float64(i)/float64(n))))/1e4 + float64(random.IntN(100))/1e6
			l.Candidates = append(l.Candidates, c)
		}
		return l
	}
	var run large
	for i := range n {
		expected, confidence := label(), random.Float64()
		it := &explain.Item{Brief: explain.Brief{Line: i + 2, Seen: true, Result: result.Result{
			ID: fmt.Sprintf("test-%04d", i), Text: sentence(), Expected: expected, Answer: result.Answer(expected), Verdict: result.Verdict{Confidence: confidence, Agreement: confidence, Flagged: confidence < .1},
		}}}
		if random.Float64() > confidence {
			it.Answer = result.Answer(label())
		}
		for _, voter := range []string{"neighbours", "prototype", "linear", "llm"} {
			for range 5 {
				it.Votes = append(it.Votes, result.Vote{Voter: voter, Answer: label(), Weight: float64(random.IntN(1e6)) / 1e6, Accepted: true})
			}
		}
		it.Lists = []explain.List{found("retrieve.near", 60), found("rerank.best", 20)}
		if i%10 == 0 {
			it.Prompts = []explain.Prompted{{Stage: "prompt.ask", Prompts: []explain.Prompt{{Messages: []explain.Message{{Role: "user", Text: strings.Repeat(sentence()+"\n", 30)}}}}}}
			it.Replies = []explain.Reply{{Voter: "llm", Text: expected}}
			it.Cost, it.Usages = map[string]float64{"llm": .0001}, map[string]explain.Usage{"llm": {Input: 600, Output: 5}}
		}
		run.items = append(run.items, it)
	}
	// A few that somebody has written to do harm.
	for _, i := range []int{0, 7, 99} {
		it := run.items[i]
		it.ID, it.Text, it.Answer, it.Votes[0].Explanation, it.Lists[0].Candidates[0].Text = hostile, hostile+strings.Repeat("long ", 1<<18), result.Answer(hostile), hostile, hostile
		it.Error = &result.Failure{Line: i, Stage: "sample.llm", Message: hostile}
	}
	return run
}

// scoped is a run with nine tiles: some of its items are out of scope.
type scoped struct{ large }

func (scoped) Labels() (all []string) {
	for i := range 140 {
		all = append(all, fmt.Sprintf("label_number_%03d_of_%s", i, longLabel))
	}
	return all
}

// TestLongLabels: nine tiles and tables with long labels fit the window.
func TestLongLabels(t *testing.T) {
	run := scoped{newLarge(300)}
	for _, it := range run.items {
		it.Expected += "_of_" + longLabel
		it.Answer += "_of_" + longLabel
	}
	p, err := page.RunPage(context.Background(), run)
	if err != nil {
		t.Fatal(err)
	}
	tab := Open(t, write(t, p))
	tab.Wait(`document.querySelector("#items tbody tr")`)
	if n := Eval[int](tab, `document.querySelectorAll("#cards .card").length`); n != 9 {
		t.Errorf("there are %d tiles", n)
	}
	if n := Eval[int](tab, `document.body.textContent.split("in the currency of the file's prices").length - 1`); n < 1 {
		t.Error("the cost has no unit")
	}
	tab.Fits()
}

// TestLarge: a page of 6,000 items with all that made their answers is small and quick, and
// shows hostile items as text.
func TestLarge(t *testing.T) {
	p, err := page.RunPage(context.Background(), newLarge(6000))
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, p)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	tab := Open(t, "about:blank")
	call(tab, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
	tab.Do(chromedp.Navigate("file://" + path))
	tab.Wait(`document.querySelector("#items tbody tr")`)
	shown := Eval[float64](tab, `performance.now()`) / 1000
	metrics, err := chromedp.Call(tab.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	worked := 0.
	for _, m := range metrics.Metrics {
		if m.Name == "TaskDuration" {
			worked = m.Value
		}
	}
	t.Logf("%.1f MB; the table is there after %.2f s, %.2f s of them at work", float64(info.Size())/1e6, shown, worked)
	if info.Size() > 15e6 {
		t.Errorf("the page has %d bytes", info.Size())
	}
	if worked == 0 || worked > 2 { // of the processor: other programs do not change it
		t.Errorf("the first table takes %v s", worked)
	}

	// The first items are those that failed, which are hostile.
	if first := Eval[string](tab, `document.querySelector("#items tbody tr").textContent`); !strings.Contains(first, "</script><script>") || !strings.Contains(first, "⟨U+202E⟩") {
		t.Errorf("the first item shows as %.200q", first)
	}
	tab.Focus("#items .opener")
	tab.Keys(kb.Enter)
	tab.Wait(`document.querySelector("#items .item")`)
	if n := Eval[int](tab, `document.querySelector("#items .item .said").textContent.length`); n < 1<<20 {
		t.Errorf("%d characters of a text are shown", n)
	}
	if title := Eval[string](tab, `document.title`); title != "run-000042" {
		t.Errorf("the title is %q: a text was run", title)
	}
	tab.Keys(kb.Enter)

	// A search finds one of them all, which opens to what made it.
	tab.Focus(`#items input[type="search"]`)
	tab.Keys("test-5990")
	tab.Wait(`document.querySelectorAll("#items tbody tr").length === 1`)
	tab.Focus("#items .opener")
	tab.Keys(kb.Enter)
	tab.Wait(`document.querySelector("#items .item")`)
	for _, part := range []string{"Found by retrieve.near", "Found by rerank.best", "1–10 of 60", "Votes", "Prompts", "Replies", "What it took"} {
		if !Eval[bool](tab, `document.querySelector("#items .item").textContent.includes("`+part+`")`) {
			t.Errorf("the item does not show %q", part)
		}
	}
	tab.Screenshot("large")
	tab.Quiet("file://" + path) // the page itself
}
