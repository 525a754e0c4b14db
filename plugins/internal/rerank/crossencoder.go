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

// This file is a reranker: a cross-encoder from a folder, computed on this
// machine's processor. The model reads the item's text and a candidate together and scores
// how well the one answers the other, which neither vectors nor words can.
//
// A candidate is what places it in its document and below that its text; the keywords and
// questions that enrich stages add to it are left out, since models were not trained on
// such lists. Candidates are scored in the order in which the search found them, at most
// top of them. The pairs of all items of a call go to the model together: it packs them
// without padding.
//
// The time that an item takes is bounded in advance: budget is seconds of processor time, and
// the first time that the stage opens it measures how many tokens the model computes in a
// second, of which follows how many tokens an item may cost. The measurement is kept in the
// stage's state folder, and the number is rounded down, reported, resolved (sdk.Resolver) and
// part of the fingerprint: so the same item has the same ranking however busy the machine is,
// and a resumed run keeps to what it began with. The first pair is scored in any case.
//
// Candidates that are not scored keep their order behind those that are. Their score is 0, or
// the lowest one that was computed if that is less.
//
// The package does not compute the model, which is internal/encoder's work, and caches nothing:
// what it would save is counted in seconds of this machine, not in money.

// note is what the stage remembers in its state folder, so that the next run has the same
// budget.
type note struct {
	Model string  `json:"model"` // its fingerprint, and the processor's units
	Rate  float64 `json:"tokens_per_second"`
}

// rate returns how many tokens the model computes in a second of processor time, as it was
// measured here before, or by measure.
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

// sample is about how many words of a passage the model is measured on.
const sample = 120

// measure returns how many tokens of pairs the model computes in a second of processor time.
func measure(ctx context.Context, model scorer) (float64, error) {
	pair := encoder.Pair{Query: "how long is it kept", Passage: strings.Repeat("it is kept for as long as it is of use, ", sample/10)}
	if _, err := model.Score(ctx, []encoder.Pair{pair}); err != nil { // the first time, memory comes in
		return 0, err
	}
	before := processorTime()
	if _, err := model.Score(ctx, []encoder.Pair{pair}); err != nil {
		return 0, err
	}
	return float64(model.Tokens(pair)) / max(processorTime()-before, 1e-6), nil
}

// processorTime is what this process has used so far, in seconds.
func processorTime() float64 {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) != nil {
		return 0 // it cannot fail with these arguments
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// steps are the digits that round leaves a number.
var steps = []float64{7, 5, 3, 2, 1.5, 1}

// round returns the next of the numbers 1, 1.5, 2, 3, 5, 7, 10, 15 ... below x, so that
// measurements that differ a little lead to the same one; at least 1.
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
	var owners []*sdk.Ranked // where the score of each pair belongs
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

// choose returns the pairs of an item that are scored, and the candidate of each.
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

// passage is the text of a candidate that the model reads.
func (r *crossEncoderReranker) passage(c *sdk.Candidate) string {
	if !r.Context {
		return c.Text
	}
	placing, _ := sdk.SplitContext(c.Context)
	return strings.TrimSpace(placing + "\n" + c.Text)
}

// arrange returns n candidates without scores: those in chosen, which rises, then the others.
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

// finish sorts the first n, which have scores, and gives the others one that is no better.
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
	// Tokens is how many of them the model computes for a pair.
	Tokens(encoder.Pair) int
	Score(context.Context, []encoder.Pair) ([]float32, error)
	Fingerprint() string
}

// crossEncoderReranker is a model as a stage.
type crossEncoderReranker struct {
	crossEncoderConfig
	model   scorer
	tokens  int // of the pairs of an item; 0: no bound
	log     *slog.Logger
	limited sync.Once // said that the budget leaves candidates out
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

// newReranker finds out what the budget allows. measure returns how many tokens the model
// computes in a second of processor time.
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

// check reports a folder that is there and holds no cross-encoder. A model that is not there may
// be pulled before the file is run.
func (c crossEncoderConfig) check() error {
	if dir, err := sdk.FindModel(c.Model); err == nil {
		return wrong(encoder.CheckCrossEncoder(dir))
	}
	return nil
}

// wrong is an error of the model.
func wrong(err error) error {
	if err == nil {
		return nil
	}
	return &sdk.ArgumentError{Argument: "model", Err: err}
}

// Resolved implements sdk.Resolver: a process that follows this one, and a resumed run,
// score as many candidates.
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
