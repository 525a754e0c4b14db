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

// This file is a voter: a linear support vector machine over the knowledge's vectors, with the words
// and letters of the texts beside them.
//
// There is a linear function for each label, the margin W·x, which is to be at least 1 on the label's
// rows and at most -1 on all others. The input x is the vector as the embedder gave it, the constant 1,
// and hashed TF-IDF features of words, word bigrams and character n-grams (those of the hashing
// embedder): what a sentence encoder takes for the same, such as numbers and names, tells labels apart
// here. Features are signed and hashed into buckets (Weinberger et al., "Feature hashing for large scale
// multitask learning", 2009). Buckets that one text alone has are not used, and of a text only its 256
// strongest features and first 2,048 bytes.
//
// Fit minimises half the squared weights, that of the constant counted from -1, plus the squared
// violations of the margins, by dual coordinate descent (Hsieh et al., "A dual coordinate descent method
// for large-scale linear SVM", ICML 2008, as in LIBLINEAR). It stops after a pass in which
// no margin was off by .1, after eight passes at the latest. The length of the features beside vectors
// of mean length 1 is one of two, that with which three-fold cross-validation on at most 2,000 rows makes
// the held-out labels likeliest; it stops once 200 have been held out. Rows whose label no other has
// are left out of that.
//
// The weight of a label is exp(a * margin), divided by the sum of those of all labels. The factor a changes
// no answer; it is the one that makes the held-out labels likeliest (temperature scaling: Guo et al., "On
// calibration of modern neural networks", 2017), with Platt's correction for few rows ("Probabilistic outputs
// for support vector machines", 1999). The probabilities that margins of a least squared violation stand for
// (Zhang, "Statistical behavior and consistency of classification methods based on convex risk minimization",
// Annals of Statistics 32, 2004) have half the calibration error where this voter is alone. But an election with them is
// surer of texts that belong to no label: it flags .675 and .670 of CLINC150's, in place of .740 and .710, with the rows of
// RAGE and of CLINC150.
//
// The strength of the penalty and the two lengths were chosen by folds of the training rows of
// seven public sets. A logistic regression on the same inputs had .9 points less on average
// (4.1 on DBpedia, up to 1.2 less and .6 more on the others) and took three times as long.
//
// Where labels are sets, the weight of a label is 1 / (1 + exp(-a * margin)), where a makes all held-out
// labels likeliest.
//
// # Bounds
//
// Rows without a label or a vector are left out. At most max_rows rows are learnt from,
// fewer where their vectors would take more than 256 MiB, if each took as much as the largest
// one, or where there are more than 33 million pairs of a row and a label: 33,554 rows of 1,000
// labels. Of more rows each label has those that come first by a hash of their id, as many for
// each as the bound allows, so that small labels stay whole; more labels than rows that fit are
// an error. Memory is bounded by that, by 2 KiB for the features of a text, by 64 MiB of inputs
// that are kept where examples are few, by the weights, labels times features and dimensions, 4 bytes each, and
// for each processor by 128 labels' weights and multipliers, one for each row. Of vectors that are mostly 0, as those of
// the embedder hashing, only the other numbers are kept, at 8 bytes each.
//
// Of 200,000 noisy rows of 150 labels, 65,536 taught a logistic regression as much as all did, and 32,768 less
// with vectors of the embedder hashing.
//
// Nothing depends on the clock, on the number of threads or on the order of rows: sums run
// in a fixed order, and the same rows and arguments give the same bytes on one kind of
// processor. Processors with other vector instructions round differently,
// so that probabilities differ in their last digits.
//
// # State
//
// The file weights in the state folder has the labels, the inverse document frequencies and
// the weights, with a version and a checksum. It is written whole and then renamed.
//
// The voter abstains on items without a vector, and where the knowledge has no labels. Its
// ballot has the 50 likeliest labels. An item that fits none of them has low margins, so the
// ballot's distance is (1 - the best margin)/2.

