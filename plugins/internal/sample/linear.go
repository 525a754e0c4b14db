package sample

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/embed"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file is a voter: a linear support vector machine over the vectors of the knowledge, and over words and letters
// of the texts.
//
// Each label has a linear function, the margin W·x. It should be at least 1 on the label's rows and at most -1 on all
// others. The input x is the embedder's vector, the constant 1, and hashed TF-IDF features of words, word bigrams and
// character n-grams (the features of the hashing embedder). These features tell labels apart that differ in numbers
// and names, which a sentence encoder does not distinguish. Features are signed and hashed into buckets (Weinberger
// et al., "Feature hashing for large scale multitask learning", 2009). Buckets that occur in one text only are not
// used. Of each text, only the first 2,048 bytes and the 256 strongest features count.
//
// Fit minimises half the squared weights plus the squared violations of the margins. The constant's weight is counted
// from -1. It uses dual coordinate descent (Hsieh et al., "A dual coordinate descent method for large-scale linear
// SVM", ICML 2008, as in LIBLINEAR). It stops after a pass without a violation of .1, after eight passes at the
// latest. Vectors have mean length 1. The features have one of two lengths: the one that makes held-out labels
// likelier in three-fold cross-validation on at most 2,000 rows. Cross-validation stops after 200 held-out rows, and
// leaves out rows with a label that no other row has.
//
// The weight of a label is exp(a * margin), divided by the sum over all labels. The factor a changes no answer. It
// makes the held-out labels likeliest (temperature scaling: Guo et al., "On calibration of modern neural networks",
// 2017), with Platt's correction for few rows ("Probabilistic outputs for support vector machines", 1999). Another
// way to turn margins of a least squared violation into probabilities (Zhang, "Statistical behavior and consistency
// of classification methods based on convex risk minimization", Annals of Statistics 32, 2004) has half the
// calibration error where this voter is alone. But an election with it is surer of texts that belong to no label: it
// flags .675 and .670 of CLINC150's instead of .740 and .710, with the rows of RAGE and of CLINC150.
//
// The strength of the penalty and the two lengths were chosen on folds of the training rows of seven public sets. A
// logistic regression on the same inputs had .9 points less on average (4.1 on DBpedia, up to 1.2 less and .6 more on
// the others) and took three times as long.
//
// Where labels are sets, the weight of a label is 1 / (1 + exp(-a * margin)); a makes all held-out labels likeliest.
//
// # Bounds
//
// Rows without a label or a vector are left out. The voter learns from at most max_rows rows. Two more bounds apply:
// the vectors may take 256 MiB, if each took as much as the largest; and there may be 33 million pairs of a row and a
// label, which is 33,554 rows of 1,000 labels. If there are more rows, each label keeps the same number of rows, the
// first ones by a hash of their id, so that small labels stay whole. More labels than allowed rows are an error.
// Memory also goes to 2 KiB of features for each text, 64 MiB of inputs where examples are few, and the weights:
// labels times features and dimensions, 4 bytes each. Each processor needs 128 labels' weights, and a multiplier for
// each row and label. If vectors are mostly 0, as those of the embedder hashing, only the other numbers are stored,
// at 8 bytes each.
//
// Of 200,000 noisy rows of 150 labels, 65,536 taught a logistic regression as much as all did. 32,768 taught it less,
// with vectors of the embedder hashing.
//
// Nothing depends on the clock, the number of threads or the order of rows: sums run in a fixed order. The same rows
// and arguments give the same bytes on one kind of processor. Processors with other vector instructions round
// differently, so probabilities differ in their last digits.
//
// # State
//
// The file weights in the state folder has the labels, the inverse document frequencies and the weights, with a
// version and a checksum. It is written whole and then renamed.
//
// The voter abstains on items without a vector, and where the knowledge has no labels. Its ballot has the 50
// likeliest labels. An item that fits no label has low margins, so the ballot's distance is (1 - the best margin)/2.

const (
	textBytes = 2048 // how much of a text is read
	strongest = 256  // how many features of a text are kept
	textNorm  = .7   // length of the features beside a vector of length 1
	minTexts  = 2    // a feature of fewer texts says nothing about other texts
)

// feature is one coordinate of a text: its bucket and, once weighed, the model's input.
type feature = simd.Term

// appendInputs appends the non-zero numbers of a vector, and the constant input.
func appendInputs(to []feature, vector []float32) []feature {
	for i, x := range vector {
		if x != 0 {
			to = append(to, feature{Row: int32(i), Factor: x})
		}
	}
	return append(to, feature{Row: int32(len(vector)), Factor: 1})
}

