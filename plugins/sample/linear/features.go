package linear

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/hashed"
	"github.com/racflow/racflow/plugins/internal/simd"
)

const (
	textBytes = 2048 // of a text that are read
	strongest = 256  // features of a text that are kept
	textNorm  = .7   // length of the features beside a vector of length 1
	minTexts  = 2    // a feature that fewer have tells nothing about others
)

// feature is one coordinate of a text: its bucket and, once weighed, the model's input.
type feature = simd.Term

// mostlyZero is how many numbers a vector has at least for each that is not 0, to be worked
// on as inputs.
const mostlyZero = 8

// inputsOf returns the numbers of a vector that are not 0, and the constant input. A sum over
// them has the bits of the one over all: both kinds of products add in the order of inputs.
func inputsOf(vector []float32) (inputs []feature) {
	for i, x := range vector {
		if x != 0 {
			inputs = append(inputs, feature{Row: int32(i), Factor: x})
		}
	}
	return append(slices.Clip(inputs), feature{Row: int32(len(vector)), Factor: 1})
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
func hashText(x *hashed.Extractor, text string, buckets int) []feature {
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
	slices.SortStableFunc(all, func(a, b feature) int { return cmp.Compare(a.Row, b.Row) })
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
	var weighed []feature
	sum := 0.0
	for _, f := range all {
		if value := f.Factor * v.idf[f.Row]; value != 0 {
			weighed = append(weighed, feature{Row: v.input[f.Row], Factor: value})
		}
	}
	if len(weighed) > strongest {
		slices.SortStableFunc(weighed, func(a, b feature) int {
			return cmp.Compare(math.Abs(float64(b.Factor)), math.Abs(float64(a.Factor)))
		})
		weighed = weighed[:strongest]
	}
	for _, f := range weighed {
		sum += float64(f.Factor) * float64(f.Factor)
	}
	for i := range weighed {
		weighed[i].Factor = float32(float64(weighed[i].Factor) * textNorm / math.Sqrt(sum))
	}
	return weighed
}

// learnIDF returns the inverse document frequencies of buckets, as scikit-learn smooths
// them.
func learnIDF(texts []example, buckets int) []float32 {
	df := make([]int, buckets)
	for _, e := range texts {
		for _, f := range e.features {
			df[f.Row]++
		}
	}
	idf := make([]float32, buckets)
	for i, n := range df {
		if n >= minTexts {
			idf[i] = float32(1 + math.Log(float64(len(texts)+1)/float64(n+1)))
		}
	}
	return idf
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
