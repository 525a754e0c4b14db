package elect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// This file is an election that learns a weight for each voter. It is a conditional logit over the voters' ballots
// (McFadden, "Conditional logit analysis of qualitative choice behavior", 1974).
//
// A label's score is the sum, over the voters, of weight times strength. The strength is 1 for a label that has all
// of a voter's ballot, and 0 for a label that the ballot does not name. Between them, the strength is the label's
// share of the ballot (see package ballot) for voters with single answers. For voters with distributions it is the
// logarithm of the share:
//
//	log(1 + share/0.001) / log(1 + 1/0.001)
//
// A ballot is a distribution if one of its samples has more than one answer. A voter that abstains, or has no
// accepted answer, adds nothing to any label. A label's probability is exp(score) divided by the sum of exp(score)
// over all labels of the knowledge. The sum includes the empty label if a voter says that no label fits. The
// likeliest label wins; a tie goes to the label that was voted for first, in the order of the voters in the file. The
// confidence is the winner's calibrated probability. The agreement is its share of the mean ballot, as in the other
// elections. So a weight is the log-odds that a voter's full vote adds to a label. A weight is never negative: the
// opposite of a bad voter's answer is no evidence.
//
// # Learning
//
// Without the argument weights, the election learns from the votes on labelled rows. Fit maximises the likelihood of
// their labels by Newton's method. A ridge penalty pulls each weight towards its prior: 0.5/2 times the squared
// distance, and 0.125/2 for voters with single answers. The known labels are the labels of the rows and of the
// accepted answers on them. Rows without a label show what out-of-scope texts look like (learned_unknown.go). Rows on
// which a voter has no vote do not count for it. The order of the rows makes no difference. 10,000 rows with 150
// labels and three statistical voters take about two seconds, and 16 bytes for each answer.
//
// Voters that err together make the likeliest label overconfident. So the log-odds of the answer are multiplied by a
// slope, and an offset is added. Both are fitted to the answers of five-fold cross-validation. Fewer than 20 rows
// calibrate nothing. Where voters are missing, the others have weights and a calibration of their own
// (learned_missing.go).
//
// The file weights.json in the state folder holds the learned model. People can read and change it, and copy its
// numbers into the arguments weights, calibration and unknown.
//
// # Voters without a learned weight
//
// A voter may have no weight although others have one, such as a language model that was not asked about rows of the
// knowledge. Its weight is then 2, or log(labels) if that is less, divided by the slope of the calibration if that is
// above 1. Each of m such voters has this weight divided by sqrt(m), since they err together. So these voters decide
// where the others are in doubt. If no voter has a weight, each of m voters has 3.5 / m^0.25. In a fit, this prior
// also applies to voters with single answers. It counts an eighth of a row: a few rows show that a model is weak, or
// strong.
//
// The rule was chosen on recorded answers of nine models to 600 rows, with right answers spoiled and errors corrected
// at random. There were sets of 3, 6, 12 and 58 labels; 4, 10, 30 and 100 rows to learn from; and one, two and four
// models beside neighbours and prototype, which know 1, 3 or 15 examples of each label. The table lists by how many
// points the models change the accuracy, by how often the models are right. The last column is the worst set for a
// model that is never right:
//
//	models right on            0      20      50      80     100 %   worst
//	3.5 / m^0.25            -16.0    -2.7    11.7    23.9    29.2    -85
//	2 / m^0.5                -6.0     0.6     9.8    18.6    23.2    -65
//	and at most log(labels)  -5.3     0.8     9.7    18.3    22.7    -32
//	and divided by slope     -4.9     0.9     9.3    17.5    21.9    -29
//	half of that, m^0.25     -2.4     1.3     6.6    12.6    16.0    -20
//
// If a model that is never right has answers to 10 of the learned rows, it costs 1.7 points; with answers to 40 rows,
// 0.5. With the earlier, higher prior for voters with single answers, it cost 4.7 and 1.3.
//
// This election cannot choose among free texts, because there is no list of possible texts.

