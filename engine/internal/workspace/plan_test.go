package workspace_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/workspace"
)

// TestProgress: the number of items in a file is estimated while the file is read. It is known at
// its end, or from the limit.
func TestProgress(t *testing.T) {
	const items = 4000
	var input strings.Builder
	input.WriteString("text\n")
	for i := range items {
		fmt.Fprintf(&input, "red apple number %d %s\n", i, strings.Repeat("and more ", 20))
	}
	for name, limit := range map[string]int{"all": 0, "limited": 100} {
		t.Run(name, func(t *testing.T) {
			path, o := write(t, knowledgeBlock+election)
			o.Input, o.Limit = beside(t, path, "items.tsv", input.String()), limit
			var mu sync.Mutex
			var all []workspace.Progress
			o.Events.Progress = func(s workspace.Progress) {
				mu.Lock()
				defer mu.Unlock()
				if s.Doing == "answering" {
					all = append(all, s)
				}
			}
			p := mustOpen(t, path, o)
			defer p.Close()
			if _, err := p.Work(t.Context(), func([]outcome.Result) error { return nil }, nil); err != nil {
				t.Fatal(err)
			}
			want, about := int64(items), 0
			if limit > 0 {
				want = int64(limit)
			}
			done := int64(0)
			for i, s := range all {
				if i > 0 && s == all[i-1] || s.Done < done || s.Unit != "item" || s.About && (s.Total < want/2 || s.Total > 2*want) || !s.About && s.Total != 0 && s.Total != want {
					t.Errorf("%+v after %d", s, done)
				}
				if done = s.Done; s.About {
					about++
				}
			}
			if last := all[len(all)-1]; last.Done != want || last.Total != want || last.About {
				t.Errorf("at the end %+v", last)
			}
			if limit == 0 && about == 0 {
				t.Error("nothing is estimated")
			}
		})
	}
}
