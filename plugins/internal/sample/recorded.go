package sample

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// This file is a voter whose answers are in a file: answers of annotators, of another system or of an earlier run. It
// finds the answers for an item by its id, and abstains if the file has none. An item without an id has its line
// number as id.
//
// The file is TSV with a header line, or JSONL where its name ends in .jsonl or .ndjson,
// with the columns (properties)
//
//	id      the item's
//	voter   whose answer it is; without this column all answers are the stage's
//	answer  the label; empty or null: there is no answer
//	weight  optional; at least 0
//
// and any others, which are ignored. The stage reads the answers of one voter: of the name of its block, or of the
// argument voter. A line of JSONL may also hold a list `votes` of objects with voter, answer and weight, as the
// results of a run do. If such an answer is empty and was accepted, it is a vote for none of the labels. Elsewhere
// the argument none names the answer that is such a vote.
//
// An item's rows are combined in their order, even if they are not adjacent in the file. If they have no weights, or
// all weights are 1, each row is a sample of its own, as with a language model; a repeated row is two samples.
// Otherwise all rows form one sample, a distribution over labels. A label then counts once, with the sum of its
// weights.
//
// A row that cannot be read is an error that names the line, and the stage does not open. The answers of the voter
// are kept in memory, at most 5 million.

// maxAnswers bounds the memory of the stage's process.
const maxAnswers = 5_000_000

// recordedAnswer is an answer of the voter to an item.
type recordedAnswer struct {
	label  string // stored once for all items
	weight float64
}

// object reads a line of JSONL: one answer, or the votes of a run's result.
func (f *file) object(line []byte) ([]recordedRow, error) {
	top := gjson.ParseBytes(line)
	if !gjson.ValidBytes(line) || !top.IsObject() {
		return nil, errors.New("it is not a JSON object")
	}
	properties := top.Map()
	id, err := text(properties, "id")
	if err != nil {
		return nil, err
	}
	votes := []gjson.Result{top}
	if all, ok := properties["votes"]; ok {
		votes = all.Array()
		if !all.IsArray() || slices.ContainsFunc(votes, func(v gjson.Result) bool { return !v.IsObject() }) {
			return nil, errors.New(`"votes" is not a list of objects`)
		}
	}
	rows := make([]recordedRow, len(votes))
	for i := range rows {
		vote, r := votes[i].Map(), &rows[i]
		r.id, r.voter = id, f.Voter
		if _, ok := vote["voter"]; ok {
			if r.voter, err = text(vote, "voter"); err != nil {
				return nil, err
			}
		}
		if _, ok := vote[f.Column]; !ok {
			return nil, fmt.Errorf("there is no %q in it; column = \"...\" in config names another property for the answers", f.Column)
		}
		if r.answer, err = text(vote, f.Column); err != nil {
			return nil, err
		}
		if r.weight, err = text(vote, "weight"); err != nil {
			return nil, err
		}
		r.none = r.answer == "" && vote["accepted"].Type == gjson.True // in a run's results: a vote for none of the labels
	}
	return rows, nil
}

// text returns a property: a string, or a number as it is written.
func text(object map[string]gjson.Result, name string) (string, error) {
	switch value := object[name]; value.Type {
	case gjson.Null:
		return "", nil
	case gjson.String:
		return strings.TrimSpace(value.Str), nil
	case gjson.Number:
		return value.Raw, nil
	}
	return "", fmt.Errorf("%q is neither a text nor a number", name)
}

type recordedConfig struct {
	Path   sdk.Path `config:"path,required" example:"answers.tsv" doc:"The file with the answers, TSV or JSONL, with id, answer and, if wanted, voter and weight; or the JSONL results of a run."`
	Voter  string   `config:"voter" doc:"The voter in the file whose answers count; by default the name of the block."`
	Column string   `config:"column" default:"answer" min_length:"1" doc:"Name of the column that holds the answers."`
	None   string   `config:"none" doc:"The answer in the file that is a vote for none of the labels; by default there is none."`
}

// Recorded describes the voter.
func Recorded() sdk.Stage {
	return sdk.SampleStage("recorded", "Votes with the answers that a file records for an item's id: of annotators, another system or an earlier run.", openRecorded, sdk.Revision("1"))
}

func openRecorded(_ context.Context, setup sdk.Setup, c recordedConfig) (sdk.Sampler, error) {
	if c.Voter == "" {
		c.Voter = setup.Block
	}
	f, err := read(c)
	if err != nil {
		return nil, &sdk.ArgumentError{Argument: "path", Err: err}
	}
	return &recordedVoter{answers: f.answers, digest: f.digest, none: c.None, path: string(c.Path), log: setup.Log}, nil
}

type recordedVoter struct {
	answers map[string][]recordedAnswer // by item
	digest  string
	none    string
	path    string
	log     *slog.Logger

	mu      sync.Mutex
	known   bool   // an item had a recorded answer
	missing string // the first id that had none
}

// Fingerprint changes with the file's content.
func (v *recordedVoter) Fingerprint() string { return v.digest }

// Sample implements sdk.Sampler.
func (v *recordedVoter) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		all := v.samples(item.ID)
		v.note(item.ID)
		samples[i] = all[min(item.Drawn, len(all)):] // a resampled item gets the answers that were not drawn before
	}
	return samples, nil
}

// note records whether the file has answers for an id.
func (v *recordedVoter) note(id string) {
	_, ok := v.answers[id]
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known = v.known || ok; !ok && v.missing == "" {
		v.missing = id
	}
}

// Close warns if no item had an answer: the file probably has other ids.
func (v *recordedVoter) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.log == nil || v.known || v.missing == "" || len(v.answers) == 0 {
		return nil
	}
	v.log.Warn("no item has a recorded answer: are the ids of the input those of the file?",
		"path", v.path, "input", v.missing, "file", slices.Min(slices.Collect(maps.Keys(v.answers))))
	return nil
}

// samples returns all recorded samples of an item.
func (v *recordedVoter) samples(id string) []sdk.Sample {
	given := v.answers[id]
	if !slices.ContainsFunc(given, func(a recordedAnswer) bool { return a.weight != 1 }) {
		samples := make([]sdk.Sample, len(given))
		for i, a := range given {
			samples[i].Answers = []sdk.Answer{{Label: v.label(a), Weight: 1}}
		}
		return samples
	}
	var sum ballot.Tally
	for _, a := range given {
		sum.Add(v.label(a), a.weight)
	}
	shares := sum.Shares()
	if len(shares) == 0 { // every weight is 0
		return nil
	}
	return []sdk.Sample{{Answers: shares}}
}

// label returns the label that an answer votes for; empty: none of the labels.
func (v *recordedVoter) label(a recordedAnswer) string {
	if v.none != "" && a.label == v.none {
		return ""
	}
	return a.label
}