type learnedConfig struct {
	Weights     map[string]float64 `config:"weights" min:"0" max:"1e6" example:"{ neighbours = 3.1, llm = 1.4 }" doc:"The log-odds that each voter's full vote adds to a label, by the name of its sample block; at most 2 if not given, and less where several are not. Empty: they are learnt from the voters' answers on rows of the knowledge."`
	Calibration map[string]float64 `config:"calibration" min:"-100" max:"100" example:"{ slope = 0.9, offset = -0.1 }" doc:"What makes a confidence of the answer's probability: its log-odds times slope, plus offset; and where voters are missing, slope without llm, offset without llm and weight of linear without llm and knn; most of LABEL bounds the confidence in it. Empty: the confidence is the probability. It is learnt with the weights, and given with them."`
	AnswerAt    float64            `config:"answer_at" default:"0" min:"0" below:"1" doc:"Where labels have levels: the confidence that a node needs to be the answer; the deepest that has it is, and where none has, the likeliest of the first level. 0: the answer is the likeliest label."`
	Precision   float64            `config:"precision" default:"0" min:"0" below:"1" doc:"Where labels are sets: how often a label of an answer is to be right, on the rows that are learnt from. 0: the labels are answered whose choice has the best F1."`
	RaiseCost   float64            `config:"raise_cost" default:"0.0008" min:"0" max:"0.2" doc:"Where labels are described and have no example: the share of the right answers with other labels, on the rows that are learnt from, that may go to them instead. More finds more of their texts."`
	Labels      int                `config:"labels" default:"0" min:"0" max:"100000" doc:"How many of the likeliest labels results list with their probabilities, where labels have no levels. Without levels or sets, those of all labels add up to 1, and that of the answer is its confidence. Sets list those of their answer in any case."`
	Unknown     map[string]float64 `config:"unknown" min:"-1e6" max:"1e6" example:"{ offset = -8.5, odds = 0.4, \"distance of neighbours\" = 6.1 }" doc:"What makes a probability that the text belongs to no label: log-odds of offset, minus odds times those of the confidence, plus the distance of each voter times its number; and what makes a confidence of that one and its complement, slope of confidence and offset of confidence; with bounds of confidence = 1 it is at most that the text is known. Empty: it is not estimated. It is learnt with the weights, and given with them."`
}

// Learned describes the election.
func Learned() sdk.Stage {
	return sdk.ElectStage("learned", "Weighs the voters by a logistic regression on their answers; the likeliest label wins, and its probability is the confidence.",
		openLearned, sdk.Revision("6"), sdk.Reads(sdk.ColumnLabels), sdk.Fits(sdk.ColumnSamples), sdk.Validates(check), sdk.Example("weights = { neighbours = 3.1, llm = 1.4 }"))
}

func check(c learnedConfig) error {
	learnt := errors.New("give weights, too: without them it is learnt")
	switch {
	case len(c.Calibration) > 0 && len(c.Weights) == 0:
		return &sdk.ArgumentError{Argument: "calibration", Err: learnt}
	case len(c.Unknown) > 0 && len(c.Weights) == 0:
		return &sdk.ArgumentError{Argument: "unknown", Err: learnt}
	}
	err := new(model).calibrate(c.Calibration)
	if _, ofSets := setsOf(c.Weights, c.Calibration); ofSets == nil {
		err = nil
	}
	_, unknown := detectorOf(c.Unknown)
	return errors.Join(unknown, err)
}

func openLearned(_ context.Context, setup sdk.Setup, c learnedConfig) (sdk.Elector, error) {
	e := &election{form: setup.Labels, at: c.AnswerAt, precision: c.Precision, raiseCost: c.RaiseCost, shown: c.Labels, memory: sync.Pool{New: func() any { return &reader{sets: setup.Labels.Many} }}}
	e.Elector = ballot.NewElection(setup.Log, "weights", c.Weights, e.elect)
	if len(c.Weights) > 0 {
		m := &model{present: present{Weights: c.Weights}}
		var err error
		if e.form.Many {
			m.Sets, err = setsOf(c.Weights, c.Calibration)
		} else {
			err = m.calibrate(c.Calibration)
		}
		if err == nil {
			m.OutOfScope, err = detectorOf(c.Unknown)
		}
		e.use(m)
		return e, err
	}
	m, err := readState(setup.StateDir)
	if err == nil {
		e.use(m)
	}
	return &fitter{election: e, dir: setup.StateDir, log: setup.Log}, err
}

// election elects by a model. If the model has yet to be learned, the election is part of a fitter.
type election struct {
	sdk.Elector // calls elect for each item
	form        sdk.LabelForm
	at          float64 // the confidence that a node of a tree needs
	precision   float64 // that the labels in a set should reach; 0: no requirement
	raiseCost   float64 // the share of right answers that labels without examples may cost
	shown       int     // the least number of labels in a verdict, likeliest first
	model       atomic.Pointer[model]
	alone       atomic.Pointer[map[string]bool] // labels without examples; they are the same in every batch
	memory      sync.Pool                       // of *reader
}

