package embed

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/encoder"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// What int8 may lose against float32 for minilm to take it by itself: the one-sided 95 % bounds of the
// paired differences.
const (
	worstAccuracy = .003
	worstNDCG     = .005
)

// TestQuality measures MiniLM's loss in int8 on the public sets beside the checkout: labels by the nearest
// neighbours, and passages for queries. It embeds two million tokens twice, so it runs only if RACFLOW_TEST_QUALITY
// is set: to 1, or to a folder that caches the vectors.
func TestQuality(t *testing.T) {
	keep := os.Getenv("RACFLOW_TEST_QUALITY")
	if keep == "" {
		t.Skip("RACFLOW_TEST_QUALITY is not set")
	}
	if keep == "1" {
		keep = t.TempDir()
	}
	m := &measurement{t: t, keep: keep, data: "../../../../shared/data", encoders: map[encoder.Precision]*encoder.Encoder{}}
	if _, err := os.Stat(m.data); err != nil {
		t.Skip("the data is not here: ", err)
	}
	for _, p := range []encoder.Precision{encoder.Float32, encoder.Int8} {
		e, err := encoder.Open(modelDir(t), encoder.Options{Precision: p, MiniLM: true})
		must.Do(t, err)
		m.encoders[p] = e
	}
	var right, gain []float64 // int8 less float32, for each item
	for _, set := range []struct{ name, tests string }{
		{"rage", "clinc_gold_test_public"}, {"clinc150", "test_public val"}, {"hwu64", "test_public val"},
		{"snips", "test_public val"}, {"trec", "test_public"}, {"dbpedia_classes", "test_public"},
	} {
		for test := range strings.FieldsSeq(set.tests) {
			right = append(right, m.accuracy(set.name, test)...)
		}
	}
	accuracy := m.bound("accuracy, all sets", right)
	gain = append(gain, m.ndcg("anthropic_codebases", "chunks", "queries_public")...)
	gain = append(gain, m.ndcg("scifact", "corpus", "queries_test_public")...)
	gain = append(gain, m.ndcg("scifact", "corpus", "queries_train")...)
	ndcg := m.bound("nDCG@10, all sets", gain)
	if accuracy < -worstAccuracy || ndcg < -worstNDCG {
		t.Errorf("int8 may lose %.4f of accuracy and %.4f of nDCG@10", -accuracy, -ndcg)
	}
}

type measurement struct {
	t          *testing.T
	keep, data string
	encoders   map[encoder.Precision]*encoder.Encoder
}

// accuracy returns, for each test item, whether its label is right in int8, minus the same in float32.
func (m *measurement) accuracy(set, test string) []float64 {
	train, items := m.rows(set, "train"), m.rows(set, test)
	var right [2][]float64
	for i, p := range []encoder.Precision{encoder.Float32, encoder.Int8} {
		near := m.nearest(p, texts(train), texts(items))
		for at, found := range near {
			votes := map[string]float64{}
			for _, f := range found {
				votes[train[f.at].label] += math.Exp(20 * float64(f.score))
			}
			best := ""
			for label, v := range votes {
				if best == "" || v > votes[best] || v == votes[best] && label < best {
					best = label
				}
			}
			right[i] = append(right[i], 0)
			if best == items[at].label {
				right[i][at] = 1
			}
		}
	}
	return m.difference(set+" "+test+", accuracy", right)
}

// ndcg returns, for each query, nDCG@10 in int8, minus nDCG@10 in float32.
func (m *measurement) ndcg(set, corpus, queries string) []float64 {
	passages, asked := m.lines(set, corpus), m.lines(set, queries)
	var all, questions []string
	for _, p := range passages {
		all = append(all, strings.TrimSpace(p.Title+" "+p.Text))
	}
	for _, q := range asked {
		questions = append(questions, q.Query)
	}
	var gains [2][]float64
	for i, p := range []encoder.Precision{encoder.Float32, encoder.Int8} {
		for at, found := range m.nearest(p, all, questions) {
			wanted := asked[at].Documents
			if asked[at].Gold != nil {
				wanted = slices.Concat(asked[at].Gold...)
			}
			gain, ideal := 0.0, 0.0
			for rank, f := range found {
				if slices.Contains(wanted, passages[f.at].ID) {
					gain += 1 / math.Log2(float64(rank+2))
				}
				if rank < len(wanted) {
					ideal += 1 / math.Log2(float64(rank+2))
				}
			}
			gains[i] = append(gains[i], gain/ideal)
		}
	}
	return m.difference(set+" "+queries+", nDCG@10", gains)
}

