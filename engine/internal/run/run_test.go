package run_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/sdk"
)

func TestVotersWorkAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var meet sync.WaitGroup
		meet.Add(2)
		both := func(sdk.Item) ([]string, error) {
			meet.Done()
			meet.Wait() // for the other voter: if voters ran one after the other, this would never end
			return []string{"fruit"}, nil
		}
		r := runtest.Pipeline(t, runtest.Stages(runtest.Voter("a", both), runtest.Voter("b", both)), `
		sample "a" { use = "a" }
		sample "b" { use = "b" }
		elect "e" { use = "majority" }`)
		done := make(chan []string)
		go func() { done <- runtest.Answers(t, r, "x") }()
		select {
		case got := <-done:
			runtest.Want(t, got, "fruit")
		case <-time.After(20 * time.Second):
			t.Fatal("two voters that wait for each other never finished")
		}
	})
}

// The totals sum up the missing stages, and why items have no answer.
func TestTotalsSayWhy(t *testing.T) {
	picky := func(item sdk.Item) ([]string, error) {
		if item.Text != "fine" {
			return nil, errors.New(item.Text + " is poisoned")
		}
		return []string{"fruit"}, nil
	}
	loud := func(item sdk.Item) ([]string, error) { return []string{strings.ToUpper(item.Text), "HM"}, nil }
	r := runtest.Pipeline(t, runtest.Stages(runtest.Voter("picky", picky), runtest.Voter("loud", loud)), `
		retrieve "near" { from = knowledge.k }
		sample "v" {
			use      = "picky"
			on_error = "skip"
		}
		sample "loud" {
			use    = "loud"
			accept = "answer in labels"
		}
		elect "e" { use = "majority" }`)
	_, totals := runtest.Taken(t, r, runtest.Feed("one", "two", "fine", "three"))
	if s := totals.Skipped; len(s) != 1 || s[0].Stage != "sample.v" || s[0].Items != 3 || s[0].First.Error() != "one is poisoned" {
		t.Errorf("skipped: %+v", s)
	}
	if diff := cmp.Diff([]outcome.Reason{{Text: "accept: the rule does not hold", Items: 3, Example: "ONE"}}, totals.Reasons); diff != "" || totals.Undecided != 3 {
		t.Errorf("%d undecided, reasons (-want +got):\n%s", totals.Undecided, diff)
	}
}

func TestRowFaultsAreKept(t *testing.T) {
	r := runtest.Pipeline(t, runtest.Stages(runtest.Voter("v", runtest.Always("x"))), `
		sample "v" { use = "v" }
		elect "e" { use = "majority" }`)
	var got []string
	given := []source.Row{{Line: 2, Text: "a"}, {Line: 3, Err: errors.New("no text")}, {Line: 4, ID: "c", Text: "c"}}
	all, _ := runtest.Taken(t, r, runtest.Rows(given...))
	for _, r := range all {
		got = append(got, fmt.Sprintf("%d %s %s %v", r.Line, r.ID, r.Answer, r.Failure))
	}
	runtest.Want(t, got, "2 2 x <nil>", "3 3  no text", "4 c x <nil>")
}

type sampler func(context.Context, sdk.Batch) ([][]sdk.Sample, error)

func (f sampler) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) { return f(ctx, b) }

func TestNobodyWaitsForAnHour(t *testing.T) {
	r := runtest.Pipeline(t, runtest.Stages(runtest.Voter("v", func(sdk.Item) ([]string, error) {
		return nil, sdk.Transient(errors.New("too busy"), time.Hour)
	})), `
		sample "v" { use = "v" }
		elect "e" { use = "majority" }`)
	runtest.Want(t, runtest.Answers(t, r, "a"), "!sample.v: too busy; it asks to wait 1h0m0s, longer than a run waits")
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		r := runtest.Pipeline(t, runtest.Stages(runtest.Voter("v", func(item sdk.Item) ([]string, error) {
			if item.Text == "slow" {
				<-late
			}
			return []string{"x"}, nil
		})), `
		sample "v" {
			use     = "v"
			timeout = "200ms"
			batch   = 1
		}
		elect "e" { use = "majority" }`)
		t.Cleanup(func() { close(late) }) // before the stage ends
		runtest.Want(t, runtest.Answers(t, r, "a", "slow", "b"), "x", `!sample.v: no answer within 100ms, its share of timeout = "200ms"`, "x")
	})
}

func TestABrokenInputKeepsWhatWasRead(t *testing.T) {
	r := runtest.Pipeline(t, runtest.Stages(runtest.Voter("v", runtest.Always("x"))), `
		batch = 2
		sample "v" { use = "v" }
		elect "e" { use = "majority" }`)
	n, answered := 0, 0
	broken := errors.New("the disk is gone")
	totals, err := r.Items(t.Context(), func() (source.Row, error) {
		if n++; n > 5 {
			return source.Row{}, broken
		}
		return source.Row{Line: n, Text: "x"}, nil
	}, nil, func(results []outcome.Result) error { answered += len(results); return nil })
	if !errors.Is(err, broken) || answered != 5 || totals.Items != 5 {
		t.Errorf("%d answered, %d counted, %v", answered, totals.Items, err)
	}
}

