package rerank

import (
	"cmp"
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
	"time"

	"golang.org/x/sys/unix"

	"github.com/racflow/racflow/plugins/internal/encoder"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
)

// This file is a reranker: a cross-encoder from a folder, computed on this machine's processor. The model reads the
// item's text and a candidate together, and scores how well the candidate answers the item. Neither vectors nor words
// can do that.
//
// The model reads a candidate's context and, below it, its text. Keywords and questions from enrich stages are left
// out, since models were not trained on such lists. Candidates are scored in the order of the search, at most top of
// them. All pairs of a call go to the model together: it packs them without padding.
//
// The time for an item is bounded in advance. The argument budget is seconds of processor time. When the stage first
// opens, it measures how many tokens the model processes per second; this gives the number of tokens that an item may
// cost. The measurement is stored in the stage's state folder. The number is rounded down, reported, resolved
// (sdk.Resolver), and part of the fingerprint. So an item always has the same ranking, however busy the machine is,
// and a resumed run uses the same number. The first pair is scored in any case.
//
// Candidates that are not scored keep their order after the scored ones. Their score is 0, or the lowest computed
// score if that is less.
//
// Package internal/encoder computes the model. This stage caches nothing: a cache would save seconds of this machine,
// not money.

// note is the measurement in the stage's state folder, which gives the next run the same budget.
type note struct {
	Model string  `json:"model"` // its fingerprint, and the processor's units
	Rate  float64 `json:"tokens_per_second"`
}

// rate returns how many tokens the model processes per second of processor time: the stored measurement, or a new one
// by measure.
func (r *crossEncoderReranker) rate(ctx context.Context, setup sdk.Setup, measure func(context.Context, scorer) (float64, error)) (float64, error) {
	own := note{Model: fmt.Sprintf("%s %v", r.model.Fingerprint(), simd.Best())}
	path := filepath.Join(setup.StateDir, "cross-encoder.json")
	var known note
	if raw, err := os.ReadFile(path); err == nil && json.Unmarshal(raw, &known) == nil && known.Model == own.Model && known.Rate > 0 {
		return known.Rate, nil
	}
	var err error
	if own.Rate, err = measure(ctx, r.model); err != nil || setup.StateDir == "" {
		return own.Rate, err
	}
	raw, err := json.Marshal(own)
	if err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		r.log.Warn("how fast the model is cannot be stored and will be measured again", "error", err)
	}
	return own.Rate, nil
}

// sample is about how many words of a passage a measurement uses.
const sample = 120

// measure returns how many tokens of pairs the model processes per second of processor time.
func measure(ctx context.Context, model scorer) (float64, error) {
	pair := encoder.Pair{Query: "how long is it kept", Passage: strings.Repeat("it is kept for as long as it is of use, ", sample/10)}
	if _, err := model.Score(ctx, []encoder.Pair{pair}); err != nil { // the first call also loads memory
		return 0, err
	}
	before := processorTime()
	if _, err := model.Score(ctx, []encoder.Pair{pair}); err != nil {
		return 0, err
	}
	return float64(model.Tokens(pair)) / max(processorTime()-before, 1e-6), nil
}

