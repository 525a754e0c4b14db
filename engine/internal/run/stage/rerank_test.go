package stage_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// shortest is a reranker that puts the shortest texts first and leaves out those without an e. It
// fails the item "poison", and records what it sees.
type shortest struct {
	mu   sync.Mutex
	seen map[string][]sdk.Candidate
}

func (s *shortest) stage(options ...sdk.Option) sdk.Stage {
	return sdk.RerankStage("shortest", "A reranker of the test.", func(context.Context, sdk.Setup, struct{}) (sdk.Reranker, error) {
		return s, nil
	}, append(options, sdk.Reads(sdk.ColumnCandidateTexts))...)
}

func (s *shortest) Rerank(_ context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([][]sdk.Ranked, len(b.Items))
	failed := sdk.RowErrors{}
	for i, it := range b.Items {
		if it.Text == "poison" {
			failed[i] = sdk.Invalid(errors.New("it is poisoned"))
			continue
		}
		if s.seen == nil {
			s.seen = map[string][]sdk.Candidate{}
		}
		s.seen[it.Text] = it.Candidates
		for j, c := range it.Candidates {
			if strings.Contains(c.Text, "e") {
				out[i] = append(out[i], sdk.Ranked{Candidate: j, Score: -float32(len(c.Text))})
			}
		}
		slices.SortStableFunc(out[i], func(a, b sdk.Ranked) int { return int(b.Score - a.Score) })
	}
	if len(failed) > 0 {
		return out, failed
	}
	return out, nil
}

func texts(candidates []sdk.Candidate) (all []string) {
	for _, c := range candidates {
		all = append(all, c.Text)
	}
	return all
}

func TestRerank(t *testing.T) {
	s := &shortest{}
	r := runtest.Pipeline(t, runtest.Stages(s.stage()), `
		retrieve "near" { from = knowledge.k }
		rerank "best" {
		  use = "shortest"
		  top_k = 3
		}`)
	result := runtest.Found(t, r, "apple")
	got := result.Candidates
	shorter := func(a, b sdk.Candidate) int { return len(a.Text) - len(b.Text) }
	if len(got) != 3 || !slices.IsSortedFunc(got, shorter) || len(s.seen["apple"]) != 6 {
		t.Errorf("candidates %v of %d", got, len(s.seen["apple"]))
	}
	above := map[string]sdk.Candidate{}
	for _, c := range s.seen["apple"] {
		above[c.ID] = c
	}
	for _, c := range got {
		was := above[c.ID]
		if c.Score != -float32(len(c.Text)) || !same(c.Dense, was.Dense) || !same(c.Lexical, was.Lexical) || c.Label != was.Label {
			t.Errorf("%+v came of %+v", c, was)
		}
	}
	must.Equal(t, "lists", []outcome.List{{Stage: "retrieve.near", Candidates: s.seen["apple"]}, {Stage: "rerank.best", Candidates: got}}, result.Lists, cmpopts.EquateNaNs())
}

func same(a, b float32) bool { return a == b || math.IsNaN(float64(a)) && math.IsNaN(float64(b)) }

// TestStagesBelowSeeTheRerankedList also checks that stages below get the texts only because the
// reranker reads them.
func TestStagesBelowSeeTheRerankedList(t *testing.T) {
	var seen []string
	look := runtest.Voter("look", func(it sdk.Item) ([]string, error) {
		for _, c := range it.Candidates {
			seen = append(seen, fmt.Sprint(c.Label, " ", c.Score))
		}
		if len(it.Prototypes) == 0 || it.Vector == nil {
			return nil, errors.New("the knowledge is out of sight")
		}
		return []string{"fruit"}, nil
	}, sdk.ColumnCandidates, sdk.ColumnPrototypes, sdk.ColumnVector)
	r := runtest.Pipeline(t, runtest.Stages((&shortest{}).stage(), look), `
		retrieve "near" { from = knowledge.k }
		rerank "best" {
		  use  = "shortest"
		  keep = "rank <= 2 and score > -12 and text != 'red apple'"
		}
		sample "look" {
		  use  = "look"
		  when = "len(candidates) == 1 and candidates[0].rank == 1 and 'fruit' in candidate_labels"
		}
		elect "all" { use = "soft" }`)
	runtest.Want(t, runtest.Answers(t, r, "green apple"), "fruit")
	must.Equal(t, "the voter saw", []string{"fruit -11"}, seen)
}

func TestRerankThatDoesNotWork(t *testing.T) {
	for name, c := range map[string]struct {
		arguments, text string
		failure         string
		texts           []string // of the candidates
	}{
		"it fails":         {``, "poison", "rerank.best: it is poisoned", nil},
		"skipped":          {`on_error = "skip"`, "poison", "", []string{"old train", "fast car"}},
		"others are not":   {`on_error = "skip"`, "old train", "", []string{"red apple", "green apple"}},
		"not for this one": {`when = "item.text != 'old train'"`, "old train", "", []string{"old train", "fast car"}},
		"a fallback": {"keep = \"score > 1000\"\nfallback \"other\" {\nwhen = \"failed\"\nuse = \"backwards\"\n}",
			"poison", "", []string{"red apple", "green apple"}},
		"nothing kept": {`keep = "score > 1000"`, "old train", "", nil},
		"a fallback for that": {"keep = \"score > 1000\"\nfallback \"other\" {\nwhen = \"not failed and len(candidates) == 0\"\nuse = \"backwards\"\n}",
			"old train", "", []string{"red apple", "green apple"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := runtest.Pipeline(t, runtest.Stages((&shortest{}).stage(), backwards.stage(), listed{}.stage()), `
				retrieve "near" { from = knowledge.k }
				rerank "order" { use = "listed" }
				rerank "best" {
				  use   = "shortest"
				  top_k = 2
				  `+c.arguments+`
				}`)
			result := runtest.Found(t, r, c.text)
			if c.failure != "" {
				if result.Failure == nil || result.Failure.Error() != c.failure {
					t.Errorf("failure %v, want %s", result.Failure, c.failure)
				}
				return
			}
			if result.Failure != nil {
				t.Fatal(result.Failure)
			}
			must.Equal(t, "candidates", c.texts, texts(result.Candidates))
		})
	}
}

