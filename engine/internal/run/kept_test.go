package run_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/measure/tune"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// gossip is a voter over the network that reveals whether it was shown the held-out row.
type gossip struct{}

func (gossip) Random() sdk.Draw { return sdk.Draw{Count: 4} }

func (gossip) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		answer := fmt.Sprintf("%d found, %d drawn", len(item.Candidates), len(item.Random))
		for _, c := range slices.Concat(item.Candidates, item.Random) {
			if c.ID == item.ID {
				answer = "itself"
			}
		}
		samples[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: answer, Weight: 1}}}}
	}
	return samples, nil
}

// A service that is asked about a row of the knowledge does not see that row, neither in a search
// nor in the whole knowledge. The election can be held again with its votes.
func TestHeldOut(t *testing.T) {
	catalog := append(enginetest.Catalog(enginetest.Stages()), sdk.SampleStage("gossip", "Tells.",
		func(context.Context, sdk.Setup, struct{}) (sdk.Sampler, error) { return gossip{}, nil },
		sdk.Network(), sdk.Reads(sdk.ColumnCandidates, sdk.ColumnCandidateTexts, sdk.ColumnRandom, sdk.ColumnPrompts)))
	for name, whole := range map[string]string{"searched": "", "whole": `whole = "knowledge.entries < 10"`} {
		t.Run(name, func(t *testing.T) {
			dir := runtest.Folder(t, map[string]string{
				"rows.tsv": "id\ttext\tlabel\n1\tred apple\tfruit\n2\tgreen apple\tfruit\n3\tred car\tcar\n4\tgreen car\tcar\n",
				"in.tsv":   "text\nblue car\n",
				"p.hcl": `
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "memory" }
}
pipeline "p" {
  input { path = "in.tsv" }
  retrieve "near" {
    from  = knowledge.k
    top_k = 60
    ` + whole + `
  }
  sample "word" { use = "words" }
  prompt "ask" { use = "chat" }
  sample "gossip" { use = "gossip" }
  elect "e" { use = "soft" }
}`})
			p := runtest.Load(t, catalog, dir).Pipelines[0]
			o := run.Options{Launch: runtest.Launch(t, dir), Options: stage.Options{Fitted: filepath.Join(dir, "fitted")}}
			r := must.Get(run.Open(t.Context(), p, o))(t)
			var results []outcome.Result
			held, totals, done, err := r.HeldOut(t.Context(), 3, o.Launch, func(batch []outcome.Result) error {
				results = append(results, batch...)
				return nil
			})
			must.Do(t, err)
			defer done()
			if totals.Items != 3 || totals.Failed > 0 {
				t.Fatalf("%d items, %d failed", totals.Items, totals.Failed)
			}
			for _, one := range results {
				heard := ""
				for _, v := range one.Votes {
					if v.Voter == "gossip" {
						heard = v.Answer
					}
				}
				if one.Expected == "" || one.Answer == "" || heard != "3 found, 3 drawn" {
					t.Errorf("row %s: answer %q, and it was shown %q", one.ID, one.Answer, heard)
				}
			}
			election := must.Get(tune.NewElection(t.Context(), held, p, o.Launch))(t)
			again, err := election.Elect(t.Context(), results, func(a tune.AskRule) bool { return a.Stage.Name == "gossip" })
			if err != nil || len(again) != 3 || again[0].Answer != "3 found, 3 drawn" {
				t.Errorf("elected again: %+v, %v", again, err)
			}
		})
	}
}
