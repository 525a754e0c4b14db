package rerank

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/encoder"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

// fake is a model that reads a passage's score from the passage: the number after the last colon. A
// word is a token.
type fake struct {
	mu    sync.Mutex
	calls [][]encoder.Pair
	err   error
}

func (f *fake) Tokens(p encoder.Pair) int {
	return len(strings.Fields(p.Query)) + len(strings.Fields(p.Passage))
}

func (f *fake) Score(_ context.Context, pairs []encoder.Pair) ([]float32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, pairs)
	scores := make([]float32, len(pairs))
	for i, p := range pairs {
		if _, err := fmt.Sscan(p.Passage[strings.LastIndexByte(p.Passage, ':')+1:], &scores[i]); err != nil && f.err == nil {
			return nil, err
		}
	}
	return scores, f.err
}

func (*fake) Fingerprint() string { return "fake" }

// slow returns a measurement: the given number of tokens per second.
func slow(rate float64) func(context.Context, scorer) (float64, error) {
	return func(context.Context, scorer) (float64, error) { return rate, nil }
}

// made returns a stage with the model f.
func made(t testing.TB, c crossEncoderConfig, f scorer, rate float64) (*crossEncoderReranker, *bytes.Buffer) {
	t.Helper()
	said := &bytes.Buffer{}
	c.Top, c.Context = max(c.Top, 1), true
	r, err := newReranker(t.Context(), sdk.Setup{Log: slog.New(slog.NewTextHandler(said, nil))}, c, f, slow(rate))
	if err != nil {
		t.Fatal(err)
	}
	return r, said
}

func crossEncoderItem(id string, passages ...string) sdk.Item {
	it := sdk.Item{ID: id, Text: "a question"}
	for i, p := range passages {
		it.Candidates = append(it.Candidates, sdk.Candidate{ID: fmt.Sprint(i), Text: p})
	}
	return it
}

