package learned

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

type config struct {
	Weights map[string]float64 `config:"weights" min:"0" max:"1e6" example:"{ neighbours = 3.1, llm = 1.4 }" doc:"The log-odds that each voter's full vote adds to a label, by the name of its sample block; 1 if not given, and less where several are not. Empty: they are learnt from the voters' answers on rows of the knowledge."`
	Leader  string             `config:"leader" doc:"The voter whose answer stands wherever it has one, so that the others decide only the rest; empty: none. It is learnt with the weights, and given with them."`

	Calibration map[string]float64 `config:"calibration" min:"-100" max:"100" example:"{ slope = 0.9, offset = -0.1 }" doc:"What makes a confidence of the answer's probability: its log-odds times slope, plus offset. Empty: the confidence is the probability. It is learnt with the weights, and given with them."`
}

// Stage describes the election.
func Stage() sdk.Stage {
	return sdk.ElectStage("learned", "Weighs the voters by a logistic regression on their answers; the likeliest label wins, and its probability is the confidence.",
		open, sdk.Revision("2"), sdk.Reads(sdk.ColumnLabels), sdk.Fits(sdk.ColumnSamples), sdk.Validates(check), sdk.Example("weights = { neighbours = 3.1, llm = 1.4 }"))
}

func check(c config) error {
	learnt := errors.New("give weights, too: without them it is learnt")
	switch {
	case c.Leader != "" && len(c.Weights) == 0:
		return &sdk.ArgumentError{Argument: "leader", Err: learnt}
	case len(c.Calibration) > 0 && len(c.Weights) == 0:
		return &sdk.ArgumentError{Argument: "calibration", Err: learnt}
	}
	_, err := calibrationOf(c.Calibration)
	return err
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Elector, error) {
	e := &election{memory: sync.Pool{New: func() any { return &reader{} }}}
	e.Elector = ballot.NewElection(setup.Log, "weights", c.Weights, e.elect)
	if len(c.Weights) > 0 {
		calibration, err := calibrationOf(c.Calibration)
		e.model.Store(&model{Weights: c.Weights, Leader: c.Leader, Calibration: calibration})
		return e, err
	}
	m, err := readState(setup.StateDir)
	if err == nil {
		e.model.Store(m)
	}
	return &fitter{election: e, dir: setup.StateDir}, err
}

// election elects by a model. One that has yet to learn it is a fitter.
type election struct {
	sdk.Elector // item by item, with elect
	model       atomic.Pointer[model]
	memory      sync.Pool // of *reader
}

// Elect implements sdk.Elector.
func (e *election) Elect(ctx context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	if len(b.Items) > 0 && len(b.Labels) == 0 {
		return nil, sdk.Invalid(errors.New(`there are no labels: this election weighs votes for the labels of a knowledge; for answers that are texts write use = "first" or use = "majority"`))
	}
	return e.Elector.Elect(ctx, b)
}

// Close warns of weights of voters that there are not.
func (e *election) Close() error { return e.Elector.(io.Closer).Close() }

func (e *election) elect(samples []sdk.Sample, labels int) sdk.Verdict {
	r, m := e.memory.Get().(*reader), e.model.Load()
	defer e.memory.Put(r)
	r.forget()
	v := r.read(samples, m.Weights)
	weights, leader := m.of(r.voters)
	r.scores = v.score(r.scores, weights)
	best := v.winner(r.scores, leader)
	if best < 0 {
		return ballot.Weighed(nil, samples)
	}
	verdict := sdk.Verdict{Answer: r.labels[best], Agreement: r.agreement(best)}
	if verdict.Answer == "" {
		verdict.Reason = ballot.NoLabelFits
	}
	v.softmax(r.scores, labels)
	verdict.Confidence = m.Calibration.confidence(r.scores[best])
	return verdict
}

const (
	// prior is the weight that a fit leaves a voter that it learns nothing of.
	prior = 0.5
	// unknown is the weight of a voter that no fit has seen. Several of them weigh as their
	// square root: they err together. See the package's documentation for how it was chosen.
	unknown = 1
)

// of returns the weights of voters, and the position of the leader among them; -1: it is
// not one of them.
func (m *model) of(voters []string) (weights []float64, leader int) {
	weights = make([]float64, len(voters))
	var others []int
	for i, name := range voters {
		w, ok := m.Weights[name]
		if weights[i] = w; !ok {
			others = append(others, i)
		}
	}
	for _, i := range others {
		weights[i] = unknown / math.Sqrt(float64(len(others)))
	}
	return weights, slices.Index(voters, m.Leader)
}
