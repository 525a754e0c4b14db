package encoder

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// activation is a function that is applied to each output of a linear layer.
type activation string

// The activations.
const (
	identity activation = "Identity"
	tanh     activation = "Tanh"
	relu     activation = "ReLU"
	gelu     activation = "GELU"
	sigmoid  activation = "Sigmoid"
)

// activationOf parses the name of a PyTorch class, such as torch.nn.modules.activation.Tanh.
func activationOf(class string) (activation, bool) {
	a := activation(class[strings.LastIndexByte(class, '.')+1:])
	known := slices.Contains([]activation{identity, tanh, relu, gelu, sigmoid}, a)
	return a, known && strings.HasPrefix(class, "torch.nn.")
}

// headJSON has the fields of config.json that describe the head.
type headJSON struct {
	Classes      []string          `json:"architectures"`
	Labels       map[string]string `json:"id2label"`
	Count        int               `json:"num_labels"`
	ST           *activationJSON   `json:"sentence_transformers"`
	OldScores    string            `json:"sbert_ce_default_activation_function"`
	ModernPool   string            `json:"classifier_pooling"`
	ModernActive string            `json:"classifier_activation"`
}

type activationJSON struct {
	Scores string `json:"activation_fn"`
}

// Head describes the head of a cross-encoder.
type Head struct {
	Labels     int        // number of logits
	Label      int        // the logit that is the score
	Activation activation // of the score
	Pooling    pooling    // ModernBERT: CLS or Mean
	OneSegment bool       // query and passage have the same segment
}

// classifies ends the names of classes with a classification head.
const classifies = "ForSequenceClassification"

// classifier returns the model's class if it has a classification head, else "".
func (m folder) classifier() string {
	for _, class := range m.head.Classes {
		if strings.HasSuffix(class, classifies) {
			return class
		}
	}
	return ""
}

// Head returns the head of a cross-encoder. For other models it returns an error.
func (m folder) Head() (Head, error) {
	if m.classifier() == "" {
		return Head{}, unsupported(m.Dir, configFile, "it is no cross-encoder: architectures is %q, which has no %s: an encoder is for embed", m.head.Classes, classifies)
	}
	h := Head{Labels: cmp.Or(len(m.head.Labels), m.head.Count, 2), Activation: identity, Pooling: cls, OneSegment: m.oneSegment}
	if m.defaultPrompt != "" {
		return Head{}, unsupported(m.Dir, promptsFile, "default_prompt_name puts %q before each query", m.defaultPrompt)
	}
	if h.Labels < 1 || h.Labels > 1000 {
		return Head{}, unsupported(m.Dir, configFile, "num_labels is %d", h.Labels)
	}
	if h.Labels == 1 {
		h.Activation = sigmoid
	} else {
		var ok bool
		if h.Label, ok = m.head.relevance(); !ok {
			return Head{}, unsupported(m.Dir, configFile, "the head gives %d numbers, id2label %.200s, and none of these alone is called %s: it does not rank",
				h.Labels, fmt.Sprintf("%q", m.head.Labels), strings.Join(relevances, ", "))
		}
	}
	class := m.scores
	if class == "" && m.head.ST != nil {
		class = m.head.ST.Scores
	}
	if class = cmp.Or(class, m.head.OldScores); class != "" {
		var known bool
		if h.Activation, known = activationOf(class); !known {
			return Head{}, unsupported(m.Dir, configFile, "the activation of scores is %q, only Identity, Tanh, ReLU, GELU and Sigmoid of torch.nn are", class)
		}
	}
	switch pool := cmp.Or(m.head.ModernPool, string(cls)); pooling(pool) {
	case cls, mean:
		h.Pooling = pooling(pool)
	default:
		return Head{}, unsupported(m.Dir, configFile, "classifier_pooling is %q, only \"cls\" and \"mean\" are", pool)
	}
	if a := cmp.Or(m.head.ModernActive, "gelu"); a != "gelu" {
		return Head{}, unsupported(m.Dir, configFile, "classifier_activation is %q, only \"gelu\" is", a)
	}
	return h, nil
}

// relevances are labels that say that a passage answers the query.
var relevances = []string{"relevant", "relevance", "positive", "true", "yes", "entailment"}

// relevance returns the logit of the only label for relevance. ok is false if there is none, or more than one.
func (f headJSON) relevance() (label int, ok bool) {
	found := 0
	for id, name := range f.Labels {
		if !slices.Contains(relevances, strings.ToLower(name)) {
			continue
		}
		n, err := strconv.Atoi(id)
		if err != nil || n < 0 || n >= len(f.Labels) {
			return 0, false
		}
		label = n
		found++
	}
	return label, found == 1
}

// modernJSON holds the fields of config.json that only ModernBERT has, with the names of transformers 4 and 5.
type modernJSON struct {
	HiddenActivation string          `json:"hidden_activation"`
	NormEpsilon      float64         `json:"norm_eps"`
	GlobalEvery      int             `json:"global_attn_every_n_layers"`
	LayerTypes       []string        `json:"layer_types"`
	Window           int             `json:"local_attention"`
	GlobalTheta      float64         `json:"global_rope_theta"`
	LocalTheta       float64         `json:"local_rope_theta"`
	Rope             map[string]rope `json:"rope_parameters"`
	Scaling          *rope           `json:"rope_scaling"`
}

type rope struct {
	Type  string  `json:"rope_type"`
	Theta float64 `json:"rope_theta"`
}

