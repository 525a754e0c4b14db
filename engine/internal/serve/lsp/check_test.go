package lsp

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/sdk"
)

// No plugin is started to describe itself.
func TestKnown(t *testing.T) {
	asked := &testCatalog{}
	k := known{asked}
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

// Lines end with \n, \r\n and \r; characters are counted in UTF-16 code units.
func TestPositions(t *testing.T) {
	text := newText("a𝄞b\r\nüx\rz\n")
	for offset, want := range map[int]position{
		0: {0, 0}, 1: {0, 1}, 5: {0, 3}, 6: {0, 4}, 8: {1, 0}, 10: {1, 1}, 11: {1, 2}, 12: {2, 0}, 14: {3, 0},
	} {
		if got := text.position(offset); got != want {
			t.Errorf("byte %d is at %v, want %v", offset, got, want)
		}
		if got := text.offset(want); got != offset {
			t.Errorf("%v is byte %d, want %d", want, got, offset)
		}
	}
	for p, want := range map[position]int{{0, 2}: 1, {0, 99}: 6, {2, 99}: 13, {9, 0}: 14, {-1, 0}: 14} {
		if got := text.offset(p); got != want {
			t.Errorf("%v is byte %d, want %d", p, got, want)
		}
	}
}

// TestLongText: a text that is too long for a pipeline file takes no further memory.
func TestLongText(t *testing.T) {
	src := []byte(strings.Repeat("a = 1\n", 1<<18))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	root := outline(src)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 || len(root.attrs) > 0 || root.body.to != len(src) {
		t.Errorf("%d bytes allocated, %d arguments", n, len(root.attrs))
	}
	if root := outline(src[:600]); len(root.attrs) != 100 {
		t.Errorf("%d arguments of a short one", len(root.attrs))
	}
}
