package encoder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/racflow/racflow/plugins/internal/linear"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/plugins/internal/tokenizer"
)

// Precision is the arithmetic of the linear layers; the rest is float32.
type Precision = linear.Precision

// The precisions.
const (
	Float32 = linear.Float32
	Int8    = linear.Int8
)

// Options are the settings for opening a model.
type Options struct {
	Precision  Precision    // "" is Float32
	Dimensions int          // the first dimensions of the model's vectors to use; 0: all
	MaxTokens  int          // a limit below the model's own; 0: the model's own
	Kernel     *simd.Kernel // nil: the best
	MiniLM     bool         // a folder without config.json counts as all-MiniLM-L6-v2
	Memos      string       // a stage's folder that stores checksums of weights for later processes; "": each Open computes them
}

// complete fills in defaults, and returns an error for unsupported values.
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
	folder      folder
	top         top
	fingerprint string
}

// Open reads the model in folder dir. model.safetensors (or its shards with their index), config.json and
// tokenizer.json or vocab.txt must exist. sentence_bert_config.json, tokenizer_config.json, modules.json with the
// folders it names, and config_sentence_transformers.json are optional. An unsupported model or a damaged file is an
// error that names the file.
func Open(dir string, o Options) (*Encoder, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	f, err := readFolder(dir, o.MiniLM)
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

// Check checks the configuration in a model's folder. It returns an error if the model is no encoder of texts, or is
// unsupported. It reads neither weights nor tokenizer.
func Check(dir string) error {
	f, err := readFolder(dir, false)
	if err != nil {
		return err
	}
	return embeds(f)
}

// embeds returns an error if a model gives no vectors.
func embeds(f folder) error {
	if class := f.classifier(); class != "" && !f.Pooled {
		return fmt.Errorf("%s: the model is a cross-encoder (%s), which gives scores of pairs and no vectors: it is for rerank", f.Dir, class)
	}
	return nil
}

// Dim returns the number of floats in a vector.
func (e *Encoder) Dim() int { return e.top.dim }

// Prompts returns the model's prompts before queries and before passages. Most models have none.
func (e *Encoder) Prompts() (query, passage string) {
	return e.folder.QueryPrompt, e.folder.PassagePrompt
}

// Fingerprint returns the SHA-256, in hexadecimal, of everything that the vectors depend on: weights, tokenizer,
// configuration and options. Vectors with equal fingerprints are comparable. Two instruction sets
// round differently. In float32 their vectors differ in the sixth decimal. In int8 rounding may change a code; the
// vectors then differ about as much as int8 and float32 do (TestKernelsAgree).
func (e *Encoder) Fingerprint() string { return e.fingerprint }

// Encode returns a vector of [Encoder.Dim] floats for every text, in the order of the texts. Texts are truncated at
// the limit; the empty text has a vector too. The vectors share one array.
//
// Encode uses up to GOMAXPROCS goroutines and checks ctx between batches. It returns the error of ctx, or an error if
// the model's numbers are not finite.
func (e *Encoder) Encode(ctx context.Context, texts []string) ([][]float32, error) {
	return e.EncodePrompt(ctx, "", texts)
}

// EncodePrompt is [Encoder.Encode] with a prompt before each text. The prompt's tokens do not count in the mean if
// the model's folder says so.
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
		if len(tokens) > 0 { // without special tokens the empty text has no tokens: its vector is zero
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

// promptTokens returns how many tokens a prompt takes at the beginning of a text.
func (e *Encoder) promptTokens(prompt string) int {
	tokens, empty := e.tokenizer.Encode(prompt, e.limit), e.tokenizer.Encode("", e.limit)
	if n := len(empty); n > 1 && tokens[len(tokens)-1] == empty[n-1] {
		return len(tokens) - 1 // the last token only ends the text
	}
	return len(tokens)
}

// newSum returns a hash that already contains configuration and options. Files are added to it as they are read.
func newSum(f folder, o Options) hash.Hash {
	sum := sha256.New()
	if description, ok := first(f, o); ok {
		fmt.Fprintf(sum, "minilm 1 %+v\n", description)
		if o.Precision != Float32 {
			fmt.Fprintf(sum, "%s 1\n", o.Precision)
		}
		return sum
	}
	// Raise the number whenever the same files give other vectors than before.
	fmt.Fprintf(sum, "encoder 1 %s %d %+v %d %s %t %t\n",
		o.Precision, o.Dimensions, f.Shape, f.MaxTokens, f.Pooling, f.IncludePrompt, f.Normalize)
	for _, d := range f.Dense {
		fmt.Fprintf(sum, "dense %d %d %t %s\n", d.In, d.Out, d.Bias, d.Activation)
	}
	return sum
}

func finish(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }

// first describes a model in the form of the first racflow version, which supported only uncased BERT. So knowledge
// embedded then stays valid. ok is false for other models.
func first(f folder, o Options) (description any, ok bool) {
	_, err := os.Stat(filepath.Join(f.Dir, "tokenizer.json"))
	if err == nil || f.Shape.Family != bert || f.Pooling == lastToken || !f.IncludePrompt || f.Dense != nil ||
		o.Dimensions != 0 {
		return nil, false
	}
	return struct {
		Hidden, Layers, Heads, Intermediate, Positions int
		Epsilon                                        float64
		MaxTokens                                      int
		MeanPooling, Normalize                         bool
	}{
		f.Shape.Hidden, f.Shape.Layers, f.Shape.Heads, f.Shape.Intermediate, f.Shape.Positions,
		f.Shape.Epsilon, f.MaxTokens, f.Pooling == mean, f.Normalize,
	}, true
}

// openTokenizer reads the tokenizer in a folder. It writes to sum all data that determines the token ids.
func openTokenizer(dir string, sum io.Writer) (*tokenizer.Tokenizer, error) {
	t, err := tokenizer.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: give the folder that holds tokenizer.json, or the vocab.txt of an uncased BERT", err)
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err == nil {
		_, err = fmt.Fprintln(sum, t.Fingerprint())
		return t, err
	}
	// The vocabulary of an uncased model is hashed as in the first version.
	vocabulary, err := os.ReadFile(filepath.Join(dir, "vocab.txt"))
	if err != nil {
		return nil, fmt.Errorf("open the model: %w", err)
	}
	own := sha256.Sum256(vocabulary)
	if t.Fingerprint() != hex.EncodeToString(own[:]) {
		vocabulary = append(vocabulary, t.Fingerprint()...)
	}
	_, err = sum.Write(vocabulary)
	return t, err
}

// ignoresCase reports whether capital letters make no difference to the tokens.
func ignoresCase(t *tokenizer.Tokenizer) bool {
	for _, pair := range [][2]string{{"ABCDEFGHIJKLM", "abcdefghijklm"}, {"NOPQRSTUVWXYZ", "nopqrstuvwxyz"}, {"The House", "the house"}} {
		if !slices.Equal(t.Encode(pair[0], 100), t.Encode(pair[1], 100)) {
			return false
		}
	}
	return true
}
