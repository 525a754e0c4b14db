package stage_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/sdk"
)

// TestAsk checks the calls of Options.Ask, and the answers if voters may not be asked, or only
// once.
func TestAsk(t *testing.T) {
	tests := map[string]struct {
		body    string
		allowed int      // number of allowed questions; the rest is refused
		want    []string // questions: line, and samples drawn before
		votes   []string // by line: voters
	}{
		"refused": {`
			sample "v" { use = "paid" }`, 0,
			[]string{"v 1 0", "v 2 0"}, []string{"free odd", "free odd"}},
		"allowed": {`
			sample "v" { use = "paid" }`, 9,
			[]string{"v 1 0", "v 2 0"}, []string{"free odd v", "free odd v"}},
		"its rule does not hold": {`
			sample "v" {
				use  = "paid"
				when = "margin < 0.5"
			}`, 9,
			[]string{"v 2 0"}, []string{"free odd", "free odd v"}},
		"its rule may hold once others are asked": {`
			sample "v" {
				use  = "paid"
				when = "item.text == '1'"
			}
			sample "w" {
				use  = "paid"
				when = "any(votes, .voter == 'v')"
			}`, 0,
			[]string{"v 2 0", "w 2 0"}, []string{"free odd", "free odd"}},
		"each resample": {`
			sample "v" {
				use       = "paid"
				resamples = 2
				accept    = "answer == 'another'"
			}`, 9,
			[]string{"v 1 0", "v 1 1", "v 1 2", "v 2 0", "v 2 1", "v 2 2"}, []string{"free odd v v v", "free odd v v v"}},
		"no resample": {`
			sample "v" {
				use       = "paid"
				resamples = 2
				accept    = "answer == 'another'"
				when      = "item.text == '1'"
			}`, 1,
			[]string{"v 2 0", "v 2 1"}, []string{"free odd", "free odd v"}},
		"a fallback that calls": {`
			sample "v" {
				use = "broken"
				fallback "paid" {
					when = "failed"
					use  = "paid"
				}
			}`, 0,
			[]string{"v 1 0", "v 2 0"}, []string{"free odd", "free odd"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var asked []string
			p := &paid{}
			p.money.Store(100)
			broken := runtest.Voter("broken", func(sdk.Item) ([]string, error) { return nil, errors.New("broken") })
			r := runtest.PipelineWith(t, runtest.Stages(p.stage("paid"), runtest.Voter("free", runtest.Always("free")), runtest.Voter("odd", odd), broken), run.Options{Options: stage.Options{
				Ask: func(s *pipeline.Stage, line int, item sdk.Item) bool {
					mu.Lock()
					defer mu.Unlock()
					asked = append(asked, fmt.Sprintf("%s %d %d", s.Name, line, item.Drawn))
					return len(asked) <= test.allowed
				},
			}}, free+test.body+"\nelect \"e\" { use = \"majority\" }")
			out, totals, err := part(t, r, nil, []string{"0", "1"}, 0)
			if err != nil || totals.Answered != 2 || totals.Provisional > 0 {
				t.Fatalf("%+v, %v", totals, err)
			}
			slices.Sort(asked)
			if d := cmp.Diff(test.want, asked); d != "" {
				t.Error(d)
			}
			var votes []string
			for line := range strings.Lines(out) {
				var voters []string
				for _, part := range strings.Split(line, `"voter":"`)[1:] {
					name, _, _ := strings.Cut(part, `"`)
					voters = append(voters, name)
				}
				votes = append(votes, strings.Join(voters, " "))
			}
			if d := cmp.Diff(test.votes, votes); d != "" {
				t.Error(d)
			}
		})
	}
}
