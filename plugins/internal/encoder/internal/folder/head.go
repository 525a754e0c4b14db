package folder

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Activation is a function of single numbers after a linear layer.
type Activation string

// The activations.
const (
	Identity Activation = "Identity"
	Tanh     Activation = "Tanh"
	ReLU     Activation = "ReLU"
	GELU     Activation = "GELU"
	Sigmoid  Activation = "Sigmoid"
)

// activationOf reads the name of a class of PyTorch, such as torch.nn.modules.activation.Tanh.
func activationOf(class string) (Activation, bool) {
	a := Activation(class[strings.LastIndexByte(class, '.')+1:])
	known := slices.Contains([]Activation{Identity, Tanh, ReLU, GELU, Sigmoid}, a)
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
	Labels     int        // how many logits there are
	Label      int        // the one that is the score
	Activation Activation // of the score
	Pooling    Pooling    // ModernBERT: CLS or Mean
	OneSegment bool       // whether the passage is of the query's segment
}

// classifies is the end of the names of classes with such a head.
const classifies = "ForSequenceClassification"

// Classifier is the class of the model where it has such a head, else "".
func (m Model) Classifier() string {
	for _, class := range m.head.Classes {
		if strings.HasSuffix(class, classifies) {
			return class
		}
	}
	return ""
}

// Head returns the head of a cross-encoder. A folder of another model is an error that says
// so.
func (m Model) Head() (Head, error) {
	if m.Classifier() == "" {
		return Head{}, unsupported(m.Dir, configFile, "it is no cross-encoder: architectures is %q, which has no %s: an encoder is for embed", m.head.Classes, classifies)
	}
	h := Head{Labels: cmp.Or(len(m.head.Labels), m.head.Count, 2), Activation: Identity, Pooling: CLS, OneSegment: m.oneSegment}
	if m.defaultPrompt != "" {
		return Head{}, unsupported(m.Dir, promptsFile, "default_prompt_name puts %q before each query", m.defaultPrompt)
	}
	if h.Labels < 1 || h.Labels > 1000 {
		return Head{}, unsupported(m.Dir, configFile, "num_labels is %d", h.Labels)
	}
	if h.Labels == 1 {
		h.Activation = Sigmoid
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
	switch pool := cmp.Or(m.head.ModernPool, string(CLS)); Pooling(pool) {
	case CLS, Mean:
		h.Pooling = Pooling(pool)
	default:
		return Head{}, unsupported(m.Dir, configFile, "classifier_pooling is %q, only \"cls\" and \"mean\" are", pool)
	}
	if a := cmp.Or(m.head.ModernActive, "gelu"); a != "gelu" {
		return Head{}, unsupported(m.Dir, configFile, "classifier_activation is %q, only \"gelu\" is", a)
	}
	return h, nil
}

// relevances are the labels that stand for a passage that answers the query.
var relevances = []string{"relevant", "relevance", "positive", "true", "yes", "entailment"}

// relevance returns the logit whose label alone stands for relevance.
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