// vocabulary maps features of texts to inputs of a model.
type vocabulary struct {
	idf   []float32 // by bucket; 0: not used
	input []int32   // by bucket: the model's input
	used  int
}

// beginning returns the part of a text that is read.
func beginning(text string) string {
	if len(text) <= textBytes {
		return text
	}
	end := textBytes
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.Clone(text[:end])
}

// hashText returns the features of a text by bucket, before they are weighed.
func hashText(x *embed.HashedFeatures, text string, buckets int) []feature {
	if buckets == 0 {
		return nil
	}
	var all []feature
	x.Each(beginning(text), func(hash uint64, weight float32, times int) {
		value := weight * float32(math.Sqrt(float64(times)))
		if hash>>63 == 1 {
			value = -value
		}
		all = append(all, feature{Row: int32(hash % uint64(buckets)), Factor: value})
	})
	slices.SortFunc(all, func(a, b feature) int {
		if a.Row == b.Row {
			return cmp.Compare(a.Factor, b.Factor)
		}
		return int(a.Row) - int(b.Row)
	})
	n := 0
	for _, f := range all {
		if n > 0 && all[n-1].Row == f.Row {
			all[n-1].Factor += f.Factor
			continue
		}
		all[n] = f
		n++
	}
	return all[:n]
}

// weigh multiplies features by their inverse document frequency, keeps the strongest, and divides by their length. It
// does not change its argument.
func (v *vocabulary) weigh(all []feature) []feature {
	used := 0
	for _, f := range all {
		if v.idf[f.Row] != 0 {
			used++
		}
	}
	weighed, sum := make([]feature, 0, used), 0.0
	for _, f := range all {
		if value := f.Factor * v.idf[f.Row]; value != 0 {
			weighed = append(weighed, feature{Row: v.input[f.Row], Factor: value})
		}
	}
	if len(weighed) > strongest {
		weighed = keepStrongest(weighed)
	}
	for _, f := range weighed {
		sum += float64(f.Factor) * float64(f.Factor)
	}
	for i := range weighed {
		weighed[i].Factor = float32(float64(weighed[i].Factor) * textNorm / math.Sqrt(sum))
	}
	return weighed
}

// keepStrongest returns the strongest features in their order; among equally strong ones it prefers the first.
func keepStrongest(all []feature) []feature {
	size := func(f feature) float32 { return max(f.Factor, -f.Factor) }
	sizes := make([]float32, len(all))
	for i, f := range all {
		sizes[i] = size(f)
	}
	slices.Sort(sizes)
	least := sizes[len(sizes)-strongest]
	above, _ := slices.BinarySearch(sizes, math.Nextafter32(least, math.MaxFloat32))
	ties := strongest - (len(sizes) - above)
	kept := make([]feature, 0, strongest)
	for _, f := range all {
		if x := size(f); x > least || x == least && ties > 0 {
			if kept = append(kept, f); x == least {
				ties--
			}
		}
	}
	return kept
}

// newVocabulary numbers the used buckets as inputs, starting at first.
func newVocabulary(idf []float32, first int) vocabulary {
	v := vocabulary{idf: idf, input: make([]int32, len(idf))}
	for i, x := range idf {
		if x != 0 {
			v.input[i] = int32(first + v.used)
			v.used++
		}
	}
	return v
}

// Bounds of the rows to learn from.
const (
	maxFloats = 64 << 20 // of vectors, 4 bytes each
	maxPairs  = 32 << 20 // of a row and a label; bounds the time
)

// linearRow is a row to learn from.
type linearRow struct {
	rank        uint64 // pseudo-random, always the same for a row
	label, text string
	vector      []float32
	inputs      []feature // of the vector; replaces vector
	description bool
}

// rows is a sample of the knowledge. It keeps the same number of rows for each label, as far as the bound allows:
// those with the lowest ranks. The order in which rows arrive makes no difference.
type rows struct {
	max       int
	dimension int
	widest    int // how many floats the largest row takes
	count     int
	byLabel   map[string][]linearRow // by label, or by set of labels
	form      sdk.LabelForm
}

func wrongDimension(got, want int) error {
	return sdk.Invalid(fmt.Errorf("a vector has %d dimensions, others have %d: build the knowledge anew", got, want))
}

