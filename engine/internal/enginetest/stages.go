package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
	"github.com/racflow/racflow/sdk/sdktest"
	"github.com/racflow/racflow/sdk/wire"
)

// Alphabet is an embedder that learns nothing: a text is the direction of how often it has each
// letter.
func Alphabet() sdk.Stage {
	return sdk.EmbedStage("alphabet", "How often a text has each letter.", func(context.Context, sdk.Setup, none) (sdk.Embedder, error) { return alphabet{}, nil })
}

type alphabet struct{}

func (alphabet) Dimension() int { return 26 }

func (alphabet) Embed(_ context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	all := make([][]float32, len(texts))
	for i, text := range texts {
		all[i] = AlphabetOf(text)
	}
	return all, nil
}

// mirroredStage is Alphabet, from the other end of the alphabet where a text is a query.
func mirroredStage() sdk.Stage {
	return sdk.EmbedStage("mirrored", "How often a text has each letter; of queries, the opposite one.", func(context.Context, sdk.Setup, none) (sdk.Embedder, error) { return mirrored{}, nil })
}

type mirrored struct{ alphabet }

func (m mirrored) Embed(ctx context.Context, role sdk.Role, texts []string) ([][]float32, error) {
	all, err := m.alphabet.Embed(ctx, role, texts)
	for _, v := range all {
		if role == sdk.RoleQuery {
			slices.Reverse(v)
		}
	}
	return all, err
}

// AlphabetOf is the vector that Alphabet makes of a text.
func AlphabetOf(text string) []float32 {
	v, square := make([]float32, 26), 0.0
	for _, r := range text {
		if 'a' <= r && r <= 'z' {
			v[r-'a']++
		}
	}
	for _, x := range v {
		square += float64(x * x)
	}
	for i := range v {
		v[i] /= float32(max(math.Sqrt(square), math.SmallestNonzeroFloat32))
	}
	return v
}

// prompter writes the prompt of an item.
type prompter func(item sdk.Item, labels []string) []sdk.Prompt

func (p prompter) Prompt(_ context.Context, b sdk.Batch) ([][]sdk.Prompt, error) {
	prompts := make([][]sdk.Prompt, len(b.Items))
	for i, item := range b.Items {
		prompts[i] = p(item, b.Labels)
	}
	return prompts, nil
}

type passages struct {
	Passages int `config:"passages" default:"20" doc:"Most passages of a prompt."`
}

// answer is a prompt: a question with numbered passages, which the answer cites. Of a
// knowledge that is given as a whole it shows all.
func answer() sdk.Stage {
	return sdk.PromptStage("answer", "Asks a question about passages.", func(_ context.Context, _ sdk.Setup, c passages) (sdk.Prompter, error) {
		return prompter(func(item sdk.Item, _ []string) []sdk.Prompt {
			shown, whole := item.Candidates, true
			for _, c := range shown {
				whole = whole && math.IsNaN(float64(c.Dense)) && math.IsNaN(float64(c.Lexical))
			}
			if !whole {
				shown = shown[:min(c.Passages, len(shown))]
			}
			if len(shown) == 0 {
				return nil
			}
			p, text := sdk.Prompt{None: "The passages do not answer this.", Passages: []string{}}, strings.Builder{}
			for i, c := range shown {
				fmt.Fprintf(&text, "[%d] %s\n", i+1, c.Text)
				p.Passages = append(p.Passages, c.ID)
			}
			p.Messages = []sdk.Message{
				{Role: sdk.MessageSystem, Text: "Answer from the passages.", Shared: true},
				{Role: sdk.MessageUser, Text: text.String(), Shared: whole},
				{Role: sdk.MessageUser, Text: item.Text},
			}
			return []sdk.Prompt{p}
		}), nil
	}, sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates, sdk.ColumnCandidateTexts))
}

type choice struct {
	None string `config:"none" doc:"The answer that no label fits."`
}

// chat is a prompt: a question with the labels of the knowledge.
func chat() sdk.Stage {
	return sdk.PromptStage("chat", "Asks for a label.", func(_ context.Context, _ sdk.Setup, c choice) (sdk.Prompter, error) {
		return prompter(func(item sdk.Item, labels []string) []sdk.Prompt {
			return []sdk.Prompt{{Text: item.Text, Labels: labels, None: c.None, Fields: []string{sdk.LabelProperty}}}
		}), nil
	}, sdk.Reads(sdk.ColumnText, sdk.ColumnLabels))
}

