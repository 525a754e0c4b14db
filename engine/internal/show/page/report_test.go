package page_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/show/explain"

	"github.com/racflow/racflow/engine/internal/show/page"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// run is a run with fixed contents.
type run struct {
	id     string
	items  []explain.Item
	totals *journal.Totals
	err    error
}

func (r run) ID() string { return r.id }
func (r run) Manifest() journal.Manifest {
	return journal.Manifest{ID: r.id, File: "/home/ada/secret/intent.hcl", Pipeline: "p", Answers: journal.LabelAnswers, Stages: []journal.ManifestStage{{Stage: "sample.llm", Use: "openai", Model: "m"}, {Stage: "elect.e", Use: "learned"}}}
}
func (r run) Definition() *pipeline.Pipeline { return nil }
func (r run) Weights() pipeline.Weights {
	return pipeline.Weights{Weights: map[string]float64{"llm": 1.5}}
}
func (r run) Totals() *journal.Totals { return r.totals }
func (r run) Labels() []string        { return []string{"a", "b"} }
func (r run) Gone() []string          { return nil }
func (r run) Briefs(context.Context) iter.Seq2[*explain.Brief, error] {
	return func(yield func(*explain.Brief, error) bool) {
		for i := range r.items {
			if !yield(&r.items[i].Brief, nil) {
				return
			}
		}
		if r.err != nil {
			yield(nil, r.err)
		}
	}
}

func (r run) Items(_ context.Context, want func(*explain.Brief) bool) iter.Seq2[*explain.Item, error] {
	return func(yield func(*explain.Item, error) bool) {
		for i := range r.items {
			if want(&r.items[i].Brief) && !yield(&r.items[i], nil) {
				return
			}
		}
	}
}

func item(line int, expected, answer string, confidence float64, flagged bool) explain.Item {
	return explain.Item{
		Brief: explain.Brief{Line: line, Result: result.Result{ID: fmt.Sprint("i", line), Text: fmt.Sprint("text ", line), Expected: expected, Answer: result.Answer(answer), Verdict: result.Verdict{Confidence: confidence, Flagged: flagged}, Votes: []result.Vote{{Voter: "llm", Answer: answer, Weight: 1, Accepted: true}}}},
		Lists: []explain.List{{Stage: "retrieve.near", Candidates: []result.Candidate{{ID: "r1", Label: "a", Text: "shared", Score: .5}, {ID: fmt.Sprint("r", line+1), Label: "b", Text: "own", Score: .25}}}},
	}
}