// use makes m the model of the election.
func (e *election) use(m *model) {
	if m.Sets != nil {
		m.Sets.strict = e.precision > 0
	}
	e.model.Store(m.prepare())
}

// Elect implements sdk.Elector.
func (e *election) Elect(ctx context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	if len(b.Items) > 0 && len(b.Labels) == 0 {
		return nil, sdk.Invalid(errors.New(`there are no labels: this election weighs votes for the labels of a knowledge; for answers that are texts write use = "first" or use = "majority"`))
	}
	if e.alone.Load() == nil {
		alone := aloneOf(b.Described)
		e.alone.Store(&alone)
	}
	return e.Elector.Elect(ctx, b)
}

// Close warns of weights for voters that do not exist.
func (e *election) Close() error { return e.Elector.(io.Closer).Close() }

func (e *election) elect(samples []sdk.Sample, labels int) sdk.Verdict {
	r, m := e.memory.Get().(*reader), e.model.Load()
	defer e.memory.Put(r)
	if e.form.Many {
		return cmp.Or(m.Sets, unlearnt).elect(r, samples, e.shown)
	}
	verdict := r.elect(samples, m, labels, *e.alone.Load())
	m.OutOfScope.judge(&verdict, samples)
	if e.form.Levels != "" {
		m.climb(&verdict, r, e.form, e.at)
	}
	if m.bounded(&verdict, r); e.form.Levels == "" && e.shown > 0 {
		verdict.Labels = r.likeliest(verdict, labels, e.shown)
	}
	return verdict
}

// elect decides on one item. Labels is the number of labels; alone are the labels without an example.
func (r *reader) elect(samples []sdk.Sample, m *model, labels int, alone map[string]bool) sdk.Verdict {
	r.forget()
	v := r.read(samples, nil)
	of := m.without(r.missing(m.voters))
	if slices.ContainsFunc(r.voters, func(name string) bool { w, ok := of.Weights[name]; return ok && w == 0 }) {
		r.forget()
		v = r.read(samples, of.Weights)
	}
	r.scores = v.score(r.scores, of.of(r.voters, labels))
	r.raise(alone, m.Raise)
	best := v.winner(r.scores)
	if best < 0 {
		return ballot.Weighed(nil, samples)
	}
	verdict := sdk.Verdict{Answer: r.labels[best], Agreement: r.agreement(best)}
	if verdict.Answer == "" {
		verdict.Reason = ballot.NoLabelFits
	}
	v.softmax(r.scores, labels)
	verdict.Confidence = of.Calibration.confidence(unraised(r.scores[best], alone[verdict.Answer], m.Raise))
	return verdict
}

// likeliest returns the likeliest labels, at most shown of them, with their probabilities. The answer's probability
// is its confidence. To reach it, all probabilities are raised to the same power and divided by their sum, which
// keeps their order ("temperature scaling", Guo et al. 2017). A confidence below 1/labels is raised to 1/labels.
func (r *reader) likeliest(v sdk.Verdict, labels, shown int) []sdk.LabelConfidence {
	best := slices.Index(r.labels, v.Answer)
	if best < 0 || v.Answer == "" {
		return nil
	}
	sum := 0.0
	var all []sdk.LabelConfidence
	for i, label := range r.labels {
		if sum += r.scores[i]; label != "" {
			all = append(all, sdk.LabelConfidence{Label: label, Confidence: math.Log(r.scores[i] / r.scores[best])})
		}
	}
	others := float64(max(labels-len(all), 0)) // labels without a vote; all are equally likely
	other := math.Log(max((1-sum)/max(others, 1), math.SmallestNonzeroFloat64) / r.scores[best])
	total := func(power float64) float64 {
		sum := 0.0
		if others > 0 {
			sum = others * math.Exp(power*other)
		}
		for _, l := range all {
			sum += math.Exp(power * l.Confidence)
		}
		return sum
	}
	low, high := 0.0, 64.0
	for range 40 {
		if power := (low + high) / 2; 1/total(power) < v.Confidence {
			low = power
		} else {
			high = power
		}
	}
	sum = total(high)
	for i := range all {
		all[i].Confidence = math.Exp(high*all[i].Confidence) / sum
	}
	slices.SortStableFunc(all, func(a, b sdk.LabelConfidence) int { return cmp.Compare(b.Confidence, a.Confidence) })
	if at := slices.IndexFunc(all, func(l sdk.LabelConfidence) bool { return l.Label == v.Answer }); at > 0 { // others tie with it
		all[0], all[at] = all[at], all[0]
	}
	return all[:min(shown, len(all))]
}