func modernDefaults() modernJSON {
	return modernJSON{
		HiddenActivation: "gelu", NormEpsilon: 1e-5, GlobalEvery: 3, Window: 128, GlobalTheta: 160000, LocalTheta: 10000,
	}
}

const (
	globalAttention = "full_attention"
	localAttention  = "sliding_attention"
)

// set sets the options that only ModernBERT has.
func (f modernJSON) set(dir string, s *Config) error {
	s.Epsilon, s.Window, s.GlobalTheta, s.LocalTheta = f.NormEpsilon, f.Window/2, f.GlobalTheta, f.LocalTheta
	for kind, theta := range map[string]*float64{globalAttention: &s.GlobalTheta, localAttention: &s.LocalTheta} {
		if r, ok := f.Rope[kind]; ok {
			if r.Type != "" && r.Type != "default" {
				return unsupported(dir, configFile, "rope_type is %q, only \"default\" is", r.Type)
			}
			if r.Theta != 0 {
				*theta = r.Theta
			}
		}
		if *theta <= 0 || math.IsInf(*theta, 0) {
			return unsupported(dir, configFile, "rope_theta is %v", *theta)
		}
	}
	switch {
	case f.Scaling != nil && f.Scaling.Type != "default":
		return unsupported(dir, configFile, "rope_scaling of the type %q", f.Scaling.Type)
	case s.Window < 1 || s.Window > maxPositions:
		return unsupported(dir, configFile, "local_attention is %d", f.Window)
	case f.GlobalEvery < 1 && f.LayerTypes == nil:
		return unsupported(dir, configFile, "global_attn_every_n_layers is %d", f.GlobalEvery)
	case f.LayerTypes != nil && len(f.LayerTypes) != s.Layers:
		return unsupported(dir, configFile, "layer_types are of %d layers, num_hidden_layers is %d", len(f.LayerTypes), s.Layers)
	case s.Layers < 1 || s.Layers > maxSize:
		return unsupported(dir, configFile, "num_hidden_layers is %d", s.Layers)
	}
	s.Global = make([]bool, s.Layers)
	for i := range s.Global {
		s.Global[i] = f.LayerTypes == nil && i%f.GlobalEvery == 0
	}
	for i, kind := range f.LayerTypes {
		if kind != globalAttention && kind != localAttention {
			return unsupported(dir, configFile, "layer_types: %q, only %q and %q are", kind, globalAttention, localAttention)
		}
		s.Global[i] = kind == globalAttention
	}
	return nil
}

const configFile = "config.json"

// maxSize bounds every size in a configuration. maxPositions bounds the tokens of a text: ModernBERT needs tables of
// that size, and no file confirms the number.
const (
	maxSize      = 1 << 20
	maxPositions = 1 << 16
)

// configJSON is config.json, with the names of all families.
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
func (m *folder) readShape(dir string) error {
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
	family := Family(f.Family)
	if !slices.Contains(families(), family) {
		var known []string
		for _, name := range families() {
			known = append(known, string(name))
		}
		return unsupported(dir, configFile, "model_type is %q, only %s are", f.Family, strings.Join(known, ", "))
	}
	s = Config{
		Family: family, Hidden: f.Hidden, Layers: f.Layers, Heads: f.Heads,
		Intermediate: f.Intermediate, Positions: f.Positions, Epsilon: f.Epsilon,
	}
	activation, activationName := f.Activation, "hidden_act"
	switch family {
	case distilBERT:
		s.Hidden, s.Layers, s.Heads = cmp.Or(f.Dim, s.Hidden), cmp.Or(f.NLayers, s.Layers), cmp.Or(f.NHeads, s.Heads)
		s.Intermediate, s.Epsilon = cmp.Or(f.HiddenDim, s.Intermediate), 1e-12
		activation, activationName = f.DistilActivation, "activation"
	case RoBERTa, xlmRoBERTa, MPNet:
		s.Padding = 1
		if f.Padding != nil && family != MPNet {
			s.Padding = *f.Padding
		}
		if family == MPNet {
			s.Buckets = f.Buckets
		}
	case modernBERT:
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

// checkSizes refuses implausible sizes before anything is computed with them.
func (m *folder) checkSizes(dir string) error {
	s := m.Shape
	sizes := []int{s.Hidden, s.Layers, s.Heads, s.Intermediate}
	switch {
	case slices.Min(sizes) < 1 || s.Padding < 0 || s.Padding > maxSize || s.maxTokens() < 2 || s.Epsilon <= 0 || math.IsInf(s.Epsilon, 0):
		return unsupported(dir, configFile, "a size is missing, zero or negative")
	case slices.Max(sizes) > maxSize:
		return unsupported(dir, configFile, "a size of %d, at most %d are", slices.Max(sizes), maxSize)
	case s.Positions > maxPositions:
		return unsupported(dir, configFile, "max_position_embeddings is %d, at most %d are", s.Positions, maxPositions)
	case s.Hidden%s.Heads != 0:
		return unsupported(dir, configFile, "hidden_size %d does not divide into %d heads", s.Hidden, s.Heads)
	case s.Family == MPNet && (s.Buckets < 4 || s.Buckets > 128 || s.Buckets%4 != 0):
		return unsupported(dir, configFile, "relative_attention_num_buckets is %d", s.Buckets)
	case s.Family == modernBERT && s.headSize()%2 != 0:
		return unsupported(dir, configFile, "heads of %d columns do not divide into pairs", s.headSize())
	}
	return nil
}
