package recorded

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

type config struct {
	Path   sdk.Path `config:"path,required" example:"answers.tsv" doc:"The file with the answers, TSV or JSONL, with id, answer and, if wanted, voter and weight; or the JSONL results of a run."`
	Voter  string   `config:"voter" doc:"The voter in the file whose answers count; by default the name of the block."`
	Column string   `config:"column" default:"answer" min_length:"1" doc:"Name of the column that holds the answers."`
	None   string   `config:"none" doc:"The answer in the file that is a vote for none of the labels; by default there is none."`
}

// Stage describes the voter.
func Stage() sdk.Stage {
	return sdk.SampleStage("recorded", "Votes with the answers that a file records for an item's id: of annotators, another system or an earlier run.", open, sdk.Revision("1"))
}

func open(_ context.Context, setup sdk.Setup, c config) (sdk.Sampler, error) {
	if c.Voter == "" {
		c.Voter = setup.Block
	}
	f, err := read(c)
	if err != nil {
		return nil, &sdk.ArgumentError{Argument: "path", Err: err}
	}
	return &voter{answers: f.answers, digest: f.digest, none: c.None, path: string(c.Path), log: setup.Log}, nil
}

type voter struct {
	answers answers
	digest  string
	none    string
	path    string
	log     *slog.Logger

	mu      sync.Mutex
	known   bool   // an item had a recorded answer
	missing string // the first id that had none
}

// Fingerprint changes with the file's content.
func (v *voter) Fingerprint() string { return v.digest }

// Sample implements sdk.Sampler.
func (v *voter) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		all := v.samples(item.ID)
		v.note(item.ID)
		samples[i] = all[min(item.Drawn, len(all)):] // a resampled item gets those that were not drawn
	}
	return samples, nil
}

// note records whether the ids are those of the file.
func (v *voter) note(id string) {
	_, ok := v.answers.items[id]
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known = v.known || ok; !ok && v.missing == "" {
		v.missing = id
	}
}

// Close warns where no item had an answer: the ids are probably others.
func (v *voter) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.log == nil || v.known || v.missing == "" || len(v.answers.items) == 0 {
		return nil
	}
	v.log.Warn("no item has a recorded answer: are the ids of the input those of the file?",
		"path", v.path, "input", v.missing, "file", slices.Min(slices.Collect(maps.Keys(v.answers.items))))
	return nil
}

// samples returns everything that is recorded for an item.
func (v *voter) samples(id string) []sdk.Sample {
	given := v.answers.of(id)
	if !slices.ContainsFunc(given, func(a sdk.Answer) bool { return a.Weight != 1 }) {
		samples := make([]sdk.Sample, len(given))
		for i, a := range given {
			samples[i].Answers = []sdk.Answer{v.answer(a)}
		}
		return samples
	}
	var sum ballot.Tally
	for _, a := range given {
		sum.Add(v.answer(a).Label, a.Weight)
	}
	shares := sum.Shares()
	if len(shares) == 0 { // every weight is 0
		return nil
	}
	return []sdk.Sample{{Answers: shares}}
}

// answer is a recorded answer as a vote.
func (v *voter) answer(a sdk.Answer) sdk.Answer {
	if v.none != "" && a.Label == v.none {
		a.Label = ""
	}
	return a
}