// prior is the weight of each of m voters if no voter has a learned weight. Voters err together, so m voters count as
// much as m^0.75 independent ones.
func prior(m int) float64 { return 3.5 / math.Sqrt(math.Sqrt(float64(m))) }

// unmeasured is the prior weight of each of m voters with few or no answers on labelled rows, beside voters with
// many. It is chosen to limit the damage of a voter that is never right.
func unmeasured(m, labels int) float64 {
	return min(2, math.Log(float64(max(labels, 2)))) / math.Sqrt(float64(m))
}

// of returns the weights of the given voters; labels is the number of labels.
func (p *present) of(voters []string, labels int) []float64 {
	weights := make([]float64, len(voters))
	unknown := 0
	for i, name := range voters {
		w, ok := p.Weights[name]
		if weights[i] = w; !ok {
			weights[i] = math.NaN()
			unknown++
		}
	}
	for i, w := range weights {
		if math.IsNaN(w) {
			if weights[i] = prior(unknown); len(p.Weights) > 0 {
				weights[i] = unmeasured(unknown, labels) / max(p.Calibration.Slope, 1)
			}
		}
	}
	return weights
}

// tie is the score difference up to which labels tie, so that rounding decides nothing.
const tie = 1e-9

// score returns the score of each label: its log-odds against a label without votes.
// It reuses scores.
func (v votes) score(scores, weights []float64) []float64 {
	scores = append(scores[:0], make([]float64, v.labels)...)
	for _, x := range v.all {
		scores[x.label] += weights[x.voter] * x.strength
	}
	return scores
}

// winner is the label with the greatest score. Among labels that tie, the one that was voted for first wins. -1: no
// label has a positive score.
func (v votes) winner(scores []float64) int {
	best := -1
	for label, s := range scores {
		if s > 0 && (best < 0 || s > scores[best]+tie) {
			best = label
		}
	}
	return best
}

// softmax turns scores into probabilities. Labels is the number of all labels; labels without a vote have score 0. It
// returns the logarithm of the divisor.
func (v votes) softmax(scores []float64, labels int) float64 {
	most := 0.0
	for _, s := range scores {
		most = max(most, s)
	}
	sum := float64(max(labels-(v.labels-v.none), 0)) * math.Exp(-most)
	for i, s := range scores {
		scores[i] = math.Exp(s - most)
		sum += scores[i]
	}
	for i := range scores {
		scores[i] /= sum
	}
	return most + math.Log(sum)
}

const (
	stateFile = "weights.json"
	mostly    = 1e6 // the greatest weight
)

// model holds what an election has learned of its voters. It is the content of the state.
type model struct {
	Rows   int `json:"rows"`   // number of rows that it was learned from
	Labels int `json:"labels"` // number of labels of these rows and of the votes on them
	present
	Without map[string]present `json:"without,omitempty"` // by the names of the missing voters
	Alone   map[string]float64 `json:"alone"`             // the share of the rows that each voter is right on
	Levels  []calibration      `json:"levels,omitempty"`  // of nodes of a tree, from the top down
	Sets    *sets              `json:"sets,omitempty"`    // where labels are sets; replaces the other fields
	Raise   float64            `json:"raise,omitempty"`   // added to the scores of labels without examples
	Most    map[string]float64 `json:"most,omitempty"`    // bounds the confidence in labels with one example

	OutOfScope *scopeDetector `json:"unknown,omitempty"` // nil: unknown texts cannot be recognised

	voters   []string // sorted
	absences []absence
}

