package encoder

import (
	"context"
	"fmt"
	"math"

	"github.com/racflow/racflow/plugins/internal/encoder/internal/folder"
	"github.com/racflow/racflow/plugins/internal/linear"
	"github.com/racflow/racflow/plugins/internal/simd"
)

// Precision is the arithmetic of the linear layers; the rest is float32.
type Precision = linear.Precision

// The precisions.
const (
	Float32  = linear.Float32
	BFloat16 = linear.BFloat16
	Int8     = linear.Int8
)

// Options are what a model is opened with.
type Options struct {
	Precision  Precision    // "" is Float32
	Dimensions int          // of a vector, the first ones of the model's; 0: all
	MaxTokens  int          // a limit below the model's own; 0: the model's
	Kernel     *simd.Kernel // nil: the best
	MiniLM     bool         // a folder without config.json is all-MiniLM-L6-v2
}

// complete fills in defaults, and refuses what there is not.
func (o Options) complete() (Options, error) {
	if o.Kernel == nil {
		o.Kernel = simd.Best()
	}
	if o.Precision == "" {
		o.Precision = Float32
	}
	if o.MaxTokens < 0 || o.MaxTokens == 1 {
		return o, fmt.Errorf("%d tokens have no room for [CLS] and [SEP]", o.MaxTokens)
	}
	return o, o.Precision.Check()
}

// Encoder is a loaded encoder of texts. It is safe for concurrent use.
type Encoder struct {
	*network
	folder      folder.Model
	top         top
	fingerprint string
}

// Open reads the model in folder dir. model.safetensors (or its shards with their index),
// config.json and tokenizer.json or vocab.txt must be there; sentence_bert_config.json,
// tokenizer_config.json, modules.json with the folders it names, and
// config_sentence_transformers.json are read where they exist. A model that the package
// cannot compute, or a damaged file, is an error that names the file.
func Open(dir string, o Options) (*Encoder, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	f, err := folder.Read(dir, o.MiniLM)
	if err != nil {
		return nil, err
	}
	if err := embeds(f); err != nil {
		return nil, err
	}
	if o.MaxTokens > 0 {
		f.MaxTokens = min(f.MaxTokens, o.MaxTokens)
	}
	e := &Encoder{folder: f}
	sum := newSum(f, o)
	if e.top, err = readTop(f, o, sum); err != nil {
		return nil, err
	}
	if e.network, err = openNetwork(f, o, sum, nil); err != nil {
		return nil, err
	}
	e.fingerprint = finish(sum)
	return e, nil
}

// Check reports what the configuration in a model's folder says against it: that it is no
// encoder of texts, or one that cannot be computed. Weights and tokenizer are not read.
func Check(dir string) error {
	f, err := folder.Read(dir, false)
	if err != nil {
		return err
	}
	return embeds(f)
}

// embeds is an error where a model gives no vectors.
func embeds(f folder.Model) error {
	if class := f.Classifier(); class != "" && !f.Pooled {
		return fmt.Errorf("%s: the model is a cross-encoder (%s), which gives scores of pairs and no vectors: it is for rerank", f.Dir, class)
	}
	return nil
}

// Dim returns the number of floats in a vector.
func (e *Encoder) Dim() int { return e.top.dim }

// Limit returns how many tokens of a text are read, special ones and those of the prompt
// included.
func (e *Encoder) Limit() int { return e.limit }

// Prompts returns what the model expects before queries and before passages, mostly
// nothing.
func (e *Encoder) Prompts() (query, passage string) {
	return e.folder.QueryPrompt, e.folder.PassagePrompt
}

// Fingerprint returns the SHA-256, in hexadecimal, of what the vectors depend
// on: weights, tokenizer, configuration and options. Vectors of equal fingerprints may
// be compared. Between instruction sets they differ by rounding: in float32 in the sixth
// decimal; in int8, where that may decide between two whole numbers, about as much as from
// float32 (TestKernelsAgree).
func (e *Encoder) Fingerprint() string { return e.fingerprint }

// Encode returns a vector of [Encoder.Dim] floats for every text, in the order of the
// texts. Texts are truncated at the limit; the empty text has a vector too. The vectors
// share one array.
//
// Encode uses as many goroutines as GOMAXPROCS allows and checks ctx between batches. Its
// error is that of ctx, or that of a model whose numbers are not finite.
func (e *Encoder) Encode(ctx context.Context, texts []string) ([][]float32, error) {
	return e.EncodePrompt(ctx, "", texts)
}

// EncodePrompt is [Encoder.Encode] with a prompt before each text. Its tokens do not count
// in the mean where the model's folder says so.
func (e *Encoder) EncodePrompt(ctx context.Context, prompt string, texts []string) ([][]float32, error) {
	skip := 0
	if prompt != "" && !e.folder.IncludePrompt {
		skip = e.promptTokens(prompt)
	}
	values := make([]float32, len(texts)*e.Dim())
	jobs := make([]job, 0, len(texts))
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if ctx.Err() != nil {
			break
		}
		vectors[i] = values[i*e.Dim() : (i+1)*e.Dim() : (i+1)*e.Dim()]
		tokens := e.tokenizer.Encode(prompt+text, e.limit)
		if len(tokens) > 0 { // a tokenizer without special ones has none for the empty text: its vector is zero
			jobs = append(jobs, job{text: whole(tokens), skip: min(skip, len(tokens)-1), result: vectors[i]})
		}
	}
	e.run(ctx, jobs, e.top.vector)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("embed %d texts: %w", len(texts), err)
	}
	for _, v := range vectors {
		if length := e.kernel.Dot(v, v); math.IsNaN(float64(length)) || math.IsInf(float64(length), 0) {
			return nil, fmt.Errorf("embed %d texts: the model in %s computes numbers that are not finite: its weights are damaged", len(texts), e.folder.Dir)
		}
	}
	return vectors, nil
}

// promptTokens is how many tokens a prompt takes at the beginning of a text.
func (e *Encoder) promptTokens(prompt string) int {
	tokens, empty := e.tokenizer.Encode(prompt, e.limit), e.tokenizer.Encode("", e.limit)
	if n := len(empty); n > 1 && tokens[len(tokens)-1] == empty[n-1] {
		return len(tokens) - 1 // a token ends every text
	}
	return len(tokens)
}