// add adds a row, unless it has no label or no vector.
func (r *rows) add(t *sdk.TrainingRow) error {
	if t.Label == "" || empty(t.Vector) {
		return nil
	}
	if r.dimension == 0 {
		r.dimension = len(t.Vector)
	}
	if len(t.Vector) != r.dimension {
		return wrongDimension(len(t.Vector), r.dimension)
	}
	label := strings.Clone(t.Label)
	one := linearRow{rank: support.StratifiedRank(t.ID), label: label, text: beginning(strings.Clone(t.Text)), description: t.Description}
	if inputs := appendInputs(nil, t.Vector); len(inputs) <= len(t.Vector)/2 {
		one.inputs = slices.Clone(inputs)
		r.widest = max(r.widest, 2*len(inputs))
	} else {
		one.vector = slices.Clone(t.Vector)
		r.widest = max(r.widest, len(t.Vector))
	}
	r.byLabel[label] = append(r.byLabel[label], one)
	if r.count++; r.count > r.max+r.max/4 {
		r.trim()
	}
	return nil
}

// bound is how many rows fit. It never grows, so rows that trim has removed would not fit later, either.
func (r *rows) bound() int {
	return min(r.max, maxFloats/r.widest, maxPairs/width(len(r.byLabel)))
}

// trim keeps the same number of rows for each label, up to the bound in all.
func (r *rows) trim() {
	bound := r.bound()
	sizes := make([]int, 0, len(r.byLabel))
	for _, of := range r.byLabel {
		sizes = append(sizes, len(of))
	}
	each := support.EachStratified(sizes, bound)
	r.count = 0
	for label, of := range r.byLabel {
		if len(of) > each {
			slices.SortFunc(of, before)
			of = slices.Clone(of[:each])
			r.byLabel[label] = of
		}
		r.count += len(of)
	}
}

// before orders rows by rank, and rows of the same rank by label, text and vector, since there are no ids. Equal rows
// may change places.
func before(a, b linearRow) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.label, b.label), cmp.Compare(a.text, b.text), slices.Compare(a.vector, b.vector),
		slices.CompareFunc(a.inputs, b.inputs, func(x, y feature) int { return cmp.Or(cmp.Compare(x.Row, y.Row), cmp.Compare(x.Factor, y.Factor)) }))
}

// sorted returns the labels, and the rows by rank.
func (r *rows) sorted() (labels []string, all []linearRow, err error) {
	if n := len(r.byLabel); n == 0 {
		return nil, nil, nil
	} else if bound := r.bound(); n > bound {
		return nil, nil, sdk.Invalid(fmt.Errorf("the knowledge has %d labels, and there is memory for %d rows only: give fewer labels, or raise max_rows where it is less", n, bound))
	}
	r.trim()
	defer clear(r.byLabel)
	for _, set := range slices.Sorted(maps.Keys(r.byLabel)) {
		labels = append(labels, r.form.Split(set)...)
		all = append(all, r.byLabel[set]...)
	}
	slices.Sort(labels)
	slices.SortFunc(all, before)
	return slices.Compact(labels), all, nil
}

type linearConfig struct {
	Features int `config:"features" default:"16384" min:"0" max:"262144" doc:"Into how many features words and letters are hashed; 0: learn from the vectors alone."`
	MaxRows  int `config:"max_rows" default:"65536" min:"100" max:"1000000" doc:"How many rows are learnt from at most; of more, a sample that treats labels alike."`
}

// Linear describes the voter.
func Linear() sdk.Stage {
	return sdk.SampleStage("linear", "Votes by a support vector machine over vectors, words and letters, learnt from the knowledge.",
		openLinear, sdk.Revision("6"), sdk.Reads(sdk.ColumnText, sdk.ColumnVector), sdk.Fits(sdk.ColumnText, sdk.ColumnVector))
}

func openLinear(_ context.Context, setup sdk.Setup, c linearConfig) (sdk.Sampler, error) {
	analyzer, err := support.NamedAnalyzer("standard")
	if err != nil {
		return nil, err
	}
	v := &linearVoter{linearConfig: c, form: setup.Labels, dir: setup.StateDir, analyzer: analyzer}
	m, err := readState(v.dir)
	if err == nil && m != nil {
		v.model.Store(m)
	}
	return v, err
}

type linearVoter struct {
	linearConfig
	form     sdk.LabelForm
	dir      string // for what Fit has learned; empty: there is none
	analyzer support.Analyzer
	model    atomic.Pointer[model] // nil: not fitted yet
}

