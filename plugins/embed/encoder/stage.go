package encoder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/plugins/internal/encoder"
	"github.com/racflow/racflow/plugins/internal/linear"
	"github.com/racflow/racflow/plugins/internal/safetensors"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
)

// auto leaves the precision to the stage.
const auto = "auto"

type config struct {
	Model         sdk.Path `config:"model,required" example:"bge-small-en-v1.5" doc:"Folder of the model as sentence-transformers lays it out (config.json, model.safetensors, tokenizer.json, modules.json), or the name of a model that racflow model pull has brought."`
	Precision     string   `config:"precision" default:"auto" one_of:"auto,float32,bfloat16,int8" doc:"Numbers in which the layers multiply. Less precise ones are faster and make other vectors, so each has vectors of its own. auto compares int8 with float32 on 200 of the knowledge's own texts the first time, and takes int8 where it is as good and this processor is faster with it, else float32."`
	Dimensions    int      `config:"dimensions" min:"1" doc:"Keeps the first so many numbers of a vector, for models that were trained for that (Matryoshka); all where it is not given."`
	MaxTokens     int      `config:"max_tokens" min:"2" doc:"Longest text in tokens, of which the rest is not read; the model's own limit where it is not given or smaller."`
	QueryPrompt   *string  `config:"query_prompt" example:"query: " doc:"Text before each query; the one that the model's folder names where it is not given."`
	PassagePrompt *string  `config:"passage_prompt" example:"passage: " doc:"Text before each passage; the one that the model's folder names where it is not given."`
}

// Stage describes the embedder for any model of the BERT family.
func Stage() sdk.Stage {
	return sdk.EmbedStage("encoder", "Embeds with a sentence encoder from a folder (BERT, DistilBERT, RoBERTa, XLM-RoBERTa, MPNet, ModernBERT), on this machine's CPU.",
		open, sdk.Revision("1"), sdk.PreferBatch(64), sdk.Fits(sdk.ColumnText), sdk.Validates(config.check))
}

// check reports a folder that is there and holds no encoder. A model that is not there may be
// pulled before the file is run.
func (c config) check() error {
	if dir, err := sdk.FindModel(c.Model); err == nil {
		if err := encoder.Check(dir); err != nil {
			return &sdk.ArgumentError{Argument: "model", Err: err}
		}
	}
	return nil
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Embedder, error) {
	dir, err := sdk.FindModel(c.Model)
	if err != nil {
		return nil, &sdk.ArgumentError{Argument: "model", Err: err}
	}
	s := source{dir: dir, options: encoder.Options{Dimensions: c.Dimensions, MaxTokens: c.MaxTokens}, query: c.QueryPrompt, passage: c.PassagePrompt}
	if c.Precision != auto {
		return opened(s.open(encoder.Precision(c.Precision)))
	}
	decided, ok, err := readDecision(setup.StateDir)
	switch {
	case err != nil:
		return nil, err
	case ok:
		e, err := s.open(decided.Precision)
		return opened(resolved{e}, err)
	}
	e, err := s.open(encoder.Float32)
	return opened(&undecided{embedder: e, source: s, setup: setup, fast: linear.Fast(simd.Best(), encoder.Int8)}, err)
}

// opened is the stage, or the error of its model.
func opened(e sdk.Embedder, err error) (sdk.Embedder, error) {
	if err != nil {
		return nil, &sdk.ArgumentError{Argument: "model", Err: err}
	}
	return e, nil
}

type miniLM struct {
	Model     sdk.Path `config:"model" doc:"Folder of another model of its kind, or the name of one that racflow model pull has brought; where it is not given, all-MiniLM-L6-v2, which racflow model pull minilm brings."`
	Precision string   `config:"precision" one_of:"float32,bfloat16,int8" doc:"Numbers in which the layers multiply. Less precise ones are faster and make other vectors, so each has vectors of its own. int8 takes a third of the time of float32 on a processor with VNNI or AMX. Where it is not given, int8, unless the knowledge is there in another one."`
}

// MiniLM describes the preset for all-MiniLM-L6-v2 (Wang et al. 2020, arXiv:2002.10957;
// Reimers and Gurevych 2019, arXiv:1908.10084).
func MiniLM() sdk.Stage {
	return sdk.EmbedStage("minilm", "Embeds with all-MiniLM-L6-v2 (384 dimensions, English), or another model of its kind, on this machine's CPU.",
		openMiniLM, sdk.Revision("1"), sdk.PreferBatch(64))
}

func openMiniLM(_ context.Context, _ sdk.Setup, c miniLM) (sdk.Embedder, error) {
	s := source{options: encoder.Options{MiniLM: true}}
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
		return opened(open())
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