func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		config   crossEncoderConfig
		passages []string
		want     []sdk.Ranked
	}{
		"by score":               {crossEncoderConfig{Top: 9}, []string{"a:.1", "b:.3", "c:.2"}, []sdk.Ranked{{Candidate: 1, Score: .3}, {Candidate: 2, Score: .2}, {Candidate: 0, Score: .1}}},
		"equal scores":           {crossEncoderConfig{Top: 9}, []string{"a:.1", "b:.3", "c:.1", "d:.3"}, []sdk.Ranked{{Candidate: 1, Score: .3}, {Candidate: 3, Score: .3}, {Candidate: 0, Score: .1}, {Candidate: 2, Score: .1}}},
		"the top alone":          {crossEncoderConfig{Top: 2}, []string{"a:.1", "b:.3", "c:.9", "d:.8"}, []sdk.Ranked{{Candidate: 1, Score: .3}, {Candidate: 0, Score: .1}, {Candidate: 2}, {Candidate: 3}}},
		"logits below 0":         {crossEncoderConfig{Top: 2}, []string{"a:-8", "b:-3", "c:9", "d:8"}, []sdk.Ranked{{Candidate: 1, Score: -3}, {Candidate: 0, Score: -8}, {Candidate: 2, Score: -8}, {Candidate: 3, Score: -8}}},
		"a candidate of nothing": {crossEncoderConfig{Top: 2}, []string{" ", "b:.3", "c:.9", "d:.8"}, []sdk.Ranked{{Candidate: 2, Score: .9}, {Candidate: 1, Score: .3}, {Candidate: 0}, {Candidate: 3}}},
		"nothing at all":         {crossEncoderConfig{Top: 2}, []string{"", "\n"}, []sdk.Ranked{{Candidate: 0}, {Candidate: 1}}},
		"the tokens of an item":  {crossEncoderConfig{Top: 9, Tokens: new(9)}, []string{"a :.1", "b :.3", "c :.9", "d:.8"}, []sdk.Ranked{{Candidate: 1, Score: .3}, {Candidate: 0, Score: .1}, {Candidate: 2}, {Candidate: 3}}},
		"tokens for the first":   {crossEncoderConfig{Top: 9, Tokens: new(1)}, []string{"a :.1", "b :.3"}, []sdk.Ranked{{Candidate: 0, Score: .1}, {Candidate: 1}}},
		"no candidates":          {crossEncoderConfig{Top: 9}, nil, []sdk.Ranked{}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := made(t, c.config, &fake{}, 0)
			got, err := r.Rerank(t.Context(), sdk.Batch{Items: []sdk.Item{crossEncoderItem("1", c.passages...)}})
			if err != nil || !slices.Equal(got[0], c.want) {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
}

// All pairs of a call go to the model together. An error affects only its item, such as an item without a text.
func TestItemsTogether(t *testing.T) {
	f := &fake{}
	r, _ := made(t, crossEncoderConfig{Top: 9}, f, 0)
	silent := crossEncoderItem("2", "x:1")
	silent.Text = " "
	got, err := r.Rerank(t.Context(), sdk.Batch{Items: []sdk.Item{crossEncoderItem("1", "a:1", "b:2"), silent, crossEncoderItem("3"), crossEncoderItem("4", "c:3", "d:4")}})
	var failed sdk.RowErrors
	if !errors.As(err, &failed) || len(failed) != 1 || sdk.CodeOf(failed[1]) != sdk.CodeInvalid || !strings.Contains(failed[1].Error(), "on_error") {
		t.Errorf("error %v, want one of the second item", err)
	}
	for i, want := range [][]sdk.Ranked{{{Candidate: 1, Score: 2}, {Candidate: 0, Score: 1}}, nil, {}, {{Candidate: 1, Score: 4}, {Candidate: 0, Score: 3}}} {
		if !slices.Equal(got[i], want) {
			t.Errorf("item %d: got %v, want %v", i+1, got[i], want)
		}
	}
	if len(f.calls) != 1 || len(f.calls[0]) != 4 {
		t.Errorf("the model was asked %d times: %v", len(f.calls), f.calls)
	}
}

// The model does not read the terms that enrich stages add for searches: it was not trained on them.
func TestPassage(t *testing.T) {
	c := sdk.Candidate{Text: "It is kept for a year:1", Context: sdk.JoinContext([]string{"guide.md", "Storage"}, []string{"retention", "how long"})}
	for want, with := range map[string]bool{"guide.md\nStorage\nIt is kept for a year:1": true, "It is kept for a year:1": false} {
		f := &fake{}
		r, _ := made(t, crossEncoderConfig{}, f, 0)
		r.Context = with
		if _, err := r.Rerank(t.Context(), sdk.Batch{Items: []sdk.Item{{Text: "how long?", Candidates: []sdk.Candidate{c}}}}); err != nil {
			t.Fatal(err)
		}
		if got := f.calls[0][0]; got != (encoder.Pair{Query: "how long?", Passage: want}) {
			t.Errorf("the model reads %q", got)
		}
	}
}

// A budget becomes a number of tokens when the stage opens. Later processes use the same number, and the file's own
// number overrides it.
func TestBudget(t *testing.T) {
	for _, c := range []struct {
		name   string
		config crossEncoderConfig
		rate   float64
		want   int
	}{
		{"a budget", crossEncoderConfig{Budget: 2 * time.Second}, 5300, 10_000},
		{"nearly the same speed", crossEncoderConfig{Budget: 2 * time.Second}, 6900, 10_000},
		{"another one", crossEncoderConfig{Budget: time.Second}, 51_000, 50_000},
		{"next to none", crossEncoderConfig{Budget: time.Millisecond}, 10, 1},
		{"no budget", crossEncoderConfig{}, 5300, 0},
		{"tokens", crossEncoderConfig{Budget: time.Second, Tokens: new(77)}, 5300, 77},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, said := made(t, c.config, &fake{}, c.rate)
			if r.tokens != c.want || strings.Contains(said.String(), "budget") != (c.config.Tokens == nil && c.want > 0) {
				t.Errorf("%d tokens, want %d; said %q", r.tokens, c.want, said)
			}
			if got := r.Resolved()["tokens"]; got != c.want && (got != nil || c.want != 0) {
				t.Errorf("resolved %v, want %d", got, c.want)
			}
			again := c.config
			if r.tokens > 0 {
				again.Tokens = &r.tokens
			}
			if next, _ := made(t, again, &fake{}, 3*c.rate); next.Fingerprint() != r.Fingerprint() {
				t.Errorf("fingerprint %s of the next process, %s of the first", next.Fingerprint(), r.Fingerprint())
			}
		})
	}
	if a, _ := made(t, crossEncoderConfig{Tokens: new(5)}, &fake{}, 0); a.Fingerprint() == (&crossEncoderReranker{model: &fake{}}).Fingerprint() {
		t.Error("the fingerprint does not know the tokens, on which the ranking depends")
	}
}

