package table

import (
	"math"
	"testing"

	"github.com/racflow/racflow/sdk/support"
)

var standard = func() support.Analyzer {
	a, err := support.NamedAnalyzer("standard")
	if err != nil {
		panic(err)
	}
	return a
}()

func TestCountWords(t *testing.T) {
	c := CountWords(standard, "Green", "green tea, and tea")
	if c.Length != 5 || len(c.Words) != 3 || c.count(wordNumber("green")) != 2 || c.count(wordNumber("tea")) != 2 || c.count(wordNumber("milk")) != 0 {
		t.Errorf("%+v", c)
	}
	if c := CountWords(standard, "", "?!"); c.Length != 0 || len(c.Words) != 0 {
		t.Errorf("no words: %+v", c)
	}
}

// The inner product of the two vectors is the formula, worked out by hand for
// two entries of lengths 3 and 1.
func TestInnerProductIsBM25(t *testing.T) {
	text := CountWords(standard, "", "green tea tea")
	terms := Terms(standard, "tea green tea milk", 2, map[uint32]uint32{wordNumber("tea"): 2, wordNumber("green"): 1})
	if len(terms) != 3 {
		t.Fatalf("%d terms, want 3: milk is in no entry", len(terms))
	}
	f := NewFormula(1.2, 0.75, 2)
	k := 1.2 * (1 - 0.75 + 0.75*3/2.0)
	want := 2*math.Log1p(0.5/2.5)*2/(2+k) + math.Ln2*1/(1+k)
	if got := float64(f.Score(terms, text)); math.Abs(got-want) > 1e-6 {
		t.Errorf("score %v, want %v", got, want)
	}
	document, query := f.Document(text), BM25Query(terms)
	var product float64
	for i := range query.Len() {
		word, weight, _ := query.Get(i)
		for j := range document.Len() {
			if position, value, _ := document.Get(j); position == word {
				product += float64(weight) * float64(value)
			}
		}
	}
	if math.Abs(product-want) > 1e-6 {
		t.Errorf("inner product %v, want %v", product, want)
	}
	if empty := f.Document(Counts{}); empty.Len() != 1 {
		t.Errorf("a text without words has %d dimensions, and a server takes no empty vector", empty.Len())
	}
}
