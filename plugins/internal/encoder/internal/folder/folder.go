package folder

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/racflow/racflow/plugins/internal/encoder/internal/transformer"
)

// Model is what the files in a model's folder say.
type Model struct {
	Dir       string // that holds config.json, weights and tokenizer
	Shape     transformer.Config
	MaxTokens int
	LowerCase bool // texts are to be lower-cased before the tokenizer's own rules

	Pooled        bool // whether modules.json says that it gives vectors
	Pooling       Pooling
	IncludePrompt bool // whether the tokens of a prompt count in the mean
	Dense         []Dense
	Normalize     bool // to length 1

	QueryPrompt, PassagePrompt string

	defaultPrompt string // of the texts that no prompt is named for
	oneSegment    bool   // whether the tokenizer tells the model of no segments

	head   headJSON
	scores string // the activation of scores, as config_sentence_transformers.json has it
}

// Pooling is how the vector of a text is made of those of its tokens.
type Pooling string

// The ways of pooling.
const (
	Mean Pooling = "mean"
	CLS  Pooling = "cls"       // the first token
	Last Pooling = "lasttoken" // the last token
)

// MiniLM is all-MiniLM-L6-v2, which a folder with weights and vocabulary only is taken for
// where that is asked for.
func MiniLM(dir string) Model {
	return Model{
		Dir: dir,
		Shape: transformer.Config{
			Family: transformer.BERT, Hidden: 384, Layers: 6, Heads: 12, Intermediate: 1536, Positions: 512, Epsilon: 1e-12,
		},
		MaxTokens: 256, Pooling: Mean, IncludePrompt: true, Normalize: true,
	}
}

// Read reads the configuration files in a model's folder. A model that cannot be computed is
// an error with the reason, and so is a folder without config.json unless it may be MiniLM.
func Read(dir string, mayBeMiniLM bool) (Model, error) {
	m := MiniLM(dir)
	if !mayBeMiniLM {
		m.Shape = transformer.Config{Epsilon: 1e-12}
		m.MaxTokens = math.MaxInt32
	}
	if err := m.readModules(dir); err != nil {
		return Model{}, err
	}
	if _, err := os.Stat(filepath.Join(m.Dir, configFile)); err != nil && !mayBeMiniLM {
		return Model{}, fmt.Errorf("open the model: %w: give the folder with all files of the model", err)
	}
	for _, step := range []func(string) error{m.readShape, m.readTokenizer, m.readLimit} {
		if err := step(m.Dir); err != nil {
			return Model{}, err
		}
	}
	m.MaxTokens = min(m.MaxTokens, m.Shape.MaxTokens())
	return m, m.readPrompts(dir)
}
