package linear

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/hashed"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/analyze"
)

type config struct {
	Features int `config:"features" default:"16384" min:"0" max:"262144" doc:"Into how many features words and letters are hashed; 0: learn from the vectors alone."`
	MaxRows  int `config:"max_rows" default:"100000" min:"100" max:"1000000" doc:"How many rows are learnt from at most; of more, a sample that treats labels alike."`
}

// Stage describes the voter.
func Stage() sdk.Stage {
	return sdk.SampleStage("linear", "Votes by a logistic regression over vectors, words and letters, learnt from the knowledge.",
		open, sdk.Revision("2"), sdk.Reads(sdk.ColumnText, sdk.ColumnVector), sdk.Fits(sdk.ColumnText, sdk.ColumnVector))
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Sampler, error) {
	analyzer, err := analyze.Named("standard")
	if err != nil {
		return nil, err
	}
	v := &voter{config: c, dir: setup.StateDir, analyzer: analyzer}
	m, err := readState(v.dir)
	if err == nil && m != nil {
		v.model.Store(m)
	}
	return v, err
}

type voter struct {
	config
	dir      string // for what Fit has learnt; empty: there is none
	analyzer analyze.Analyzer
	model    atomic.Pointer[model] // nil: not fitted yet
}

// Sample implements sdk.Sampler. Without labels to choose from, or without a vector, it
// abstains.
func (v *voter) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples, failed := make([][]sdk.Sample, len(b.Items)), sdk.RowErrors{}
	m := v.model.Load()
	if m == nil || len(m.labels) == 0 {
		return samples, nil
	}
	x, s := &hashed.Extractor{Analyzer: v.analyzer}, newScratch()
	for i, item := range b.Items {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if empty(item.Vector) {
			continue
		}
		if len(item.Vector) != m.dimension {
			failed[i] = wrongDimension(len(item.Vector), m.dimension)
			continue
		}
		e := example{features: append(inputsOf(item.Vector), m.weigh(hashText(x, item.Text, len(m.idf)))...)}
		samples[i] = []sdk.Sample{{Answers: m.answers(s, e)}}
	}
	if len(failed) > 0 {
		return samples, failed
	}
	return samples, nil
}

// empty reports whether a vector is missing, or that of a text with nothing to embed.
func empty(vector []float32) bool {
	norm := 0.0
	for _, x := range vector {
		norm += math.Abs(float64(x))
	}
	return norm == 0
}

const (
	most  = 50   // answers of a ballot
	least = 1e-6 // the probability below which an answer is left out
)

// answers are the labels with their probabilities, best first.
func (m *model) answers(s *scratch, e example) []sdk.Answer {
	p := s.row(m.width)
	m.score(p, []example{e}, s)
	p = p[:len(m.labels)]
	simd.Best().Softmax(p, m.scale)
	order := best(p, most)
	answers := make([]sdk.Answer, 0, len(order))
	for _, i := range order {
		if p[i] >= least {
			answers = append(answers, sdk.Answer{Label: m.labels[i], Weight: float64(p[i])})
		}
	}
	return answers
}
