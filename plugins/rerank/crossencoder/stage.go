package crossencoder

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/racflow/racflow/plugins/internal/encoder"
	"github.com/racflow/racflow/sdk"
)

type config struct {
	Model     sdk.Path      `config:"model,required" example:"models/ms-marco-MiniLM-L6-v2" doc:"Folder of the model, or the name by which racflow model pull keeps it."`
	Precision string        `config:"precision" default:"float32" one_of:"float32,bfloat16,int8" doc:"What the model computes in. int8 is the fastest where the processor has units for it; whether its ranking is as good depends on the model: racflow eval --sweep compares them."`
	Top       int           `config:"top" default:"30" min:"1" max:"10000" doc:"How many of an item's candidates are scored; the others keep their order behind them."`
	Budget    time.Duration `config:"budget" default:"5s" min:"0" doc:"Processor time of an item, from which tokens follows; 0s: no bound."`
	Tokens    *int          `config:"tokens" min:"1" max:"1000000000" doc:"Most tokens of the pairs that are scored for an item. Where it is not given, as many as this machine computes within the budget, measured when the stage opens."`
	MaxTokens *int          `config:"max_tokens" min:"8" max:"1000000" doc:"Tokens of one pair; what is beyond is cut off, from the longer text first. Where it is not given, as many as the model takes."`
	Context   bool          `config:"context" default:"true" doc:"Put what places a candidate in its document before its text."`
}

// Stage describes the reranker.
func Stage() sdk.Stage {
	return sdk.RerankStage("cross_encoder", "Reranks with a cross-encoder from a folder, on this machine's CPU: BERT and its kin with a classification head.",
		open, sdk.Revision("1"), sdk.Reads(sdk.ColumnCandidateTexts), sdk.PreferBatch(4), sdk.Validates(config.check))
}

// scorer is what the stage needs of a model.
type scorer interface {
	// Tokens is how many of them the model computes for a pair.
	Tokens(encoder.Pair) int
	Score(context.Context, []encoder.Pair) ([]float32, error)
	Fingerprint() string
}

// reranker is a model as a stage.
type reranker struct {
	config
	model   scorer
	tokens  int // of the pairs of an item; 0: no bound
	log     *slog.Logger
	limited sync.Once // said that the budget leaves candidates out
}

func open(ctx context.Context, setup sdk.Setup, c config) (sdk.Reranker, error) {
	dir, err := sdk.FindModel(c.Model)
	if err != nil {
		return nil, wrong(err)
	}
	options := encoder.Options{Precision: encoder.Precision(c.Precision)}
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
func newReranker(ctx context.Context, setup sdk.Setup, c config, model scorer, measure func(context.Context, scorer) (float64, error)) (*reranker, error) {
	r := &reranker{config: c, model: model, log: cmp.Or(setup.Log, slog.New(slog.DiscardHandler))}
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
func (c config) check() error {
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
func (r *reranker) Resolved() map[string]any {
	if r.tokens == 0 {
		return nil
	}
	return map[string]any{"tokens": r.tokens}
}

// Fingerprint implements sdk.Fingerprinter.
func (r *reranker) Fingerprint() string {
	return fmt.Sprintf("%s %d", r.model.Fingerprint(), r.tokens)
}
