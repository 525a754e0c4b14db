package milvus

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/analyze"
)

var standard = func() analyze.Analyzer {
	a, err := analyze.Named("standard")
	if err != nil {
		panic(err)
	}
	return a
}()

func TestCountWords(t *testing.T) {
	c := countWords(standard, "Green", "green tea, and tea")
	if c.length != 5 || len(c.words) != 3 || c.pack().count(wordNumber("green")) != 2 || c.pack().count(wordNumber("tea")) != 2 || c.pack().count(wordNumber("milk")) != 0 {
		t.Errorf("%+v", c)
	}
	if c := countWords(standard, "", "?!"); c.length != 0 || len(c.words) != 0 {
		t.Errorf("no words: %+v", c)
	}
}

func TestDetails(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "some": "a b a c", "many": strings.Repeat("one two three ", 4000)} {
		want := countWords(standard, "", text)
		got, err := decodeDetails(details{hash: []byte(name), average: 12.5, id: name, label: "l", counts: want.pack()}.encode())
		if err != nil || string(got.hash) != name || got.average != 12.5 || !got.whole || got.id != name || got.label != "l" || got.counts.length != want.length || !slices.Equal(got.counts.all().words, want.words) {
			t.Errorf("%s: %v, %+v instead of %+v", name, err, got, want)
		}
	}
	var distinct strings.Builder
	for i := range 20000 {
		distinct.WriteRune(rune(0x4e00 + i))
	}
	c := countWords(standard, "", distinct.String())
	text := details{hash: []byte{1}, counts: c.pack()}.encode()
	if d, err := decodeDetails(text); len(c.words) < 19000 || len(text) > maxBytes || err != nil || d.whole || d.counts.words != nil || len(d.hash) != 1 {
		t.Errorf("%d words are %d bytes, %v", len(c.words), len(text), err)
	}
	whole := details{counts: counts{words: []count{{1, 300}}, length: 300}.pack()}.encode()
	for _, damaged := range []string{"*", "", "gA", "AAAA", "AQEBAQEB", whole[:len(whole)-1]} {
		if d, err := decodeDetails(damaged); err == nil {
			t.Errorf("%q gives %+v", damaged, d)
		}
	}
}

// The inner product of the two vectors is the formula, worked out by hand for
// two entries of lengths 3 and 1.
func TestInnerProductIsBM25(t *testing.T) {
	s := &state{record: record{Entries: 2, Words: 4}, df: map[uint32]uint32{wordNumber("tea"): 2, wordNumber("green"): 1}}
	text := countWords(standard, "", "green tea tea")
	terms := s.queryTerms(standard, "tea green tea milk")
	if len(terms) != 3 {
		t.Fatalf("%d terms, want 3: milk is in no entry", len(terms))
	}
	f := newBM25(1.2, 0.75, s.record.average())
	k := 1.2 * (1 - 0.75 + 0.75*3/2.0)
	want := 2*math.Log1p(0.5/2.5)*2/(2+k) + math.Ln2*1/(1+k)
	if got := float64(f.score(terms, text.pack())); math.Abs(got-want) > 1e-6 {
		t.Errorf("score %v, want %v", got, want)
	}
	document, query := f.document(text), queryVector(terms)
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
	if empty := f.document(counts{}); empty.Len() != 1 {
		t.Errorf("a text without words has %d dimensions, and a server takes no empty vector", empty.Len())
	}
}
