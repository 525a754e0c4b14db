package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/sdk"
)

const (
	neighbours = 50
	questions  = 1000
	perCall    = 256 // items per call of a stage
	underway   = 4   // calls that overlap, as in a run
)

// knn measures classification by the nearest neighbours: "eval" as a person
// runs it, texts in and answers out, and "given" with the vectors at hand.
func (b *bench) knn() (c contender, err error) {
	given, err := b.given()
	if err != nil {
		return c, err
	}
	if _, err := b.eval(); err != nil { // builds the knowledge
		return c, err
	}
	c.tasks = map[string]func() (reply, error){"given": given, "eval": b.eval}
	return c, nil
}

// eval runs `racflow eval`. "ms" is what that reports per item; "whole" counts
// the command from its start to its end: processes, opening the store, report.
func (b *bench) eval() (reply, error) {
	start := time.Now()
	report, _, err := b.evaluate("--limit", fmt.Sprint(questions),
		"-var", "train="+b.path("train.tsv"), "-var", "test="+b.path("test.tsv"), filepath.Join(b.root(), ".ci", "bench", "knn.hcl"))
	if err != nil {
		return nil, err
	}
	whole := milliseconds(start)
	return reply{"n": report.Items, "ms": 1000 / report.Rate, "whole": whole / report.Items, "accuracy": report.Accuracy}, nil
}

// evaluation is what `racflow eval` reports.
type evaluation struct {
	Items    float64 `json:"items"`
	Accuracy float64 `json:"accuracy"`
	Rate     float64 `json:"items_per_second"`
}

// evaluate runs `racflow eval`.
func (b *bench) evaluate(arguments ...string) (report evaluation, used *os.ProcessState, err error) {
	command := exec.CommandContext(b.ctx, b.binary, append([]string{"eval", "--json", "--state", filepath.Join(b.scratch, "state")}, arguments...)...)
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	if err := command.Run(); err != nil {
		return report, nil, fmt.Errorf("racflow eval: %w: %s", err, log.Bytes())
	}
	return report, command.ProcessState, json.Unmarshal(out.Bytes(), &report)
}

// size measures a run from the file of examples to the answers, with what the voters and the election learn.
func (b *bench) size() (c contender, err error) {
	c.tasks = map[string]func() (reply, error){"build": func() (reply, error) {
		defer os.RemoveAll(filepath.Join(b.scratch, "state"))
		report, used, err := b.evaluate("-var", "embedder=hashing", "-var", "train="+b.path("many.tsv"), "--input", b.path("test.tsv"), filepath.Join(b.root(), "pipelines", "intent.hcl"))
		if err != nil {
			return nil, err
		}
		return reply{"n": 1, "ms": float64(used.UserTime()+used.SystemTime()) / 1e6, "accuracy": report.Accuracy}, nil
	}}
	return c, nil
}

func (b *bench) root() string { return filepath.Join(filepath.Dir(b.binary), "..") }

// given returns the task of answering from vectors: the store's and the
// voter's process, as in a run, without the embedder's.
func (b *bench) given() (func() (reply, error), error) {
	texts, labels, err := b.labelled("train.tsv")
	if err != nil {
		return nil, err
	}
	vectors, err := b.matrix("train.f32")
	if err != nil {
		return nil, err
	}
	asked, err := b.matrix("test.f32")
	if err != nil {
		return nil, err
	}
	_, expected, err := b.labelled("test.tsv")
	if err != nil {
		return nil, err
	}
	store, err := b.start(sdk.KindStore, "local", "{}")
	if err != nil {
		return nil, err
	}
	if err := b.collection(store, "", texts, labels, vectors); err != nil {
		return nil, err
	}
	voter, err := b.start(sdk.KindSample, "neighbours", fmt.Sprintf(`{"k": %d}`, neighbours))
	if err != nil {
		return nil, err
	}
	n := min(questions, len(asked))
	return func() (reply, error) {
		answers := make([]string, n)
		start := time.Now()
		var calls errgroup.Group
		calls.SetLimit(underway)
		for first := 0; first < n; first += perCall {
			last := min(first+perCall, n)
			calls.Go(func() error { return b.classify(store, voter, asked[first:last], answers[first:last]) })
		}
		if err := calls.Wait(); err != nil {
			return nil, err
		}
		ms, right := milliseconds(start), 0
		for i, answer := range answers {
			if answer == expected[i] {
				right++
			}
		}
		count := float64(n)
		return reply{"n": count, "ms": ms / count, "accuracy": float64(right) / count}, nil
	}, nil
}

// classify fills in the labels that the nearest neighbours vote for.
func (b *bench) classify(store, voter *host.Process, vectors [][]float32, answers []string) error {
	queries := make([]sdk.Query, len(vectors))
	for i, v := range vectors {
		queries[i].Vector = v
	}
	found, err := store.Retrieve(b.ctx, "c", sdk.Ranking{
		Search: sdk.Search{Mode: sdk.ModeDense, NumCandidates: neighbours},
		Fusion: sdk.Fusion{Method: "weighted", DenseWeight: 1}, TopK: neighbours,
	}, queries)
	if err != nil {
		return err
	}
	items := make([]sdk.Item, len(found))
	for i, candidates := range found {
		items[i] = sdk.Item{ID: fmt.Sprint(i), Candidates: candidates}
	}
	ballots, err := voter.Sample(b.ctx, sdk.Batch{Items: items})
	if err != nil {
		return err
	}
	for i, samples := range ballots {
		if len(samples) > 0 && len(samples[0].Answers) > 0 {
			answers[i] = samples[0].Answers[0].Label
		}
	}
	return nil
}
