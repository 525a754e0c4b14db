package folder

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/encoder/internal/transformer"
)

const configFile = "config.json"

// maxSize bounds every size that a configuration gives, and maxPositions the tokens of a
// text, for which ModernBERT has tables in memory that no file bears out.
const (
	maxSize      = 1 << 20
	maxPositions = 1 << 16
)

// configJSON is config.json, in the words of all families.
type configJSON struct {
	Family       string  `json:"model_type"`
	Activation   string  `json:"hidden_act"`
	PositionType string  `json:"position_embedding_type"`
	Hidden       int     `json:"hidden_size"`
	Layers       int     `json:"num_hidden_layers"`
	Heads        int     `json:"num_attention_heads"`
	Intermediate int     `json:"intermediate_size"`
	Positions    int     `json:"max_position_embeddings"`
	Epsilon      float64 `json:"layer_norm_eps"`
	Padding      *int    `json:"pad_token_id"`
	Decoder      bool    `json:"is_decoder"`

	// DistilBERT
	DistilActivation string `json:"activation"`
	Dim              int    `json:"dim"`
	HiddenDim        int    `json:"hidden_dim"`
	NLayers          int    `json:"n_layers"`
	NHeads           int    `json:"n_heads"`

	Buckets int `json:"relative_attention_num_buckets"` // MPNet

	modernJSON
	headJSON
}

// readShape reads config.json.
func (m *Model) readShape(dir string) error {
	s := m.Shape
	f := configJSON{
		Family: "bert", Activation: "gelu", PositionType: "absolute",
		Hidden: s.Hidden, Layers: s.Layers, Heads: s.Heads, Intermediate: s.Intermediate, Positions: s.Positions, Epsilon: s.Epsilon,
		DistilActivation: "gelu", Buckets: 32,
		modernJSON: modernDefaults(),
	}
	if _, err := readJSON(dir, configFile, &f); err != nil {
		return err
	}
	family := transformer.Family(f.Family)
	if !slices.Contains(transformer.Families(), family) {
		var known []string
		for _, name := range transformer.Families() {
			known = append(known, string(name))
		}
		return unsupported(dir, configFile, "model_type is %q, only %s are", f.Family, strings.Join(known, ", "))
	}
	s = transformer.Config{
		Family: family, Hidden: f.Hidden, Layers: f.Layers, Heads: f.Heads,
		Intermediate: f.Intermediate, Positions: f.Positions, Epsilon: f.Epsilon,
	}
	activation, activationName := f.Activation, "hidden_act"
	switch family {
	case transformer.DistilBERT:
		s.Hidden, s.Layers, s.Heads = cmp.Or(f.Dim, s.Hidden), cmp.Or(f.NLayers, s.Layers), cmp.Or(f.NHeads, s.Heads)
		s.Intermediate, s.Epsilon = cmp.Or(f.HiddenDim, s.Intermediate), 1e-12
		activation, activationName = f.DistilActivation, "activation"
	case transformer.RoBERTa, transformer.XLMRoBERTa, transformer.MPNet:
		s.Padding = 1
		if f.Padding != nil && family != transformer.MPNet {
			s.Padding = *f.Padding
		}
		if family == transformer.MPNet {
			s.Buckets = f.Buckets
		}
	case transformer.ModernBERT:
		activation, activationName = f.HiddenActivation, "hidden_activation"
		if err := f.modernJSON.set(dir, &s); err != nil {
			return err
		}
	}
	switch {
	case activation != "gelu":
		return unsupported(dir, configFile, "%s is %q, only \"gelu\" is", activationName, activation)
	case f.PositionType != "absolute":
		return unsupported(dir, configFile, "position_embedding_type is %q, only \"absolute\" is", f.PositionType)
	case f.Decoder:
		return unsupported(dir, configFile, "is_decoder is true, only encoders are")
	}
	m.Shape, m.head = s, f.headJSON
	return m.checkSizes(dir)
}

// checkSizes refuses sizes that are no model's, before anything is computed with them.
func (m *Model) checkSizes(dir string) error {
	s := m.Shape
	sizes := []int{s.Hidden, s.Layers, s.Heads, s.Intermediate}
	switch {
	case slices.Min(sizes) < 1 || s.Padding < 0 || s.Padding > maxSize || s.MaxTokens() < 2 || s.Epsilon <= 0 || math.IsInf(s.Epsilon, 0):
		return unsupported(dir, configFile, "a size is missing, zero or negative")
	case slices.Max(sizes) > maxSize:
		return unsupported(dir, configFile, "a size of %d, at most %d are", slices.Max(sizes), maxSize)
	case s.Positions > maxPositions:
		return unsupported(dir, configFile, "max_position_embeddings is %d, at most %d are", s.Positions, maxPositions)
	case s.Hidden%s.Heads != 0:
		return unsupported(dir, configFile, "hidden_size %d does not divide into %d heads", s.Hidden, s.Heads)
	case s.Family == transformer.MPNet && (s.Buckets < 4 || s.Buckets > 128 || s.Buckets%4 != 0):
		return unsupported(dir, configFile, "relative_attention_num_buckets is %d", s.Buckets)
	case s.Family == transformer.ModernBERT && s.HeadSize()%2 != 0:
		return unsupported(dir, configFile, "heads of %d columns do not divide into pairs", s.HeadSize())
	}
	return nil
}