// processorTime returns the processor time of this process so far, in seconds.
func processorTime() float64 {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) != nil {
		return 0 // it cannot fail with these arguments
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// steps are the leading digits of numbers that round returns.
var steps = []float64{7, 5, 3, 2, 1.5, 1}

// round returns the greatest of the numbers 1, 1.5, 2, 3, 5, 7, 10, 15 ... up to x, and at least 1. So slightly
// different measurements lead to the same number.
func round(x float64) int {
	x = min(max(x, 1), 1e9)
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, step := range steps {
		if step*unit <= x {
			return int(step * unit)
		}
	}
	return int(unit)
}

// Rerank implements sdk.Reranker.
func (r *crossEncoderReranker) Rerank(ctx context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	out, failed := make([][]sdk.Ranked, len(b.Items)), sdk.RowErrors{}
	var pairs []encoder.Pair
	var owners []*sdk.Ranked // the destination of each pair's score
	chosen := make([]int, len(b.Items))
	for i := range b.Items {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		item := &b.Items[i]
		if len(item.Candidates) > 0 && strings.TrimSpace(item.Text) == "" {
			failed[i] = sdk.Invalid(errors.New(`the item has no text to rank by; on_error = "skip" leaves the order as it is`))
			continue
		}
		own, of := r.choose(item)
		out[i], chosen[i] = arrange(of, len(item.Candidates)), len(own)
		for k := range own {
			owners = append(owners, &out[i][k])
		}
		pairs = append(pairs, own...)
	}
	if len(pairs) > 0 {
		scores, err := r.model.Score(ctx, pairs)
		if err != nil {
			return nil, err
		}
		for k, score := range scores {
			owners[k].Score = score
		}
	}
	for i := range out {
		finish(out[i], chosen[i])
	}
	if len(failed) > 0 {
		return out, failed
	}
	return out, nil
}

// choose returns the pairs of an item to score, and the candidate of each.
func (r *crossEncoderReranker) choose(item *sdk.Item) (pairs []encoder.Pair, of []int) {
	tokens := 0
	for i := range item.Candidates {
		if len(pairs) == r.Top {
			break
		}
		pair := encoder.Pair{Query: item.Text, Passage: r.passage(&item.Candidates[i])}
		if strings.TrimSpace(pair.Passage) == "" {
			continue
		}
		if r.tokens > 0 {
			if tokens += r.model.Tokens(pair); tokens > r.tokens && len(pairs) > 0 {
				r.limited.Do(func() {
					r.log.Warn("the budget leaves candidates unscored, which keep their order behind the others: raise budget or lower top; this is said once",
						"item", item.ID, "scored", len(pairs), "of", min(r.Top, len(item.Candidates)), "tokens", r.tokens)
				})
				break
			}
		}
		pairs, of = append(pairs, pair), append(of, i)
	}
	return pairs, of
}

// passage returns the text of a candidate for the model.
func (r *crossEncoderReranker) passage(c *sdk.Candidate) string {
	if !r.Context {
		return c.Text
	}
	placing, _ := sdk.SplitContext(c.Context)
	return strings.TrimSpace(placing + "\n" + c.Text)
}

// arrange returns n candidates without scores: first those in chosen, which is in rising order, then the others.
func arrange(chosen []int, n int) []sdk.Ranked {
	ranked := make([]sdk.Ranked, 0, n)
	for _, i := range chosen {
		ranked = append(ranked, sdk.Ranked{Candidate: i})
	}
	for i := range n {
		if _, ok := slices.BinarySearch(chosen, i); !ok {
			ranked = append(ranked, sdk.Ranked{Candidate: i})
		}
	}
	return ranked
}

// finish sorts the first n candidates, which have scores, and gives the others a score that is not higher.
func finish(ranked []sdk.Ranked, n int) {
	slices.SortStableFunc(ranked[:n], func(a, b sdk.Ranked) int { return cmp.Compare(b.Score, a.Score) })
	least := float32(0)
	if n > 0 {
		least = min(least, ranked[n-1].Score)
	}
	for i := n; i < len(ranked); i++ {
		ranked[i].Score = least
	}
}

type crossEncoderConfig struct {
	Model     sdk.Path      `config:"model,required" example:"models/ms-marco-MiniLM-L6-v2" doc:"Folder of the model, or the name by which racflow model pull keeps it."`
	Precision string        `config:"precision" default:"float32" one_of:"float32,int8" doc:"What the model computes in. int8 is the fastest where the processor has units for it; whether its ranking is as good depends on the model: racflow eval --sweep compares them."`
	Top       int           `config:"top" default:"30" min:"1" max:"10000" doc:"How many of an item's candidates are scored; the others keep their order behind them."`
	Budget    time.Duration `config:"budget" default:"5s" min:"0" doc:"Processor time of an item, from which tokens follows; 0s: no bound."`
	Tokens    *int          `config:"tokens" min:"1" max:"1000000000" doc:"Most tokens of the pairs that are scored for an item. Where it is not given, as many as this machine computes within the budget, measured when the stage opens."`
	MaxTokens *int          `config:"max_tokens" min:"8" max:"1000000" doc:"Tokens of one pair; what is beyond is cut off, from the longer text first. Where it is not given, as many as the model takes."`
	Context   bool          `config:"context" default:"true" doc:"Put what places a candidate in its document before its text."`
}

// CrossEncoder describes the reranker.
func CrossEncoder() sdk.Stage {
	return sdk.RerankStage("cross_encoder", "Reranks with a cross-encoder from a folder, on this machine's CPU: BERT and its kin with a classification head.",
		openCrossEncoder, sdk.Revision("1"), sdk.Reads(sdk.ColumnCandidateTexts), sdk.PreferBatch(4), sdk.Validates(crossEncoderConfig.check))
}

// scorer is what the stage needs of a model.
type scorer interface {
	// Tokens returns how many tokens the model processes for a pair.
	Tokens(encoder.Pair) int
	Score(context.Context, []encoder.Pair) ([]float32, error)
	Fingerprint() string
}

// crossEncoderReranker is a cross-encoder as a stage.
type crossEncoderReranker struct {
	crossEncoderConfig
	model   scorer
	tokens  int // token budget of an item; 0: no bound
	log     *slog.Logger
	limited sync.Once // reports once that the budget leaves out candidates
}

func openCrossEncoder(ctx context.Context, setup sdk.Setup, c crossEncoderConfig) (sdk.Reranker, error) {
	dir, err := sdk.FindModel(c.Model)
	if err != nil {
		return nil, wrong(err)
	}
	options := encoder.Options{Precision: encoder.Precision(c.Precision), Memos: setup.StateDir}
	if c.MaxTokens != nil {
		options.MaxTokens = *c.MaxTokens
	}
	model, err := encoder.OpenCrossEncoder(dir, options)
	if err != nil {
		return nil, wrong(err)
	}
	return newReranker(ctx, setup, c, model, measure)
}

// newReranker computes the token budget. measure returns how many tokens the model processes per second of processor
// time.
func newReranker(ctx context.Context, setup sdk.Setup, c crossEncoderConfig, model scorer, measure func(context.Context, scorer) (float64, error)) (*crossEncoderReranker, error) {
	r := &crossEncoderReranker{crossEncoderConfig: c, model: model, log: cmp.Or(setup.Log, slog.New(slog.DiscardHandler))}
	if c.Tokens != nil {
		r.tokens = *c.Tokens
		return r, nil
	}
	if c.Budget == 0 {
		return r, nil
	}
	rate, err := r.rate(ctx, setup, measure)
	if err != nil {
		return nil, wrong(fmt.Errorf("measure how fast it is here: %w", err))
	}
	r.tokens = round(rate * c.Budget.Seconds())
	r.log.Info("the budget allows so many tokens per item", "budget", c.Budget, "tokens", r.tokens, "per_second", int(rate))
	return r, nil
}

// check returns an error for an existing folder without a cross-encoder. A missing model may be pulled before the
// file is run.
func (c crossEncoderConfig) check() error {
	if dir, err := sdk.FindModel(c.Model); err == nil {
		return wrong(encoder.CheckCrossEncoder(dir))
	}
	return nil
}

// wrong returns an error about the argument model.
func wrong(err error) error {
	if err == nil {
		return nil
	}
	return &sdk.ArgumentError{Argument: "model", Err: err}
}

// Resolved implements sdk.Resolver: later processes and a resumed run score as many candidates.
func (r *crossEncoderReranker) Resolved() map[string]any {
	if r.tokens == 0 {
		return nil
	}
	return map[string]any{"tokens": r.tokens}
}

// Fingerprint implements sdk.Fingerprinter.
func (r *crossEncoderReranker) Fingerprint() string {
	return fmt.Sprintf("%s %d", r.model.Fingerprint(), r.tokens)
}