// Sample implements sdk.Sampler. It abstains where there are no labels or no vector.
func (v *linearVoter) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples, failed := make([][]sdk.Sample, len(b.Items)), sdk.RowErrors{}
	m := v.model.Load()
	if m == nil || len(m.labels) == 0 {
		return samples, nil
	}
	x := &embed.HashedFeatures{Analyzer: v.analyzer}
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
		samples[i] = []sdk.Sample{m.ballot(example{vector: item.Vector, features: m.weigh(hashText(x, item.Text, len(m.idf)))})}
	}
	if len(failed) > 0 {
		return samples, failed
	}
	return samples, nil
}

// empty reports whether a vector is missing, or all zero as for a text with nothing to embed.
func empty(vector []float32) bool {
	norm := 0.0
	for _, x := range vector {
		norm += math.Abs(float64(x))
	}
	return norm == 0
}

const most = 50 // answers of a ballot

// least is the probability below which an answer is left out: with hundreds of labels most answers of a ballot are
// that unlikely. No answer that is kept has weight 0, which would not count.
const least = 1e-6

// ballot returns the labels with their probabilities, best first. Its distance falls as the best score rises.
func (m *model) ballot(e example) sdk.Sample {
	p := make([]float32, m.width)
	m.score(p, e.terms(nil))
	p = p[:len(m.labels)]
	distance := min(max((1-float64(slices.Max(p)))/2, 1e-3), 1)
	m.probabilities(p, m.scale)
	order := best(p, most)
	answers := make([]sdk.Answer, 0, len(order))
	for _, i := range order {
		if p[i] >= least {
			answers = append(answers, sdk.Answer{Label: m.labels[i], Weight: float64(p[i])})
		}
	}
	return sdk.Sample{Answers: answers, Distance: distance}
}

const (
	stateFile = "weights"
	version   = "racflow linear 3\n"
)

// header precedes the numbers of a state.
type header struct {
	Labels    []string `json:"labels"`
	Dimension int      `json:"dimension"`
	Features  int      `json:"features"`
	Scale     float32  `json:"scale"`
	Many      bool     `json:"many,omitempty"`
}

// writeState writes the model into a folder: the version, the header's length and JSON, the idf of each bucket, the
// weights by input, and a checksum of everything before. Numbers are little-endian, weights float32.
func (m *model) writeState(dir string) error {
	head, err := json.Marshal(header{m.labels, m.dimension, len(m.idf), m.scale, m.many})
	if err != nil {
		return err
	}
	state := binary.LittleEndian.AppendUint32([]byte(version), uint32(len(head)))
	state = append(state, head...)
	state = appendFloats(state, m.idf)
	for at := 0; at < len(m.weights); at += m.width {
		state = appendFloats(state, m.weights[at:][:len(m.labels)])
	}
	sum := sha256.Sum256(state)
	file := filepath.Join(dir, stateFile)
	if err := os.WriteFile(file+".new", append(state, sum[:]...), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func appendFloats(to []byte, all []float32) []byte {
	for _, x := range all {
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(x))
	}
	return to
}

// readState reads the model of a folder; nil: the folder has none.
func readState(dir string) (*model, error) {
	if dir == "" {
		return nil, nil
	}
	file := filepath.Join(dir, stateFile)
	state, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := parse(state)
	if err != nil {
		return nil, fmt.Errorf("what was learnt cannot be read: %w; remove the folder %s, and it is learnt anew", err, dir)
	}
	return m, nil
}

func parse(state []byte) (*model, error) {
	body, sum := state[:max(len(state)-sha256.Size, 0)], state[max(len(state)-sha256.Size, 0):]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:]) {
		return nil, errors.New("the file is damaged")
	}
	if !bytes.HasPrefix(body, []byte(version)) {
		return nil, errors.New("the file is of another version of racflow")
	}
	// The checksum is right, so the rest is as writeState wrote it.
	body = body[len(version):]
	size := binary.LittleEndian.Uint32(body)
	var h header
	if err := json.Unmarshal(body[4:4+size], &h); err != nil {
		return nil, err
	}
	body = body[4+size:]
	idf := make([]float32, h.Features)
	body = takeFloats(idf, body)
	m := newModel(h.Labels, h.Dimension, idf)
	m.scale, m.many = h.Scale, h.Many
	for at := 0; at < len(m.weights); at += m.width {
		body = takeFloats(m.weights[at:][:len(m.labels)], body)
	}
	return m, nil
}

func takeFloats(to []float32, from []byte) (rest []byte) {
	for i := range to {
		to[i] = math.Float32frombits(binary.LittleEndian.Uint32(from[4*i:]))
	}
	return from[4*len(to):]
}