// block returns the data of a block of a page.
func block(t *testing.T, html, id string, into any) {
	t.Helper()
	m := regexp.MustCompile(`<script type="([^"]*)" id="` + id + `">([^<]*)</script>`).FindStringSubmatch(html)
	if m == nil {
		t.Fatalf("there is no block %s", id)
	}
	text := []byte(m[2])
	if m[1] != "application/json" {
		packed, err := base64.StdEncoding.DecodeString(m[2])
		if err == nil {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(packed)); err == nil {
				var b bytes.Buffer
				_, err = b.ReadFrom(z)
				text = b.Bytes()
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func reportHTML(t *testing.T, p page.Page, err error) string {
	t.Helper()
	var b bytes.Buffer
	if err == nil {
		err = p.Write(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

type shown struct {
	Run struct {
		File   string
		Stages []struct {
			Stage, Use string
			Cost       float64
			Tokens     *explain.Usage
		}
		Eval *struct {
			Scored   int
			Accuracy float64
			Flags    map[string]int
			Confused []map[string]any
		}
		Curve, Bins []map[string]float64
	}
	Items struct {
		Line  []int
		State []string
		At    []int
		A     []string
	}
	All, Explained int
}

func TestOf(t *testing.T) {
	failed := item(6, "a", "", 0, false)
	failed.Status, failed.Error = journal.Failed, &result.Failure{Line: 6, Stage: "sample.llm", Message: "down"}
	unreached := item(9, "a", "", 0, false)
	unreached.Status, unreached.Votes = journal.Unreached, nil
	paid := item(2, "a", "a", .9, false)
	paid.Cost, paid.Usages = map[string]float64{"llm": .5}, map[string]explain.Usage{"llm": {Input: 10, Output: 2}}
	decided := item(10, "a", "b", 0, false)
	decided.Decided = &result.Decision{By: "Ada"}
	r := run{id: "run-000007", items: []explain.Item{
		paid, item(3, "a", "b", .6, false), item(4, "b", "a", .8, false), item(5, "b", "a", .2, true), failed,
		item(7, "b", "b", .1, true), item(8, "", "b", .4, false), unreached, decided,
	}, totals: &journal.Totals{Complete: true, Items: 7, Seconds: 2, Stages: []journal.StageTime{{Stage: "search.local", Rows: 7, Busy: 1}, {Stage: "sample.llm", Rows: 7, Busy: 3}}}}
	p, err := page.RunPage(context.Background(), r)
	text := reportHTML(t, p, err)
	var got shown
	block(t, text, "data", &got)
	// Failed items; wrong items without a flag, the surest first; flagged items, the most doubtful
	// first; other items; unreached items.
	if d := cmp.Diff([]int{6, 4, 3, 7, 5, 2, 8, 10, 9}, got.Items.Line); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"e", "w", "w", "rf", "wf", "r", "", "d", "u"}, got.Items.State); d != "" {
		t.Errorf("states (-want +got):\n%s", d)
	}
	e, s := got.Run.Eval, got.Run.Stages
	must.Equal(t, "scored, accuracy, caught, confused, points of the curve, whether there are bins", []any{6, 2. / 6, 1, 2, 50, true}, []any{e.Scored, e.Accuracy, e.Flags["caught"], len(e.Confused), len(got.Run.Curve), len(got.Run.Bins) > 0})
	must.Equal(t, "number of stages", 2, len(s))
	must.Equal(t, "the first; use, cost and tokens of the second", []any{"search.local", "openai", .5, uint64(10)}, []any{s[0].Stage, s[1].Use, s[1].Cost, s[1].Tokens.Input})
	if got.Run.File != "intent.hcl" || strings.Contains(text, "ada/secret") {
		t.Errorf("the file is %s: folders of this machine are nobody's business", got.Run.File)
	}
	if got.All != 9 || got.Explained != 9 {
		t.Errorf("%d of %d items are explained", got.Explained, got.All)
	}
	// The details of an answer are where the table says, and each candidate occurs once.
	var made []struct {
		Line  int
		Lists []struct{ Candidates [][]float64 }
	}
	var entries struct{ ID, Text []string }
	block(t, text, "made-0", &made)
	block(t, text, "entries", &entries)
	for i, line := range got.Items.Line {
		of := made[got.Items.At[i]]
		own := entries.ID[int(of.Lists[0].Candidates[1][0])]
		if of.Line != line || own != fmt.Sprint("r", line+1) || of.Lists[0].Candidates[1][1] != .25 {
			t.Errorf("line %d opens to line %d with %s", line, of.Line, own)
		}
	}
	if len(entries.ID) != 10 {
		t.Errorf("the candidates are %v", entries.ID)
	}
	if again, err := page.RunPage(context.Background(), r); reportHTML(t, again, err) != text {
		t.Error("the same run has another page")
	}
}

// TestNothingRight: if all items failed, or if every answer is that no label fits, the lists of the
// page are empty, and never null.
func TestNothingRight(t *testing.T) {
	failed, outside := item(2, "a", "", 0, false), item(3, "z", "", 0, false)
	failed.Status, failed.Error, failed.Votes, outside.Votes = journal.Failed, &result.Failure{Line: 2, Message: "down"}, nil, nil
	for _, items := range [][]explain.Item{{failed}, {outside}} {
		var got struct {
			Run struct{ Eval map[string]json.RawMessage }
		}
		p, err := page.RunPage(context.Background(), run{id: "run-000009", items: items})
		block(t, reportHTML(t, p, err), "data", &got)
		for _, list := range []string{"voters", "labels", "confused"} {
			if text := string(got.Run.Eval[list]); !strings.HasPrefix(text, "[") {
				t.Errorf("%s of %s is %q", list, items[0].ID, text)
			}
		}
	}
}

// TestFull: a page stops growing, and keeps the details of the answers that a person looks at
// first.
func TestFull(t *testing.T) {
	must.NoRace(t)
	r := run{id: "run-000008"}
	for line := range 400 {
		it := item(line+1, "a", "a", .9, line%4 == 3)
		noise := make([]byte, 60_000)
		for i, state := 0, uint64(line+1); i < len(noise); i++ { // random text that does not compress
			state = state*6364136223846793005 + 1442695040888963407
			noise[i] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[state>>33%62]
		}
		it.Text = string(noise)
		r.items = append(r.items, it)
	}
	p, err := page.RunPage(context.Background(), r)
	text := reportHTML(t, p, err)
	var got shown
	block(t, text, "data", &got)
	if len(text) > 15<<20 || len(text) < 10<<20 || got.Explained == 400 || got.Explained < 100 {
		t.Errorf("%d bytes, with what made %d answers", len(text), got.Explained)
	}
	for i, state := range got.Items.State {
		if strings.Contains(state, "f") && got.Items.At[i] < 0 {
			t.Errorf("a flagged item, the %d. of the table, cannot be opened", i+1)
		}
	}
	if last := got.Items.At[399]; last != -1 {
		t.Errorf("the last item is at %d", last)
	}
}

func TestError(t *testing.T) {
	if _, err := page.RunPage(context.Background(), run{err: errors.New("the disk is gone")}); err == nil || err.Error() != "the disk is gone" {
		t.Errorf("the error is %v", err)
	}
}

// A page of two runs has the figures of both and, for each item that they answer differently, which run
// is right.
func TestComparePage(t *testing.T) {
	a := run{id: "run-000001", items: []explain.Item{item(2, "a", "a", .9, false), item(3, "a", "b", .6, false), item(4, "", "a", .8, false)}}
	b := run{id: "run-000002", items: []explain.Item{item(2, "a", "b", .9, false), item(3, "a", "a", .6, false), item(4, "", "b", .8, false)}}
	p, err := page.ComparePage(t.Context(), a, b, &eval.RunComparison{
		Both: 3, Right: &eval.Paired{Items: 2, Lost: 1, Gained: 1}, Flips: []eval.LabelFlip{{Label: "a", Lost: 1, Gained: 1}}, Manifest: []string{"variable x"},
		Items: []eval.ChangedItem{{Line: 2, ID: "i2", Expected: "a", A: "a", B: "b", Lost: true}, {Line: 3, ID: "i3", Expected: "a", A: "b", B: "a"}, {Line: 4, ID: "i4", A: "a", B: "b"}},
	})
	text := reportHTML(t, p, err)
	var got struct {
		Runs []struct {
			ID   string
			Eval *struct{ Accuracy float64 }
		}
		Right map[string]float64
		Items []struct{ Text, A, B, State string }
	}
	block(t, text, "data", &got)
	must.Equal(t, "accuracies, difference and first item", []any{got.Runs[0].Eval.Accuracy, got.Runs[1].Eval.Accuracy, got.Right["difference"], got.Items[0].Text}, []any{.5, .5, 0., "text 2"})
	states := ""
	for _, i := range got.Items {
		states += i.State
	}
	must.Equal(t, "lost, gained, changed", states, "lgc")
}