const (
	textBytes = 2048 // of a text that are read
	strongest = 256  // features of a text that are kept
	textNorm  = .7   // length of the features beside a vector of length 1
	minTexts  = 2    // a feature that fewer have tells nothing about others
)

// feature is one coordinate of a text: its bucket and, once weighed, the model's input.
type feature = simd.Term

// appendInputs adds the numbers of a vector that are not 0, and the constant input.
func appendInputs(to []feature, vector []float32) []feature {
	for i, x := range vector {
		if x != 0 {
			to = append(to, feature{Row: int32(i), Factor: x})
		}
	}
	return append(to, feature{Row: int32(len(vector)), Factor: 1})
}

// vocabulary says what the features of a text mean to a model.
type vocabulary struct {
	idf   []float32 // by bucket; 0: not used
	input []int32   // the same: the model's input
	used  int
}

// beginning is what of a text is read.
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

// weigh gives features their inverse document frequency, keeps the strongest, and divides
// by their length. It leaves all as they are.
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

// keepStrongest returns the strongest features in the order in which they come; of those that are as strong, the first.
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

// newVocabulary numbers the buckets that are used, as inputs from first on.
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

// What the rows that are learnt from may take.
const (
	maxFloats = 64 << 20 // of vectors, 4 bytes each
	maxPairs  = 32 << 20 // of a row and a label; they bound the time
)

// linearRow is a row that is learnt from.
type linearRow struct {
	rank        uint64 // random, and the same for the same row
	label, text string
	vector      []float32
	inputs      []feature // of the vector, in its place
	description bool
}

// rows is a sample of the knowledge. Of each label it has the rows that rank first, as
// many for each as the bound allows, whatever the order in which rows come.
type rows struct {
	max       int
	dimension int
	widest    int // how many floats the longest row takes
	count     int
	byLabel   map[string][]linearRow // or set of labels
	form      sdk.LabelForm
}

func wrongDimension(got, want int) error {
	return sdk.Invalid(fmt.Errorf("a vector has %d dimensions, others have %d: build the knowledge anew", got, want))
}

// add takes a row, unless it has no label or no vector.
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

// bound is how many rows fit. It never grows, so that no row is missed that a later bound has room for.
func (r *rows) bound() int {
	return min(r.max, maxFloats/r.widest, maxPairs/width(len(r.byLabel)))
}

// trim leaves each label as many rows, up to the bound in all.
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

// before orders rows by rank. Texts and vectors stand for the ids of rows that have the
// same one: equal rows may change places.
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
	dir      string // for what Fit has learnt; empty: there is none
	analyzer support.Analyzer
	model    atomic.Pointer[model] // nil: not fitted yet
}

// Sample implements sdk.Sampler. Without labels to choose from, or without a vector, it
// abstains.
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

// empty reports whether a vector is missing, or that of a text with nothing to embed.
func empty(vector []float32) bool {
	norm := 0.0
	for _, x := range vector {
		norm += math.Abs(float64(x))
	}
	return norm == 0
}

const most = 50 // answers of a ballot

// least is the probability below which an answer is left out: with hundreds of labels most of a ballot is such dust. What is
// not left out has no less, since an answer of weight 0 would not count.
const least = 1e-6

// ballot has the labels with their probabilities, best first. Its distance is the smaller the greater
// the best score is.
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

// header stands before the numbers of a state.
type header struct {
	Labels    []string `json:"labels"`
	Dimension int      `json:"dimension"`
	Features  int      `json:"features"`
	Scale     float32  `json:"scale"`
	Many      bool     `json:"many,omitempty"`
}

// writeState writes the model into a folder: the version, the header's length and JSON,
// the idf of each bucket, the weights by input, and a checksum
// of all that. Numbers are little-endian, weights float32.
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

// readState reads the model of a folder; nil: it has none.
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
	// The checksum holds: the rest is as writeState wrote it.
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