// Stages are all stages of this package. The store keeps its collections in memory,
// by Setup.StateDir, for as long as the result is held.
func Stages() []sdk.Stage {
	return []sdk.Stage{Hashing(), mirroredStage(), Memory(), neighbours(), prototype(), Words(), majority(), soft(), first(), weighted(), Witness(), answer(), chat()}
}

// Catalog offers stages to a pipeline file. It is a pipeline.Catalog.
type Catalog []sdk.Stage

// Stage returns the stage of a kind with a name.
func (c Catalog) Stage(kind sdk.Kind, use string) (sdk.Stage, bool) {
	i := slices.IndexFunc(c, func(s sdk.Stage) bool { return s.Kind == kind && s.Name == use })
	if i < 0 {
		return sdk.Stage{}, false
	}
	return c[i], true
}

// Uses returns the names of all stages of a kind.
func (c Catalog) Uses(kind sdk.Kind) []string {
	var uses []string
	for _, s := range c {
		if s.Kind == kind {
			uses = append(uses, s.Name)
		}
	}
	return uses
}

// Process is an open stage, as the engine sees one that runs as a process.
type Process struct{ *wire.Stage }

// Fingerprint says nothing: all stages of a test are of one version.
func (Process) Fingerprint() string { return "" }

// Open opens a stage behind the wire. It is closed with the test.
func Open(t testing.TB, stage sdk.Stage, setup sdk.Setup, config string) (Process, error) {
	t.Helper()
	opened, err := sdktest.Open(t, stage, setup, config)
	return Process{opened}, err
}

// voter votes for the labels of candidates, those with a higher score counting more.
type voter func(sdk.Item) (candidates []sdk.Candidate, score func(sdk.Candidate) float32)

func (v voter) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		candidates, score := v(item)
		scores := make([]float32, len(candidates))
		for j, c := range candidates {
			scores[j] = score(c)
		}
		var votes ballot.Tally
		for j, weight := range ballot.Softmax(scores, 15) {
			if candidates[j].Label != "" {
				votes.Add(candidates[j].Label, weight)
			}
		}
		if answers := votes.Shares(); len(answers) > 0 {
			samples[i] = []sdk.Sample{{Answers: answers}}
		}
	}
	return samples, nil
}

func voterStage(name, doc string, v voter, reads sdk.Column) sdk.Stage {
	return sdk.SampleStage(name, doc, func(context.Context, sdk.Setup, none) (sdk.Sampler, error) { return v, nil }, sdk.Reads(reads))
}

// neighbours is a voter: all candidates by their scores.
func neighbours() sdk.Stage {
	return voterStage("neighbours", "Votes by the labels of the candidates.", func(item sdk.Item) ([]sdk.Candidate, func(sdk.Candidate) float32) {
		return item.Candidates, func(c sdk.Candidate) float32 { return c.Score }
	}, sdk.ColumnCandidates)
}

// prototype is a voter: all centroids of labels by their cosines.
func prototype() sdk.Stage {
	return voterStage("prototype", "Votes by the centroids of labels.", func(item sdk.Item) ([]sdk.Candidate, func(sdk.Candidate) float32) {
		return item.Prototypes, func(c sdk.Candidate) float32 { return c.Dense }
	}, sdk.ColumnPrototypes)
}

type weights struct {
	Weights map[string]float64 `config:"weights" doc:"What a voter counts, by the name of its block."`
}

// election makes verdicts of the shares that labels have of the votes on an item.
type election func([]sdk.Sample) []sdk.Answer

func (e election) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	verdicts := make([]sdk.Verdict, len(b.Items))
	for i, item := range b.Items {
		verdicts[i] = ballot.Weighed(e(item.Samples), item.Samples)
	}
	return verdicts, nil
}

// majority is an election: the best accepted answer of each sample is a vote.
func majority() sdk.Stage {
	return sdk.ElectStage("majority", "Counts the best answers.", func(_ context.Context, _ sdk.Setup, c weights) (sdk.Elector, error) {
		return election(func(samples []sdk.Sample) []sdk.Answer {
			var votes ballot.Tally
			for _, s := range samples {
				if label, ok := ballot.Best(s); ok {
					votes.Add(label, ballot.Weights(c.Weights).Of(s.Voter))
				}
			}
			return votes.Shares()
		}), nil
	})
}