// A person who types a line waits for its answer, not for a full batch.
func TestALoneItemIsAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runtest.Pipeline(t, runtest.Stages(runtest.Voter("v", runtest.Always("x"))), `
		sample "v" { use = "v" }
		elect "e" { use = "majority" }`)
		const lines = 10
		answered := make(chan struct{}, 1)
		answered <- struct{}{}
		n := 0
		start := time.Now()
		totals, err := r.Items(t.Context(), func() (source.Row, error) {
			<-answered // the next line comes when the last answer is there
			if n++; n > lines {
				return source.Row{}, io.EOF
			}
			return source.Row{Line: n, Text: "x"}, nil
		}, nil, func([]outcome.Result) error { answered <- struct{}{}; return nil })
		if err != nil || totals.Answered != lines {
			t.Errorf("%d answered, %v", totals.Answered, err)
		}
		if each := time.Since(start) / lines; each > 80*time.Millisecond {
			t.Errorf("an item took %v", each)
		}
	})
}

func TestLexicalFallbackWorksWithoutTheEmbedder(t *testing.T) {
	var broken atomic.Bool
	stage := sdk.EmbedStage("letters", "An embedder of the test.", func(context.Context, sdk.Setup, struct{}) (sdk.Embedder, error) {
		return lengths{&broken}, nil
	})
	r := runtest.Pipeline(t, runtest.Stages(stage), `
		retrieve "near" {
			from = knowledge.k
			fallback "lexical" {
				when = "failed"
				mode = "lexical"
			}
		}
		sample "knn" { use = "neighbours" }
		sample "proto" { use = "prototype" }
		elect "e" { use = "soft" }`, `use = "hashing"`, `use = "letters"`)
	runtest.Answers(t, r, "an apple")
	broken.Store(true)
	runtest.Want(t, runtest.Answers(t, r, "red apple", "fast car"), "fruit", "vehicle")
}

// lengths embeds a text as the direction of its length and 1.
type lengths struct{ broken *atomic.Bool }

func (lengths) Dimension() int { return 2 }

func (l lengths) Embed(_ context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	if l.broken.Load() {
		return nil, errors.New("out of order")
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		norm := math.Hypot(float64(len(text)), 1)
		vectors[i] = []float32{float32(float64(len(text)) / norm), float32(1 / norm)}
	}
	return vectors, nil
}

func TestKeepAndFallback(t *testing.T) {
	seen := func(item sdk.Item) ([]string, error) {
		return []string{fmt.Sprint(len(item.Candidates) > 0)}, nil
	}
	for name, test := range map[string]struct{ retrieve, answer string }{
		"kept":             {`keep = "lexical > 0"`, "true"},
		"nothing kept":     {`keep = "score > 100"`, "false"},
		"fallback":         {"keep = \"score > 100\"\nfallback \"f\" {\nwhen = \"len(candidates) == 0\"\nmode = \"lexical\"\nkeep = \"true\"\n}", "true"},
		"not needed":       {"keep = \"score > 100\"\nfallback \"f\" {\nwhen = \"failed\"\nmode = \"lexical\"\n}", "false"},
		"a rule that errs": {`keep = "candidates[100].score > 0"`, "!retrieve.near"},
	} {
		t.Run(name, func(t *testing.T) {
			r := runtest.Pipeline(t, runtest.Stages(runtest.Voter("seen", seen, sdk.ColumnCandidates)), `
				retrieve "near" {
					from = knowledge.k
					`+test.retrieve+`
				}
				sample "v" { use = "seen" }
				elect "e" { use = "majority" }`)
			got := runtest.Answers(t, r, "red apple")
			if !strings.HasPrefix(got[0], test.answer) {
				t.Errorf("got %q, want %q", got, test.answer)
			}
		})
	}
}

func TestAccept(t *testing.T) {
	r := runtest.Pipeline(t, runtest.Stages(runtest.Voter("three", func(sdk.Item) ([]string, error) {
		return []string{"nonsense", "nonsense", "vehicle", "fruit", "fruit"}, nil
	})), `
		retrieve "near" { from = knowledge.k }
		sample "v" {
			use    = "three"
			accept = "answer != \"fruit\""
		}
		elect "e" {
			use    = "majority"
			accept = "answer in labels"
			flag   = "agreement < 1.1 && answer == \"vehicle\""
		}`)
	result := runtest.Found(t, r, "x")
	if result.Answer != "vehicle" || !result.Flagged {
		t.Errorf("answer %q, flagged %v", result.Answer, result.Flagged)
	}
	votes := result.Votes
	for _, v := range votes {
		if v.Accepted != (v.Answer == "vehicle") {
			t.Errorf("vote %+v", v)
		}
	}
	if len(votes) != 5 {
		t.Errorf("%d votes, want all five", len(votes))
	}
}

func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runtest.Pipeline(t, runtest.Stages(runtest.Voter("v", runtest.Always("x"))), `
		batch = 1
		sample "v" { use = "v" }
		elect "e" { use = "majority" }`)
		var read atomic.Int64
		next := func() (source.Row, error) {
			if n := read.Add(1); n > 1000 {
				return source.Row{}, io.EOF
			}
			return source.Row{Text: "x"}, nil
		}
		stop := errors.New("full")
		_, err := r.Items(t.Context(), next, nil, func([]outcome.Result) error {
			time.Sleep(200 * time.Millisecond) // a slow reader of the results
			return stop
		})
		if !errors.Is(err, stop) {
			t.Errorf("got %v, want the sink's error", err)
		}
		if n := read.Load(); n > 20 {
			t.Errorf("%d rows were read while the first result was not taken", n)
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		slow := func(sdk.Item) ([]string, error) {
			cancel()
			time.Sleep(100 * time.Millisecond)
			return nil, nil
		}
		r := runtest.Pipeline(t, runtest.Stages(runtest.Voter("slow", slow)), `
		sample "v" { use = "slow" }
		elect "e" { use = "majority" }`)
		_, err := r.Items(ctx, runtest.Feed("a", "b"), nil, func(results []outcome.Result) error {
			t.Errorf("results of a batch that was cut short: %+v", results)
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