// A measurement also counts for the next run, unless the model has changed or the note is damaged.
func TestMeasuredOnce(t *testing.T) {
	setup, measured := sdk.Setup{StateDir: t.TempDir()}, 0
	opened := func(f scorer, rate float64) int {
		t.Helper()
		r, err := newReranker(t.Context(), setup, crossEncoderConfig{Budget: time.Second}, f, func(context.Context, scorer) (float64, error) {
			measured++
			return rate, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.tokens
	}
	for _, step := range []struct {
		name     string
		model    scorer
		rate     float64
		damage   bool
		want     int
		measured int
	}{
		{"first", &fake{}, 5000, false, 5000, 1},
		{"again", &fake{}, 9000, false, 5000, 1},
		{"another model", &renamed{}, 9000, false, 7000, 2},
		{"damaged", &renamed{}, 3000, true, 3000, 3},
	} {
		if step.damage {
			if err := os.WriteFile(filepath.Join(setup.StateDir, "cross-encoder.json"), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := opened(step.model, step.rate); got != step.want || measured != step.measured {
			t.Errorf("%s: %d tokens after %d measurements, want %d after %d", step.name, got, measured, step.want, step.measured)
		}
	}
}

type renamed struct{ fake }

func (*renamed) Fingerprint() string { return "another" }

// Candidates that the budget leaves out are reported once.
func TestBudgetIsReported(t *testing.T) {
	r, said := made(t, crossEncoderConfig{Top: 3, Tokens: new(5)}, &fake{}, 0)
	for _, id := range []string{"7", "8"} {
		if _, err := r.Rerank(t.Context(), sdk.Batch{Items: []sdk.Item{crossEncoderItem(id, "a b:1", "c d:2", "e f:3", "g:4")}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := said.String(); strings.Count(got, "unscored") != 1 || !strings.Contains(got, "item=7 scored=1 of=3 tokens=5") {
		t.Errorf("said %q", got)
	}
	r, said = made(t, crossEncoderConfig{Top: 2, Tokens: new(500)}, &fake{}, 0)
	if _, err := r.Rerank(t.Context(), sdk.Batch{Items: []sdk.Item{crossEncoderItem("1", "a:1", "b:2", "c:3")}}); err != nil || said.Len() > 0 {
		t.Errorf("within the budget it said %q, %v", said, err)
	}
}

func TestErrors(t *testing.T) {
	broken := &fake{err: errors.New("no memory")}
	r, _ := made(t, crossEncoderConfig{}, broken, 0)
	if _, err := r.Rerank(t.Context(), sdk.Batch{Items: []sdk.Item{crossEncoderItem("1", "a:1")}}); !errors.Is(err, broken.err) {
		t.Errorf("error %v, want the model's", err)
	}
	if _, err := newReranker(t.Context(), sdk.Setup{}, crossEncoderConfig{Budget: 1}, broken, measure); !errors.Is(err, broken.err) {
		t.Errorf("error %v, want the model's", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r, _ = made(t, crossEncoderConfig{}, &fake{}, 0)
	if _, err := r.Rerank(ended, sdk.Batch{Items: []sdk.Item{crossEncoderItem("1", "a:1")}}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of a call that has ended", err)
	}
}

// worker is a model that works for some time on each token.
type worker struct {
	fake
	sum float64
}

func (w *worker) Score(_ context.Context, pairs []encoder.Pair) ([]float32, error) {
	for _, p := range pairs {
		for i := range 200_000 * w.Tokens(p) {
			w.sum += float64(i) * 1e-9
		}
	}
	return make([]float32, len(pairs)), nil
}

// A measurement is in processor time: it is positive, and at most what a processor can do.
func TestCrossEncoderMeasure(t *testing.T) {
	rate, err := measure(t.Context(), &worker{})
	if err != nil || rate < 1 || rate > 1e6 {
		t.Errorf("%v tokens a second, %v", rate, err)
	}
}

func TestRound(t *testing.T) {
	for x, want := range map[float64]int{-1: 1, 0: 1, .5: 1, 1: 1, 1.6: 1, 2: 2, 9.9: 7, 10: 10, 15.5: 15, 4321: 3000, 69_999: 50_000, 70_000: 70_000, 1e99: 1e9} {
		if got := round(x); got != want {
			t.Errorf("round(%v) is %d, want %d", x, got, want)
		}
	}
}

// Models with random weights: a cross-encoder, and an encoder without a head.
const (
	crossFolder = "testdata/tiny"
	embedFolder = "../encoder/testdata/tiny"
)

// TestScores compares with sentence-transformers (testdata/tiny.py).
func TestScores(t *testing.T) {
	open, err := CrossEncoder().Open(t.Context(), sdk.Setup{}, fmt.Appendf(nil, `{"model": %q}`, crossFolder))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(crossFolder, "scores.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][3]any
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) < 5 {
		t.Fatal(len(rows), err)
	}
	var pairs []encoder.Pair
	for _, row := range rows {
		pairs = append(pairs, encoder.Pair{Query: row[0].(string), Passage: row[1].(string)})
	}
	got, err := open.(*crossEncoderReranker).model.Score(t.Context(), pairs)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		if want := row[2].(float64); math.Abs(float64(got[i])-want) > 1e-4 {
			t.Errorf("%q: score %v, want %v", pairs[i], got[i], want)
		}
	}
}

func TestCrossEncoderConformance(t *testing.T) {
	for _, precision := range []string{"float32", "int8"} {
		t.Run(precision, func(t *testing.T) {
			sdktest.Stage(t, CrossEncoder(), fmt.Sprintf(`{"model": %q, "precision": %q}`, crossFolder, precision))
		})
	}
}

func TestCrossEncoderGolden(t *testing.T) {
	apitest.CheckReply(t, CrossEncoder(), fmt.Sprintf(`{"model": %q, "budget": "0s"}`, crossFolder), "1 7485f4a8d0cee70d")
}

// The ranking depends on the model, its precision, and the length at which pairs are truncated.
func TestFingerprint(t *testing.T) {
	seen := map[string]string{}
	for _, config := range []string{`"tokens": 500`, `"tokens": 600`, `"tokens": 500, "precision": "int8"`, `"tokens": 500, "max_tokens": 20`, `"budget": "0s"`} {
		open, err := CrossEncoder().Open(t.Context(), sdk.Setup{}, fmt.Appendf(nil, `{"model": %q, %s}`, crossFolder, config))
		if err != nil {
			t.Fatal(err)
		}
		print := CrossEncoder().Fingerprint(open)
		if other, ok := seen[print]; ok {
			t.Errorf("%s and %s have the fingerprint %s", config, other, print)
		}
		seen[print] = config
	}
}

// An existing folder without a cross-encoder is an error of the argument before anything runs. A missing model is an
// error when the stage opens.
func TestWrongModel(t *testing.T) {
	t.Setenv(sdk.ModelsVariable, t.TempDir())
	none := filepath.Join(t.TempDir(), "ranker")
	for _, c := range []struct {
		name, config, invalid, closed string // errors of Validate and Open; empty: none
	}{
		{"a cross-encoder", fmt.Sprintf(`{"model": %q}`, crossFolder), "", ""},
		{"an encoder", fmt.Sprintf(`{"model": %q}`, embedFolder), "no cross-encoder", "no cross-encoder"},
		{"an empty folder", fmt.Sprintf(`{"model": %q}`, t.TempDir()), "config.json", "config.json"},
		{"no folder", fmt.Sprintf(`{"model": %q}`, none), "", "racflow model pull ranker"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := CrossEncoder().Open(t.Context(), sdk.Setup{}, []byte(c.config))
			for _, got := range []struct {
				err  error
				want string
			}{{CrossEncoder().Validate([]byte(c.config)), c.invalid}, {err, c.closed}} {
				of := (*sdk.ArgumentError)(nil)
				if got.want == "" && got.err != nil || got.want != "" && (!errors.As(got.err, &of) || of.Argument != "model" || !strings.Contains(got.err.Error(), got.want)) {
					t.Errorf("error %v, want %q", got.err, got.want)
				}
			}
		})
	}
}