// soft is an election: the mean of the voters' distributions.
func soft() sdk.Stage {
	return sdk.ElectStage("soft", "Averages the distributions.", func(_ context.Context, _ sdk.Setup, c weights) (sdk.Elector, error) {
		return election(func(samples []sdk.Sample) []sdk.Answer { return ballot.Mean(samples, c.Weights) }), nil
	})
}

// first is an election: the first accepted answer, and how many of them are like it.
func first() sdk.Stage {
	return sdk.ElectStage("first", "Takes the first accepted answer.", func(context.Context, sdk.Setup, none) (sdk.Elector, error) {
		return election(func(samples []sdk.Sample) []sdk.Answer {
			var votes ballot.Tally
			for _, s := range samples {
				if label, ok := ballot.Best(s); ok {
					votes.Add(label, 1)
				}
			}
			for _, s := range samples {
				label, ok := ballot.Best(s)
				for _, share := range votes.Shares() {
					if ok && share.Label == label {
						return []sdk.Answer{share}
					}
				}
			}
			return nil
		}), nil
	})
}

type accuracies struct {
	Accuracy map[string]float64 `config:"accuracy" doc:"How often a voter is right, by the name of its block."`
}

// weighing is an election in which a voter counts by how often it is right.
type weighing map[string]float64

func (w weighing) Elect(_ context.Context, b sdk.Batch) ([]sdk.Verdict, error) {
	verdicts := make([]sdk.Verdict, len(b.Items))
	for i, item := range b.Items {
		counted := map[string]float64{}
		for _, s := range item.Samples {
			counted[s.Voter]++
		}
		var votes ballot.Tally
		for _, s := range item.Samples {
			p, ok := w[s.Voter]
			if !ok {
				p = ballot.Unmeasured(len(b.Labels))
			}
			if label, ok := ballot.Best(s); ok {
				votes.Add(label, ballot.Worth(p, len(b.Labels))/counted[s.Voter])
			}
		}
		verdicts[i] = ballot.Verdict(votes.Shares())
	}
	return verdicts, nil
}

// weighted is an election: each voter counts by its accuracy.
func weighted() sdk.Stage {
	return sdk.ElectStage("weighted", "Counts voters by their accuracies.", func(_ context.Context, _ sdk.Setup, c accuracies) (sdk.Elector, error) {
		return weighing(c.Accuracy), nil
	}, sdk.Reads(sdk.ColumnLabels))
}

type weight struct {
	Weight float64 `config:"weight" default:"1" doc:"What a word counts."`
}

// Words is a voter that learns how often each label has each word. A row with the label
// "unlearnable" fails that, and one with "deadly" ends its process.
func Words() sdk.Stage {
	return sdk.SampleStage("words", "Votes by the labels that words had.", func(_ context.Context, setup sdk.Setup, c weight) (sdk.Sampler, error) {
		v := &words{weight: c.Weight, file: filepath.Join(setup.StateDir, "labels.json")}
		raw, err := os.ReadFile(v.file)
		if errors.Is(err, fs.ErrNotExist) {
			return v, nil
		}
		return v, errors.Join(err, json.Unmarshal(raw, &v.labels))
	}, sdk.Reads(sdk.ColumnText), sdk.Fits(sdk.ColumnText))
}

type words struct {
	weight float64
	labels map[string]map[string]int // by word
	file   string                    // that keeps them
}

func (v *words) Fit(_ context.Context, rows iter.Seq2[[]sdk.TrainingRow, error]) error {
	v.labels = map[string]map[string]int{}
	for batch, err := range rows {
		if err != nil {
			return err
		}
		for _, row := range batch {
			switch row.Label {
			case "unlearnable":
				return sdk.Invalid(errors.New("row " + row.ID + " cannot be learnt from"))
			case "deadly":
				os.Exit(1)
			}
			for word, n := range wordsOf(row.Text) {
				if v.labels[word] == nil {
					v.labels[word] = map[string]int{}
				}
				v.labels[word][row.Label] += n
			}
		}
	}
	raw, err := json.Marshal(v.labels)
	return errors.Join(err, os.WriteFile(v.file, raw, 0o600))
}

func (v *words) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		var votes ballot.Tally
		for _, word := range slices.Sorted(maps.Keys(wordsOf(item.Text))) { // labels that tie stand in the same order each time
			for _, label := range slices.Sorted(maps.Keys(v.labels[word])) {
				votes.Add(label, v.weight*float64(v.labels[word][label]))
			}
		}
		if answers := votes.Shares(); len(answers) > 0 {
			samples[i] = []sdk.Sample{{Answers: answers}}
		}
	}
	return samples, nil
}
