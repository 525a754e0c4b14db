package encoder

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/plugins/internal/encoder/internal/folder"
	"github.com/racflow/racflow/plugins/internal/encoder/internal/transformer"
)

// newSum returns a hash that configuration and options were written to, and files are to be
// written to as they are read.
func newSum(f folder.Model, o Options) hash.Hash {
	sum := sha256.New()
	if description, ok := first(f, o); ok {
		fmt.Fprintf(sum, "minilm 1 %+v\n", description)
		if o.Precision != Float32 {
			fmt.Fprintf(sum, "%s 1\n", o.Precision)
		}
		return sum
	}
	// Raise the number where the same files give other vectors than before.
	fmt.Fprintf(sum, "encoder 1 %s %d %+v %d %s %t %t\n",
		o.Precision, o.Dimensions, f.Shape, f.MaxTokens, f.Pooling, f.IncludePrompt, f.Normalize)
	for _, d := range f.Dense {
		fmt.Fprintf(sum, "dense %d %d %t %s\n", d.In, d.Out, d.Bias, d.Activation)
	}
	return sum
}

func finish(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }

// first describes a model as racflow did when there were no others than uncased BERT, so that
// knowledge embedded then need not be embedded anew. ok is false for other models.
func first(f folder.Model, o Options) (description any, ok bool) {
	_, err := os.Stat(filepath.Join(f.Dir, "tokenizer.json"))
	if err == nil || f.Shape.Family != transformer.BERT || f.Pooling == folder.Last || !f.IncludePrompt || f.Dense != nil ||
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
		f.Shape.Epsilon, f.MaxTokens, f.Pooling == folder.Mean, f.Normalize,
	}, true
}