// difference prints both means and returns the differences.
func (m *measurement) difference(name string, of [2][]float64) []float64 {
	differences := slices.Clone(of[1])
	for i, v := range of[0] {
		differences[i] -= v
	}
	m.t.Logf("%s: float32 %.4f, int8 %.4f", name, mean(of[0]), mean(of[1]))
	m.bound(name, differences)
	return differences
}

// bound prints the mean of paired differences with its two-sided 95 % interval, and prints and
// returns the value that it exceeds with a confidence of 95 %, by the paired bootstrap (Efron and
// Tibshirani 1993, ch. 13).
func (m *measurement) bound(name string, differences []float64) float64 {
	random := rand.New(rand.NewPCG(20, 8))
	means := make([]float64, 4000)
	for i := range means {
		for range differences {
			means[i] += differences[random.IntN(len(differences))]
		}
		means[i] /= float64(len(differences))
	}
	slices.Sort(means)
	changed := 0
	for _, d := range differences {
		if d != 0 {
			changed++
		}
	}
	bound := means[len(means)/20]
	m.t.Logf("%s: difference %+.5f, 95 %% bound %+.5f, 95 %% interval %+.5f to %+.5f, %d of %d changed", name, mean(differences),
		bound, means[len(means)/40], means[len(means)-1-len(means)/40], changed, len(differences))
	return bound
}

type match struct {
	at    int
	score float32
}

// nearest returns the ten passages nearest to each query, the nearest first.
func (m *measurement) nearest(p encoder.Precision, passages, queries []string) [][]match {
	of, to := m.embed(p, passages), m.embed(p, queries)
	found := make([][]match, len(to))
	scores := make([]match, len(of))
	for i, q := range to {
		for at, v := range of {
			scores[at] = match{at, simd.Best().Dot(q, v)}
		}
		slices.SortFunc(scores, func(a, b match) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.at, b.at)) })
		found[i] = slices.Clone(scores[:10])
	}
	return found
}

// embed returns the vectors of texts, cached ones if there are any.
func (m *measurement) embed(p encoder.Precision, texts []string) [][]float32 {
	m.t.Helper()
	e := m.encoders[p]
	sum := sha256.New()
	for _, text := range append([]string{e.Fingerprint()}, texts...) {
		_, _ = fmt.Fprintln(sum, text)
	}
	file := filepath.Join(m.keep, fmt.Sprintf("%x", sum.Sum(nil)[:8]))
	values := make([]float32, len(texts)*e.Dim())
	if f, err := os.Open(file); err == nil {
		defer f.Close()
		must.Do(m.t, binary.Read(f, binary.LittleEndian, values))
		return slices.Collect(slices.Chunk(values, e.Dim()))
	}
	vectors, err := e.Encode(m.t.Context(), texts)
	must.Do(m.t, err)
	content, err := binary.Append(nil, binary.LittleEndian, slices.Concat(vectors...))
	if err == nil {
		err = os.WriteFile(file, content, 0o600)
	}
	must.Do(m.t, err)
	return vectors
}

type row struct{ text, label string }

func texts(rows []row) []string {
	all := make([]string, len(rows))
	for i, r := range rows {
		all[i] = r.text
	}
	return all
}

// rows reads a file of tab-separated columns.
func (m *measurement) rows(set, name string) (rows []row) {
	content, err := os.ReadFile(filepath.Join(m.data, set, name+".tsv"))
	must.Do(m.t, err)
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	header := strings.Split(lines[0], "\t")
	text, label := slices.Index(header, "text"), slices.Index(header, "label")
	for _, line := range lines[1:] {
		columns := strings.Split(line, "\t")
		rows = append(rows, row{columns[text], columns[label]})
	}
	return rows
}

type line struct {
	ID, Title, Text, Query string
	Documents              []string   `json:"doc_ids"`
	Gold                   [][]string `json:"gold"`
}

func (m *measurement) lines(set, name string) (lines []line) {
	f, err := os.Open(filepath.Join(m.data, set, name+".jsonl"))
	must.Do(m.t, err)
	defer f.Close()
	for decoder := json.NewDecoder(f); decoder.More(); {
		var l line
		must.Do(m.t, decoder.Decode(&l))
		lines = append(lines, l)
	}
	return lines
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// modelDir returns the folder of MiniLM, or skips the test where there is none.
func modelDir(t *testing.T) string {
	t.Helper()
	dir, err := sdk.ModelDir("minilm")
	if err != nil {
		t.Skip(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Skipf("no model in %s: put it there or set RACFLOW_MODELS", dir)
	}
	return dir
}
