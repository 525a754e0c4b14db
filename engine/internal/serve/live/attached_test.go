package live

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// attachedTo returns the intent pipeline over an external collection.
func attachedTo(path string) string {
	return strings.NewReplacer(`  source { path = "rows.tsv" }`+"\n", "", `use = "hashing"`, `use = "alphabet"`,
		`store { use = "local" }`, "store {\n    use = \"theirs_file\"\n    config { collection = \""+path+"\" }\n  }").Replace(intent)
}

// collection returns the owner's collection, with one label for all entries.
func collection(t *testing.T, id, label string, entries int) string {
	t.Helper()
	now := enginetest.Filed{ID: id}
	for i := range entries {
		text := "apple " + strings.Repeat("b", i)
		now.Entries = append(now.Entries, sdk.Entry{ID: text, Text: text, Label: label, Vector: enginetest.AlphabetOf(text)})
	}
	return string(must.Get(json.Marshal(now))(t))
}

// An attached collection is checked regularly. A new version takes over if another collection has its name, or if its
// number of entries has changed much. Other changes by the owner are visible immediately.
func TestWatchAttached(t *testing.T) {
	path := filepath.Join(t.TempDir(), "collection.json")
	write(t, path, collection(t, "1", "fruit", 10))
	var log bytes.Buffer
	dir, o := folder(t, map[string]string{"p.hcl": attachedTo(path)})
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	p := started(t, o, filepath.Join(dir, "p.hcl")).pipeline("intent")
	first := p.Status()
	if len(first.Knowledge) != 1 || !first.Knowledge[0].Attached || ask(t, p, "apple") != "fruit" {
		t.Fatalf("%+v", first)
	}
	now := time.Now()
	w := watcher{pipeline: p}
	look := func(after time.Duration) (took bool) {
		t.Helper()
		before := p.Status().Since
		now = now.Add(after)
		w.checkFiles(now)
		return !p.Status().Since.Equal(before)
	}
	for _, step := range []struct {
		name    string
		content string // of the file; empty: unchanged
		after   time.Duration
		took    bool
	}{
		{"nothing", "", attachedEvery, false},
		{"a few more", collection(t, "1", "fruit", 12), attachedEvery, false},
		{"another one, too early", collection(t, "2", "dessert", 10), lookEvery, false},
		{"another one", "", attachedEvery, true},
		{"nothing again", "", attachedEvery, false},
		{"many more", collection(t, "2", "dessert", 13), attachedEvery, true},
		{"no collection any more", "{", attachedEvery, false},
		{"nor now", "", attachedEvery, false},
		{"there again", collection(t, "2", "dessert", 13), attachedEvery, false},
		{"another dimension", `{"ID": "3", "Entries": [{"ID": "a", "Text": "a", "Vector": [1]}]}`, attachedEvery, false},
		{"the first look after a failure", "", lookEvery, false},
		{"mended", collection(t, "4", "fruit", 13), attachedEvery, true},
	} {
		if step.content != "" {
			write(t, path, step.content)
		}
		if took := look(step.after); took != step.took {
			t.Errorf("%s: another version took over: %t", step.name, took)
		}
		if step.name == "another dimension" && !strings.Contains(p.Status().Error, "have 1 dimensions") {
			t.Errorf("%s: %q", step.name, p.Status().Error)
		}
	}
	if got := ask(t, p, "apple"); got != "fruit" || strings.Join(p.Status().Labels, " ") != "fruit" || p.Status().Error != "" {
		t.Errorf("%q, %+v", got, p.Status())
	}
	if n := strings.Count(log.String(), "could not be looked at"); n != 1 {
		t.Errorf("it was said %d times that the collection is gone:\n%s", n, log.String())
	}
}

// A collection that cannot be opened is tried again, less and less often: its owner may repair it without a
// change of a file.
func TestWatchUnusable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "collection.json")
	write(t, path, `{"ID": "1", "Entries": [{"ID": "a", "Text": "a", "Vector": [1]}]}`)
	dir, o := folder(t, map[string]string{"p.hcl": attachedTo(path)})
	s := must.Get(Open(t.Context(), []string{filepath.Join(dir, "p.hcl")}, o))(t)
	defer s.Close()
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "have 1 dimensions") {
		t.Fatalf("%v", err)
	}
	p := s.pipeline("intent")
	w, now := watcher{pipeline: p}, time.Now()
	for range 9 { // as often as it would be in vain
		w.checkFiles(now)
		w.checkFiles(now)
		now = now.Add(again.Max)
	}
	if w.failures < 5 || !strings.Contains(p.Status().Error, "have 1 dimensions") {
		t.Errorf("%d failures, %+v", w.failures, p.Status())
	}
	write(t, path, collection(t, "1", "fruit", 10))
	w.checkFiles(now)
	w.checkFiles(now.Add(again.Max))
	if got := ask(t, p, "apple"); got != "fruit" || p.Status().Error != "" {
		t.Errorf("%q, %+v", got, p.Status())
	}
}