// writeState writes the model into a folder, where people can read and change it.
func (m *model) writeState(dir string) error {
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, stateFile)
	if err := os.WriteFile(file+".new", append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// readState reads the model of a folder. It returns an empty model if the folder has none.
func readState(dir string) (*model, error) {
	m := &model{present: present{Calibration: uncalibrated}}
	if dir == "" {
		return m, nil
	}
	file := filepath.Join(dir, stateFile)
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err = d.Decode(m)
	for voter, w := range m.Weights {
		if err == nil && !(w >= 0 && w <= mostly) {
			err = fmt.Errorf("the weight of %s is %v, not 0 to 1e6", voter, w)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("what was learnt cannot be read: %w; mend %s, or remove its folder, and it is learnt anew", err, file)
	}
	return m, nil
}

// least is a small share. Below it, a label of a distribution is about as unlikely as a label without a share.
const least = 0.001

// strength is the weight of a share of a voter's ballot, from 0 for no share to 1 for the whole ballot. For a
// distribution it is the log share: doubling the share adds as much at 1 % as at 40 %.
func strength(share float64, distribution bool) float64 {
	if distribution {
		return math.Log1p(share/least) / math.Log1p(1/least)
	}
	return share
}

// vote is a label in a voter's ballot. Label and voter are positions in lists of a reader.
type vote struct {
	label, voter int32
	distribution bool // the voter gave a distribution
	strength     float64
}

// votes are the votes on one item. Labels are numbered in the order of their first vote, and each voter's votes are
// sorted by that number.
type votes struct {
	all    []vote
	labels int // number of labels with votes, including the empty label
	none   int // 1 if the empty label is among them
}

// reader turns samples into votes. It numbers voters as they come and keeps their numbers until forget is called.
type reader struct {
	sets   bool // a voter's shares need not add up to 1
	voters []string
	labels []string // of the last item
	index  map[string]int32
	cast   []cast // by voter
	all    []vote
	scores []float64 // by label
}

// cast is what a voter gave for an item.
type cast struct {
	samples      int // number of samples with an accepted answer
	distribution bool
	shares       []float64 // by label; labels behind the end have share 0
}

// forget drops the voters' numbers, so that the next item does not depend on earlier ones.
func (r *reader) forget() { r.voters, r.cast = r.voters[:0], r.cast[:0] }

// read returns the votes on an item, without votes of voters with weight 0. They are valid until the next call.
func (r *reader) read(samples []sdk.Sample, weights map[string]float64) votes {
	r.labels, r.all = r.labels[:0], r.all[:0]
	if r.index == nil {
		r.index = map[string]int32{}
	}
	clear(r.index)
	for i := range r.cast {
		r.cast[i] = cast{shares: r.cast[i].shares[:0]}
	}
	for i := range samples {
		if w, ok := weights[samples[i].Voter]; !ok || w > 0 {
			r.add(&samples[i])
		}
	}
	var v votes
	for voter := range r.cast {
		c := &r.cast[voter]
		for label, sum := range c.shares {
			if sum > 0 {
				c.shares[label] = sum / float64(c.samples)
				r.all = append(r.all, vote{int32(label), int32(voter), c.distribution, strength(c.shares[label], c.distribution)})
			}
		}
	}
	v.all, v.labels = r.all, len(r.labels)
	if _, ok := r.index[""]; ok {
		v.none = 1
	}
	return v
}

// add adds a sample to its voter's ballot, where it has an accepted answer.
func (r *reader) add(s *sdk.Sample) {
	sum := 0.0
	for _, a := range s.Answers {
		if counts(a) {
			sum += a.Weight
		}
	}
	if sum == 0 {
		return
	}
	if r.sets {
		sum = 1
	}
	voter := slices.Index(r.voters, s.Voter)
	if voter < 0 {
		voter = len(r.voters)
		r.voters, r.cast = append(r.voters, s.Voter), slices.Grow(r.cast, 1)[:voter+1]
		r.cast[voter] = cast{shares: r.cast[voter].shares[:0]} // reuse the memory of forgotten casts
	}
	c := &r.cast[voter]
	c.samples++
	c.distribution = c.distribution || len(s.Answers) > 1
	for _, a := range s.Answers {
		if !counts(a) {
			continue
		}
		label, ok := r.index[a.Label]
		if !ok {
			label = int32(len(r.labels))
			r.labels, r.index[a.Label] = append(r.labels, a.Label), label
		}
		for int(label) >= len(c.shares) {
			c.shares = append(c.shares, 0)
		}
		c.shares[label] += a.Weight / sum
	}
}

func counts(a sdk.Answer) bool { return a.Accepted && a.Weight > 0 && !math.IsInf(a.Weight, 0) }

// agreement is a label's share of the mean ballot.
func (r *reader) agreement(label int) float64 {
	sum, n := 0.0, 0
	for _, c := range r.cast {
		if c.samples == 0 {
			continue
		}
		n++
		if label < len(c.shares) {
			sum += c.shares[label]
		}
	}
	return min(sum/float64(n), 1)
}
