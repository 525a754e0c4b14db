package lsp

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// A text is checked when nobody types any more, the latest alone; documents do not
// wait for each other, and nothing is checked after stop.
func TestChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var ran []string
		var ended []error
		c := checks{ends: map[string]context.CancelFunc{}}
		c.run = func(ctx context.Context, uri string) {
			mu.Lock()
			ran = append(ran, uri+" "+time.Since(began).String())
			mu.Unlock()
			if uri == "slow" {
				<-ctx.Done()
				mu.Lock()
				ended = append(ended, ctx.Err())
				mu.Unlock()
			}
		}
		for range 5 { // letters, one each 60 ms
			c.start("a", pause)
			time.Sleep(60 * time.Millisecond)
		}
		c.start("b", 0)
		c.start("slow", 0)
		synctest.Wait()
		c.start("closed", pause)
		c.cancel("closed")
		time.Sleep(pause)
		c.stop()
		c.start("late", 0)
		synctest.Wait()
		if want := []string{"b 300ms", "slow 300ms", "a 340ms"}; !cmp.Equal(slices.Sorted(slices.Values(ran)), slices.Sorted(slices.Values(want))) {
			t.Errorf("checked %v, want %v", ran, want)
		}
		if len(ended) != 1 || ended[0] == nil {
			t.Errorf("the check under way was not ended: %v", ended)
		}
	})
}

// What no plugin has said before is not asked for.
func TestKnown(t *testing.T) {
	asked := &catalog{}
	k := newKnown(asked)
	text := in("retrieve \"r\" { from = knowledge.k }\nsample \"s\" { use = \"other/best\" }\nsample \"t\" {\n  use = \"mine/worst\"\n}\nsample \"u\" { use = \"mine/best\" }\nelect \"e\" { use = \"soft\" }")
	_, diags := pipeline.Load(t.Context(), "p.hcl", pipeline.Options{Dir: t.TempDir(), Text: []byte(text), Catalog: k, Vars: map[string]string{"key": "x"}})
	var all []string
	for _, d := range diags {
		all = append(all, d.Detail)
	}
	shown := strings.Join(all, "\n")
	if !strings.Contains(shown, `"other" has not described its stages yet`) || !strings.Contains(shown, `No plugin offers the sample stage "mine/worst"`) {
		t.Errorf("diagnostics:\n%s", shown)
	}
	for _, use := range asked.asked {
		if use == "other/best" || use == "mine/worst" {
			t.Errorf("%s was asked for", use)
		}
	}
	if !slices.Contains(asked.asked, "mine/best") {
		t.Errorf("a known plugin is not used: %v", asked.asked)
	}
	if _, ok := k.Stage(sdk.KindSample, "mine/best"); !ok {
		t.Error("a known stage is not there")
	}
}
