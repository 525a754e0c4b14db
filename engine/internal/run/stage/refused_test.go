package stage_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestRefusals: a voter's service refuses an item. The voter abstains if another voter has voted;
// otherwise the item fails.
func TestRefusals(t *testing.T) {
	filter := errors.New("the server answered 400: a content filter took it")
	picky := runtest.Voter("picky", func(item sdk.Item) ([]string, error) {
		if item.Text == "rude" {
			return nil, sdk.Refused(filter)
		}
		return []string{"picky"}, nil
	})
	refuse := func(sdk.Item) ([]string, error) { return nil, sdk.Refused(filter) }
	const elect = `
		elect "e" { use = "majority" }`
	tests := map[string]struct {
		body    string
		want    []string // of "kind" and "rude": the answer, or !error
		votes   []string // of "rude"
		skipped int
	}{
		"alone": {`
		sample "v" { use = "picky" }`, []string{"picky", "!sample.v: " + filter.Error()}, []string{}, 0},
		"beside another": {`
		sample "v" { use = "picky" }
		sample "o" { use = "other" }`, []string{"picky", "other"}, []string{"v: , " + filter.Error(), "o: other, "}, 1},
		"below another": {`
		sample "o" { use = "other" }
		sample "v" { use = "picky" }`, []string{"other", "other"}, []string{"o: other, ", "v: , " + filter.Error()}, 1},
		"another that is not asked": {`
		sample "v" { use = "picky" }
		sample "o" {
			use  = "other"
			when = "item.text == \"kind\""
		}`, []string{"picky", "!sample.v: " + filter.Error()}, []string{}, 0},
		"another that is refused too": {`
		sample "v" { use = "picky" }
		sample "w" { use = "refuses" }`, []string{"picky", "!sample.v: " + filter.Error()}, []string{}, 1},
		"another that is off": {`
		sample "v" { use = "picky" }
		sample "o" {
			use     = "other"
			enabled = false
		}`, []string{"picky", "!sample.v: " + filter.Error()}, []string{}, 0},
		"a fallback": {`
		sample "v" {
			use = "picky"
			fallback "f" {
				when = "failed"
				use  = "second"
			}
		}
		sample "o" { use = "other" }`, []string{"picky", "second"}, []string{"v: second, ", "o: other, "}, 0},
		"skipped": {`
		sample "v" {
			use      = "picky"
			on_error = "skip"
		}
		sample "o" { use = "other" }`, []string{"picky", "other"}, []string{"o: other, "}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := runtest.Pipeline(t, runtest.Stages(picky, runtest.Voter("other", runtest.Always("other")), runtest.Voter("second", runtest.Always("second")), runtest.Voter("refuses", refuse)), test.body+elect)
			var got, votes []string
			results, totals := runtest.Taken(t, r, runtest.Feed("kind", "rude"))
			for _, r := range results {
				answer := r.Answer
				if r.Failure != nil {
					answer = "!" + r.Failure.Error()
				}
				got, votes = append(got, answer), []string{}
				for _, v := range r.Votes {
					votes = append(votes, fmt.Sprintf("%s: %s, %s", v.Voter, v.Answer, v.Reason))
					if (v.Reason == "") != v.Accepted || v.Reason != "" && v.Weight != 0 {
						t.Errorf("vote %+v", v)
					}
				}
			}
			must.Equal(t, "answers and votes", [][]string{test.want, test.votes}, [][]string{got, votes})
			skipped := 0
			for _, s := range totals.Skipped {
				skipped += s.Items
				if s.Stage != "sample.v" && s.Stage != "sample.w" || !strings.Contains(s.First.Error(), filter.Error()) {
					t.Errorf("skipped %+v", s)
				}
			}
			if skipped != test.skipped || totals.Failed != strings.Count(strings.Join(got, "\n"), "!") {
				t.Errorf("%d skipped, %d failed", skipped, totals.Failed)
			}
		})
	}
}