func TestLists(t *testing.T) {
	stages := runtest.Stages(backwards.stage(), listed{}.stage())
	const body = `
		retrieve "few" { 
		  from  = knowledge.k 
		  top_k = 2 
		}
		retrieve "near" {
		  from = knowledge.k
		  when = "len(candidates) == 2 and candidates[0].label == 'vehicle' and 'fruit' in labels"
		}
		rerank "first"  { use = "listed" }
		rerank "second" {
		  use     = "backwards"
		  top_k   = 4
		}
		rerank "third" {
		  use     = "listed"
		  enabled = false
		}`
	result := runtest.Found(t, runtest.PipelineWith(t, stages, run.Options{Options: stage.Options{Lists: true}}, body), "fast car")
	if result.Failure != nil || len(result.Lists) != 4 {
		t.Fatalf("lists %v, failure %v", result.Lists, result.Failure)
	}
	for i, want := range []struct {
		stage string
		n     int
		first string
	}{{"retrieve.few", 2, "fast car"}, {"retrieve.near", 6, "fast car"}, {"rerank.first", 6, "old train"}, {"rerank.second", 4, "red apple"}} {
		got := result.Lists[i]
		if got.Stage != want.stage || len(got.Candidates) != want.n || got.Candidates[0].Text != want.first {
			t.Errorf("list %d: %s %q, want %v", i, got.Stage, texts(got.Candidates), want)
		}
	}
	must.Equal(t, "the last list is not the result's", texts(result.Lists[3].Candidates), texts(result.Candidates))
	// The rule of the second search reads the candidates of the first search.
	result = runtest.Found(t, runtest.PipelineWith(t, stages, run.Options{Options: stage.Options{Lists: true}}, body), "green apple")
	if len(result.Lists[1].Candidates) != 0 || result.Failure != nil {
		t.Errorf("near found %q, failure %v", texts(result.Lists[1].Candidates), result.Failure)
	}
}

// The rule of a second search also sees the labels of the knowledge above.
func TestASecondSearchAsksAboutTheKnowledgeAbove(t *testing.T) {
	const end = "store { use = \"memory\" }\n}\n"
	texts := end + strings.NewReplacer(`knowledge "k"`, `knowledge "texts"`, `{ path = "rows.tsv" }`, "{\npath = \"rows.tsv\"\nlabel = \"text\"\n}").Replace(runtest.KnowledgeBlock)
	for rule, want := range map[string]int{"'fruit' in labels": 6, "'red apple' in labels": 0} {
		got := runtest.Found(t, runtest.Pipeline(t, runtest.Stages(), `
	retrieve "first" { from = knowledge.k }
	retrieve "second" {
	  from = knowledge.texts
	  when = "`+rule+`"
	}`, end, texts), "fast car")
		if got.Failure != nil || len(got.Candidates) != want {
			t.Errorf("%s: %d candidates, want %d, failure %v", rule, len(got.Candidates), want, got.Failure)
		}
	}
}

// listed puts candidates into a fixed order, independent of the query.
type listed struct{}

func (listed) stage() sdk.Stage {
	return reordering("listed", func(a, b sdk.Candidate) int { return slices.Index(fileOrder, a.Text) - slices.Index(fileOrder, b.Text) })
}

var fileOrder = []string{"old train", "fast car", "slow bus", "yellow banana", "green apple", "red apple"}

type reorder func(a, b sdk.Candidate) int

// backwards is the reverse order of listed.
var backwards = reorder(func(a, b sdk.Candidate) int { return slices.Index(fileOrder, b.Text) - slices.Index(fileOrder, a.Text) })

func (r reorder) stage() sdk.Stage { return reordering("backwards", r) }

func reordering(name string, order reorder) sdk.Stage {
	return sdk.RerankStage(name, "A reranker of the test.", func(context.Context, sdk.Setup, struct{}) (sdk.Reranker, error) {
		return order, nil
	}, sdk.Reads(sdk.ColumnCandidateTexts))
}

func (r reorder) Rerank(_ context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	out := make([][]sdk.Ranked, len(b.Items))
	for i, it := range b.Items {
		for j := range it.Candidates {
			out[i] = append(out[i], sdk.Ranked{Candidate: j})
		}
		slices.SortFunc(out[i], func(x, y sdk.Ranked) int { return r(it.Candidates[x.Candidate], it.Candidates[y.Candidate]) })
	}
	return out, nil
}

// A voter that reads only vectors gets them, even if the search has none.
func TestVectorsAlone(t *testing.T) {
	for _, mode := range []string{"hybrid", "dense", "lexical"} {
		look := runtest.Voter("look", func(it sdk.Item) ([]string, error) {
			if it.Vector == nil {
				return nil, errors.New("there is no vector")
			}
			return []string{"fruit"}, nil
		}, sdk.ColumnVector)
		r := runtest.Pipeline(t, runtest.Stages(look), `
			retrieve "near" {
			  from = knowledge.k
			  mode = "`+mode+`"
			}
			sample "look" { use = "look" }
			elect "all" { use = "soft" }`)
		runtest.Want(t, runtest.Answers(t, r, "green apple"), "fruit")
	}
}
