package embed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/plugins/internal/encoder"
	"github.com/racflow/racflow/plugins/internal/linear"
	"github.com/racflow/racflow/plugins/internal/safetensors"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
)

// This file has the embedders that run a model on this machine's processor: the stage encoder for any folder that
// package plugins/internal/encoder supports, and minilm, its preset for the model that racflow is measured with.
//
// The precision affects the vectors: with another precision, the knowledge needs another generation. So the precision
// is chosen once for each generation. Every later process, on any machine, uses the same precision, fast or slow. If
// the file does not give it:
//
//   - minilm uses int8 on every processor. On public sets this lost 0.03 points of accuracy (10,909 items) and 0.0010 of
//     nDCG@10 (1,083 queries). A loss of more than 0.0033 of nDCG@10 is ruled out with a confidence of 95 % (TestQuality).
//     The precision is a resolved value (sdk.Resolver), so a float32 generation of an earlier version stays in use.
//   - encoder decides for each model: it compares int8 with float32 on some of the knowledge's own texts before it embeds
//     anything (sdk.Fitter; encoder_auto.go). It compares once, even if the knowledge changes later.
//
// The package does not fetch models: `racflow model pull` does. It does not rank.

// source is what a model is opened from.
type source struct {
	dir            string
	options        encoder.Options
	query, passage *string // prompts; nil: the folder's own
}

func (s source) open(p encoder.Precision) (encoderEmbedder, error) {
	s.options.Precision = p
	e, err := encoder.Open(s.dir, s.options)
	if err != nil {
		return encoderEmbedder{}, err
	}
	m := encoderEmbedder{Encoder: e, precision: p}
	m.query, m.passage = e.Prompts()
	if s.query != nil {
		m.query = *s.query
	}
	if s.passage != nil {
		m.passage = *s.passage
	}
	return m, nil
}

// encoderEmbedder is an encoder as a stage.
type encoderEmbedder struct {
	*encoder.Encoder
	precision      encoder.Precision
	query, passage string // prompts
}

// Dimension implements sdk.Embedder.
func (e encoderEmbedder) Dimension() int { return e.Dim() }

// Embed implements sdk.Embedder.
func (e encoderEmbedder) Embed(ctx context.Context, role sdk.Role, texts []string) ([][]float32, error) {
	prompt := e.passage
	if role == sdk.RoleQuery {
		prompt = e.query
	}
	vectors, err := e.EncodePrompt(ctx, prompt, texts)
	for _, v := range vectors {
		encoderNormalise(v)
	}
	return vectors, err
}

// Fingerprint implements sdk.Fingerprinter.
func (e encoderEmbedder) Fingerprint() string {
	print := e.Encoder.Fingerprint()
	if query, passage := e.Prompts(); e.query != query || e.passage != passage {
		print = fmt.Sprintf("%s %q %q", print, e.query, e.passage)
	}
	return print
}

// encoderNormalise normalises v to length 1, as required of stages, if the model has not done so.
func encoderNormalise(v []float32) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if math.Abs(sum-1) < 1e-4 || sum == 0 {
		return
	}
	factor := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= factor
	}
}

// resolved is an embedder that chose its own precision.
type resolved struct{ encoderEmbedder }

// Resolved implements sdk.Resolver.
func (r resolved) Resolved() map[string]any {
	return map[string]any{"precision": string(r.precision)}
}

// auto lets the stage choose the precision.
const auto = "auto"

type encoderConfig struct {
	Model         sdk.Path `config:"model,required" example:"bge-small-en-v1.5" doc:"Folder of the model as sentence-transformers lays it out (config.json, model.safetensors, tokenizer.json, modules.json), or the name of a model that racflow model pull has brought."`
	Precision     string   `config:"precision" default:"auto" one_of:"auto,float32,int8" doc:"Numbers in which the layers multiply. Each makes vectors of its own. int8 is the fastest where the processor has units for it. auto compares int8 with float32 on 200 of the knowledge's own texts the first time, and takes int8 where it is as good and this processor is faster with it, else float32."`
	Dimensions    int      `config:"dimensions" min:"1" doc:"Keeps the first so many numbers of a vector, for models that were trained for that (Matryoshka); all where it is not given."`
	MaxTokens     int      `config:"max_tokens" min:"2" doc:"Longest text in tokens, of which the rest is not read; the model's own limit where it is not given or smaller."`
	QueryPrompt   *string  `config:"query_prompt" example:"query: " doc:"Text before each query; the one that the model's folder names where it is not given."`
	PassagePrompt *string  `config:"passage_prompt" example:"passage: " doc:"Text before each passage; the one that the model's folder names where it is not given."`
}

