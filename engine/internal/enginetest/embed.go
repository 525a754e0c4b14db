package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io/fs"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
	"github.com/racflow/racflow/sdk/support"
)

const dimension = 256

type none struct{}

// Hashing is an embedder that learns how many texts have each word: TF-IDF vectors of
// hashed words.
func Hashing() sdk.Stage {
	return sdk.EmbedStage("hashing", "Hashed words, rare ones counting more.", func(_ context.Context, setup sdk.Setup, _ none) (sdk.Embedder, error) {
		e := &hashing{Words: map[string]int{}, file: filepath.Join(setup.StateDir, "words.json")}
		raw, err := os.ReadFile(e.file)
		if errors.Is(err, fs.ErrNotExist) {
			return e, nil
		}
		return e, errors.Join(err, json.Unmarshal(raw, e))
	}, sdk.Fits(sdk.ColumnText))
}

type hashing struct {
	Texts int
	Words map[string]int // in how many texts they are
	file  string         // that keeps both
}

func (*hashing) Dimension() int { return dimension }

func (e *hashing) Fit(_ context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	for batch, err := range rows {
		if err != nil {
			return err
		}
		for _, row := range batch {
			e.Texts++
			for word := range wordsOf(row.Text) {
				e.Words[word]++
			}
		}
	}
	raw, err := json.Marshal(e)
	return errors.Join(err, os.WriteFile(e.file, raw, 0o600))
}

func (e *hashing) Embed(_ context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		v, square := make([]float32, dimension), 0.0
		words := wordsOf(text)
		for _, word := range slices.Sorted(maps.Keys(words)) { // the same sum each time
			h := fnv.New32a()
			h.Write([]byte(word))
			v[h.Sum32()%dimension] += float32(words[word]) * float32(1+math.Log(float64(e.Texts+1)/float64(e.Words[word]+1)))
		}
		for _, x := range v {
			square += float64(x) * float64(x)
		}
		for j := range v {
			v[j] /= float32(max(math.Sqrt(square), math.SmallestNonzeroFloat32))
		}
		vectors[i] = v
	}
	return vectors, nil
}

// wordsOf counts the words of a text.
func wordsOf(text string) map[string]int {
	a, err := support.NamedAnalyzer("standard")
	if err != nil {
		return nil
	}
	words := map[string]int{}
	for _, word := range a.Append(nil, text) {
		words[word]++
	}
	return words
}

// Witnessed is a row with the votes on it that an election learnt from.
type Witnessed struct {
	ID, Label string
	Samples   []sdk.Sample
	HeldOut   bool
}

// WitnessFile is where Witness keeps, in its state_dir, all that it learnt from.
const WitnessFile = "votes.json"

// Witness is an election that learns from votes: it keeps them, and elects as Soft does.
// It has resolved that a voter weighs as much as the share of the rows that it was right
// on, and twice that on rows held out of the knowledge.
func Witness() sdk.Stage {
	return sdk.ElectStage("witness", "Keeps the votes that it learns from.", func(_ context.Context, setup sdk.Setup, w weights) (sdk.Elector, error) {
		soft := election(func(samples []sdk.Sample) []sdk.Answer { return ballot.Mean(samples, w.Weights) })
		if len(w.Weights) > 0 {
			return soft, nil
		}
		return &witness{soft, filepath.Join(setup.StateDir, WitnessFile)}, nil
	}, sdk.Fits(sdk.ColumnSamples), sdk.Reads(sdk.ColumnLabels))
}

type witness struct {
	election
	file string
}

func (w *witness) Fit(_ context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	all := []Witnessed{}
	for batch, err := range rows {
		if err != nil {
			return err
		}
		for _, row := range batch {
			all = append(all, Witnessed{row.ID, row.Label, row.Samples, row.HeldOut})
		}
	}
	raw, err := json.Marshal(all)
	return errors.Join(err, os.WriteFile(w.file, raw, 0o600))
}

// Resolved implements sdk.Resolver.
func (w *witness) Resolved() map[string]any {
	var rows []Witnessed
	raw, err := os.ReadFile(w.file)
	if err != nil || json.Unmarshal(raw, &rows) != nil {
		return nil // it has learnt nothing yet
	}
	weights := map[string]float64{}
	for _, row := range rows {
		right := 1 / float64(len(rows))
		if row.HeldOut {
			right *= 2
		}
		for _, s := range row.Samples {
			label, ok := ballot.Best(s)
			if weights[s.Voter] += 0; ok && label == row.Label {
				weights[s.Voter] += right
			}
		}
	}
	return map[string]any{"weights": weights}
}
