package sample

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// This file is a voter whose answers are in a file: those of annotators, of another
// system or of an earlier run. It votes for an item by its id, and abstains where the
// file has no answer for it. An item without an id has the number of its line.
//
// The file is TSV with a header line, or JSONL where its name ends in .jsonl or .ndjson,
// with the columns (properties)
//
//	id      the item's
//	voter   whose answer it is; without this column all answers are the stage's
//	answer  the label; empty or null: there is no answer
//	weight  optional; at least 0
//
// and any others, which are ignored. The stage reads the answers of one voter: the one
// with its block's name, or the one that the argument voter names. A line of JSONL may
// also hold a list `votes` of objects with voter, answer and weight, as the results of a
// run do; an empty answer among them that was accepted is a vote for none of the labels.
// Elsewhere the argument none names the answer that is such a vote.
//
// An item's rows are read together, in their order, wherever they stand in the file.
// Without weights, or with weights that are all 1, each is a sample of its own, as the
// samples of a language model are; a repeated row is two samples. Otherwise they are one
// sample, a distribution over labels, in which a label counts once with the sum of its
// weights.
//
// A row that cannot be read is an error that names the line, and the stage does not
// open. The answers of the voter are kept in memory: with ids of 12 characters, 89 bytes
// for an item with one answer and 16 for each further one. More than 5 million are
// refused.

// maxAnswers bounds the memory of the stage's process.
const maxAnswers = 5_000_000

// answers are those of one voter, by item. Each label is stored once.
type answers struct {
	items  map[string]span
	all    []entry
	labels []string
	number map[string]int32 // of a label
}

// span is the first and the last of an item's answers.
type span struct{ first, last int32 }

type entry struct {
	weight float64
	label  int32
	next   int32 // of the same item; 0: none
}

func (a *answers) add(id, label string, weight float64) error {
	if len(a.all) == maxAnswers {
		return fmt.Errorf("it has more than %d answers of one voter; split it, and the input with it", maxAnswers)
	}
	if a.items == nil {
		a.items, a.number = map[string]span{}, map[string]int32{}
	}
	n, ok := a.number[label]
	if !ok {
		n = int32(len(a.labels))
		label = strings.Clone(label) // it is part of a line
		a.number[label] = n
		a.labels = append(a.labels, label)
	}
	at := int32(len(a.all))
	a.all = append(a.all, entry{weight: weight, label: n})
	s, ok := a.items[id]
	if ok {
		a.all[s.last].next = at
	} else {
		s.first, id = at, strings.Clone(id)
	}
	s.last = at
	a.items[id] = s
	return nil
}

// of returns an item's answers in the order of the file.
func (a *answers) of(id string) []sdk.Answer {
	s, ok := a.items[id]
	if !ok {
		return nil
	}
	var list []sdk.Answer
	for at := s.first; ; at = a.all[at].next {
		list = append(list, sdk.Answer{Label: a.labels[a.all[at].label], Weight: a.all[at].weight})
		if at == s.last {
			return list
		}
	}
}

// object reads a line of JSONL: one answer, or the votes of a run's result.
func (f *file) object(line []byte) ([]recordedRow, error) {
	var top map[string]json.RawMessage
	if json.Unmarshal(line, &top) != nil || top == nil {
		return nil, errors.New("it is not a JSON object")
	}
	id, err := text(top, "id")
	if err != nil {
		return nil, err
	}
	var votes []map[string]json.RawMessage
	if raw, ok := top["votes"]; !ok {
		votes = append(votes, top)
	} else if json.Unmarshal(raw, &votes) != nil {
		return nil, errors.New(`"votes" is not a list of objects`)
	}
	rows := make([]recordedRow, 0, len(votes))
	for _, vote := range votes {
		r := recordedRow{id: id, voter: f.Voter}
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
		r.none = r.answer == "" && string(vote["accepted"]) == "true" // a run's vote for none of the labels
		rows = append(rows, r)
	}
	return rows, nil
}

// text returns a property: a string, or a number as it is written.
func text(object map[string]json.RawMessage, name string) (value string, err error) {
	raw := string(object[name])
	switch {
	case raw == "" || raw == "null":
		return "", nil
	case raw[0] == '"' && json.Unmarshal([]byte(raw), &value) == nil:
		return strings.TrimSpace(value), nil
	case strings.ContainsAny(raw[:1], "-0123456789"):
		return raw, nil
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
func (v *recordedVoter) Fingerprint() string { return v.digest }

// Sample implements sdk.Sampler.
func (v *recordedVoter) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		all := v.samples(item.ID)
		v.note(item.ID)
		samples[i] = all[min(item.Drawn, len(all)):] // a resampled item gets those that were not drawn
	}
	return samples, nil
}

// note records whether the ids are those of the file.
func (v *recordedVoter) note(id string) {
	_, ok := v.answers.items[id]
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known = v.known || ok; !ok && v.missing == "" {
		v.missing = id
	}
}

// Close warns where no item had an answer: the ids are probably others.
func (v *recordedVoter) Close() error {
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
func (v *recordedVoter) samples(id string) []sdk.Sample {
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
func (v *recordedVoter) answer(a sdk.Answer) sdk.Answer {
	if v.none != "" && a.Label == v.none {
		a.Label = ""
	}
	return a
}
