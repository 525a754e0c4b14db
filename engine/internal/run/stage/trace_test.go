package stage_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestRulesAndRetries: a result says which rules decided something, and which stages were called
// again for its item.
func TestRulesAndRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := map[string]int{}
		moody := runtest.Voter("moody", func(item sdk.Item) ([]string, error) {
			asked[item.Text]++
			switch {
			case item.Text == "twice" && asked[item.Text] < 3:
				return nil, sdk.Transient(errors.New("too many requests"), 0)
			case item.Text == "down":
				return nil, errors.New("it is down")
			case item.Text == "again" && asked[item.Text] < 3:
				return []string{"no label"}, nil
			}
			return []string{"fruit"}, nil
		})
		bad := runtest.Voter("bad", func(item sdk.Item) ([]string, error) {
			if item.Text == "skipped" {
				return nil, errors.New("it cannot")
			}
			return []string{"fruit"}, nil
		})
		r := runtest.Pipeline(t, runtest.Stages(moody, bad, runtest.Voter("other", runtest.Always("vehicle"))), `
		batch = 1
		retrieve "near" {
			from  = knowledge.k
			top_k = 6
			keep  = "rank <= 4"
		}
		sample "knn" { use = "neighbours" }
		sample "moody" {
			use       = "moody"
			retries   = 3
			resamples = 2
			when      = "item.text != 'idle'"
			accept    = "answer in labels"
			fallback "other" {
				when = "failed"
				use  = "other"
			}
		}
		sample "bad" {
			use      = "bad"
			on_error = "skip"
		}
		elect "e" {
			use    = "majority"
			accept = "answer != 'vehicle'"
			flag   = "item.text == 'plain'"
		}`)
		keep := outcome.Rule{Stage: "retrieve.near", Rule: "keep", N: 2, Of: 6}
		want := map[string]struct {
			rules   []outcome.Rule
			retries []outcome.Retry
		}{
			"plain":   {[]outcome.Rule{keep, {Stage: "elect.e", Rule: "flag"}}, nil},
			"twice":   {[]outcome.Rule{keep}, []outcome.Retry{{Stage: "sample.moody", Why: "too many requests", Times: 2}}},
			"idle":    {[]outcome.Rule{keep, {Stage: "sample.moody", Rule: "when"}}, nil},
			"down":    {[]outcome.Rule{keep, {Stage: "sample.moody", Rule: "fallback", Name: "other", Why: "it is down"}, {Stage: "elect.e", Rule: "accept", N: 2, Of: 4}}, nil},
			"again":   {[]outcome.Rule{keep, {Stage: "sample.moody", Rule: "accept", N: 2, Of: 3}}, []outcome.Retry{{Stage: "sample.moody", Why: "none of its answers was accepted", Times: 2}}},
			"skipped": {[]outcome.Rule{keep, {Stage: "sample.bad", Rule: "on_error", Why: "it cannot"}}, nil},
		}
		texts := []string{"plain", "twice", "idle", "down", "again", "skipped"}
		for _, result := range runtest.Answered(t, r, texts...) {
			var rules []outcome.Rule
			for _, one := range result.Rules {
				if one.Stage == "elect.e" && one.Rule == "accept" && result.Text != "down" { // knn's answers do not matter here
					continue
				}
				rules = append(rules, one)
			}
			must.Equal(t, result.Text+": rules", want[result.Text].rules, rules)
			must.Equal(t, result.Text+": retries", want[result.Text].retries, result.Retries)
		}
	})
}

// A whole knowledge is not listed again for each item. If keep drops all candidates, the fallback
// searches, and its candidates are listed.
func TestWholeLists(t *testing.T) {
	const body = `
	retrieve "near" {
	  from  = knowledge.k
	  top_k = 6
	  whole = "true"
	  keep  = "item.text == 'all' or rank == 0"
	  fallback "search" {
	    when = "len(candidates) == 0"
	    keep = "true"
	  }
	}`
	for text, whole := range map[string]bool{"all": true, "fast car": false} {
		got := runtest.Found(t, runtest.Pipeline(t, runtest.Stages(), body), text)
		if len(got.Lists) != 1 || got.Lists[0].Whole != whole || len(got.Lists[0].Candidates) != 6 {
			t.Errorf("%s: lists %+v, %v", text, got.Lists, got.Failure)
		}
		if !whole && (got.Candidates[0].Text != text || !(got.Candidates[0].Dense > .9)) {
			t.Errorf("%s: found %+v", text, got.Candidates)
		}
	}
}