// Encoder describes the embedder for any model of the BERT family.
func Encoder() sdk.Stage {
	return sdk.EmbedStage("encoder", "Embeds with a sentence encoder from a folder (BERT, DistilBERT, RoBERTa, XLM-RoBERTa, MPNet, ModernBERT), on this machine's CPU.",
		openEncoder, sdk.Revision("1"), sdk.PreferBatch(64), sdk.Fits(sdk.ColumnText), sdk.Validates(encoderConfig.check))
}

// check returns an error for an existing folder without an encoder. A missing model may be pulled before the file is
// run.
func (c encoderConfig) check() error {
	if dir, err := sdk.FindModel(c.Model); err == nil {
		if err := encoder.Check(dir); err != nil {
			return &sdk.ArgumentError{Argument: "model", Err: err}
		}
	}
	return nil
}

func openEncoder(_ context.Context, setup sdk.Setup, c encoderConfig) (sdk.Embedder, error) {
	dir, err := sdk.FindModel(c.Model)
	if err != nil {
		return nil, &sdk.ArgumentError{Argument: "model", Err: err}
	}
	s := source{dir: dir, options: encoder.Options{Dimensions: c.Dimensions, MaxTokens: c.MaxTokens, Memos: setup.StateDir}, query: c.QueryPrompt, passage: c.PassagePrompt}
	if c.Precision != auto {
		return openedEncoder(s.open(encoder.Precision(c.Precision)))
	}
	decided, ok, err := readDecision(setup.StateDir)
	switch {
	case err != nil:
		return nil, err
	case ok:
		e, err := s.open(decided.Precision)
		return openedEncoder(resolved{e}, err)
	}
	e, err := s.open(encoder.Float32)
	return openedEncoder(&undecided{encoderEmbedder: e, source: s, setup: setup, fast: linear.Fast(simd.Best())}, err)
}

// openedEncoder returns the stage, or the error of its model.
func openedEncoder(e sdk.Embedder, err error) (sdk.Embedder, error) {
	if err != nil {
		return nil, &sdk.ArgumentError{Argument: "model", Err: err}
	}
	return e, nil
}

type miniLM struct {
	Model     sdk.Path `config:"model" doc:"Folder of another model of its kind, or the name of one that racflow model pull has brought; where it is not given, all-MiniLM-L6-v2, which racflow model pull minilm brings."`
	Precision string   `config:"precision" one_of:"float32,int8" doc:"Numbers in which the layers multiply. Each makes vectors of its own. int8 takes a third of the time of float32 on a processor with VNNI. Where it is not given, int8, unless the knowledge is there in another one."`
}

// MiniLM describes the preset for all-MiniLM-L6-v2 (Wang et al. 2020, arXiv:2002.10957;
// Reimers and Gurevych 2019, arXiv:1908.10084).
func MiniLM() sdk.Stage {
	return sdk.EmbedStage("minilm", "Embeds with all-MiniLM-L6-v2 (384 dimensions, English), or another model of its kind, on this machine's CPU.",
		openMiniLM, sdk.Revision("1"), sdk.PreferBatch(64))
}

func openMiniLM(_ context.Context, setup sdk.Setup, c miniLM) (sdk.Embedder, error) {
	s := source{options: encoder.Options{MiniLM: true, Memos: setup.StateDir}}
	open := func() (sdk.Embedder, error) {
		if c.Precision != "" {
			return s.open(encoder.Precision(c.Precision))
		}
		e, err := s.open(encoder.Int8)
		return resolved{e}, err
	}
	var err error
	if c.Model != "" {
		if s.dir, err = sdk.FindModel(c.Model); err != nil {
			return nil, &sdk.ArgumentError{Argument: "model", Err: err}
		}
		return openedEncoder(open())
	}
	if s.dir, err = sdk.ModelDir("minilm"); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(s.dir, safetensors.FileName)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the model is not on this machine (%s): racflow model pull minilm brings it; "+
			"hashing is an embedder that needs no model, at a lower accuracy", s.dir)
	}
	e, err := open()
	if err != nil {
		return nil, fmt.Errorf("%w; racflow model pull minilm brings the model anew", err)
	}
	return e, nil
}
