package transformer

// Family is a model's architecture, by the name that configurations give it (model_type).
type Family string

// The families.
const (
	BERT       Family = "bert"        // Devlin et al. 2018, arXiv:1810.04805
	DistilBERT Family = "distilbert"  // Sanh et al. 2019, arXiv:1910.01108
	RoBERTa    Family = "roberta"     // Liu et al. 2019, arXiv:1907.11692
	XLMRoBERTa Family = "xlm-roberta" // Conneau et al. 2019, arXiv:1911.02116
	MPNet      Family = "mpnet"       // Song et al. 2020, arXiv:2004.09297
	ModernBERT Family = "modernbert"  // Warner et al. 2024, arXiv:2412.13663
)

// Families lists all families.
func Families() []Family {
	return []Family{BERT, DistilBERT, RoBERTa, XLMRoBERTa, MPNet, ModernBERT}
}

// Config is the shape of a model. Vectors depend on every field.
type Config struct {
	Family       Family
	Hidden       int // width of the hidden states
	Layers       int
	Heads        int
	Intermediate int // width inside the feed-forward sublayer
	Positions    int // rows of the position embeddings; ModernBERT has none, but a limit
	Epsilon      float64
	Padding      int // RoBERTa: the token that has no position; positions begin after its id

	Buckets int // MPNet: of relative positions

	// ModernBERT: layers attend to tokens at most Window away, but those in Global, which
	// attend to all. Positions are told by rotations, with a base for each kind of layer.
	Window                  int
	Global                  []bool
	GlobalTheta, LocalTheta float64
}

// firstPosition is the row of the position embeddings for the first token.
func (c Config) firstPosition() int {
	switch c.Family {
	case RoBERTa, XLMRoBERTa, MPNet:
		return c.Padding + 1
	}
	return 0
}

// MaxTokens is how many tokens of a text have a position.
func (c Config) MaxTokens() int { return c.Positions - c.firstPosition() }

// HeadSize is the number of columns of an attention head.
func (c Config) HeadSize() int { return c.Hidden / c.Heads }

// window is how far a token of a layer sees, 0 where it sees all.
func (c Config) window(layer int) int {
	if c.Family != ModernBERT || c.Global[layer] {
		return 0
	}
	return c.Window
}
