package rerank

import (
	"fmt"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestDecision(t *testing.T) {
	var many []sdk.Candidate
	for i := range 70 {
		many = append(many, sdk.Candidate{Text: fmt.Sprintf("passage %d", i)})
	}
	many[66].Text = "here it stands"
	few := []sdk.Candidate{{Text: "no"}, {}, {Text: "here it stands", Context: "above"}, {Text: "no, neither"}}
	for name, test := range map[string]struct {
		options    modelserver.Options
		config     string
		query      string
		candidates []sdk.Candidate
		want       []sdk.Ranked // the first ones
		left, asks int
		err        string
	}{
		"best first, and one without a text": {candidates: few, want: []sdk.Ranked{{Candidate: 2, Score: 0.9}, {Candidate: 0, Score: 0.1}, {Candidate: 3, Score: 0.1}}, left: 3, asks: 1},
		"decisions, some refused":            {config: `, "api": "decisions"`, options: modelserver.Options{Decides: modelserver.Decides{Refuses: true}}, candidates: few, want: []sdk.Ranked{{Candidate: 0, Score: 0.1}, {Candidate: 3, Score: 0.1}}, left: 2, asks: 1},
		"64 questions in a request":          {candidates: many, want: []sdk.Ranked{{Candidate: 66, Score: 0.9}, {Candidate: 0, Score: 0.1}}, left: 70, asks: 2},
		"nothing to rank by":                 {query: " ", candidates: few, err: "no text to rank by"},
		"no candidates":                      {},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Answer = func(modelserver.Ask, int) string { return "here it stands" }
			server := modelserver.Serve(t, test.options)
			stage, err := Decision().Open(t.Context(), sdk.Setup{Host: &apitest.Host{}}, fmt.Appendf(nil, `{"model": "m", "base_url": %q%s}`, server.URL, test.config))
			must.Do(t, err)
			if test.query == "" {
				test.query = "where does it stand"
			}
			for range 2 { // the second time from the cache
				ranked, err := stage.(sdk.Reranker).Rerank(t.Context(), sdk.Batch{Items: []sdk.Item{{Text: test.query, Candidates: test.candidates}}})
				if err != nil && test.err != "" && strings.Contains(err.Error(), test.err) {
					return
				}
				must.Do(t, err)
				must.Equal(t, "ranked, how many, requests", []any{test.want, test.left, test.asks}, []any{ranked[0][:len(test.want)], len(ranked[0]), server.Calls()})
			}
			for _, a := range server.Asks() {
				if a.Prompt != test.query || len(a.Questions) > 64 {
					t.Errorf("%q, %d questions", a.Prompt, len(a.Questions))
				}
			}
		})
	}
}
