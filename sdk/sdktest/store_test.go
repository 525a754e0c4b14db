package sdktest

import (
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/internal/harness"
	"github.com/racflow/racflow/sdk/sdktest/internal/stores"
)

func TestGoodStorePasses(t *testing.T) { Stage(t, memoryStage(""), "{}") }

func TestDenseStorePasses(t *testing.T) {
	Stage(t, memoryStage(""), "{}", DenseOnly("the test says so"), Tolerance(1e-4),
		Without("content", "it passes above"), Without("scan", "it passes above"), Without("write", "it passes above"))
}

// TestFaultyStoresFail checks that a store which does one thing wrong fails the
// case that is there for it.
func TestFaultyStoresFail(t *testing.T) {
	for fault, c := range map[string]struct{ path, want string }{
		"takes products for cosines": {"search/dense", "score"},
		"finds all by a zero vector": {"search/nothing to find", "candidates, want 0"},
		"other b":                    {"search/lexical/as put", "score"},
		"counts the dead":            {"search/lexical/after changes", "score"},
		"takes a query's word once":  {"search/lexical/as put", "score"},
		"queries through standard":   {"search/every analyzer/code", "score"},
		"ties in any order":          {"search/ties by id", "the 5 best"},
		"filters after the cut":      {"filters/label", ", 3 candidates"},
		"statistics of the selected": {"filters/label", "score"},
		"not of what is missing":     {"filters/not", "candidates, want"},
		"prefixes are patterns":      {"filters/metadata of odd strings", `startsWith "%"`},
		"filter of the first query":  {"filters/one for each query", `"no such label": 5 candidates, want 0`},
		"numbers become strings":     {"filters/number", "candidates, want"},
		"first of the same id wins":  {"write/last of the same id wins", `entry "a"`},
		"visible before commit":      {"write/visible only after commit", "301 entries, want 300"},
		"open keeps the uncommitted": {"write/open drops the uncommitted", "want"},
		"forgets the note":           {"write/commit without changes", "note"},
		"forgets at a restart":       {"restart/committed stays", "open: 0 entries"},
		"cuts long texts":            {"content/empty and long texts", "(32768 bytes)"},
		"ends strings at NUL":        {"content/zero bytes", "label"},
		"pages by number":            {"scan/while others change", "pages"},
		"gets an id once":            {"scan/get in the order of the ids", "place 3"},
		"lists without notes":        {"list/list", "note"},
		"drops nothing":              {"list/drop", "after it was dropped"},
		"opens with any analyzer":    {"refuse/other schema", "as code: got <nil>"},
		"takes NaN":                  {"refuse/bad entries", "NaN: got <nil>"},
		"writes half of a bad batch": {"refuse/bad entries", "entries, want 1"},
		"a long text fails all":      {"refuse/too long", "want sdk.RowErrors"},
		"a bad query fails all":      {"refuse/bad queries", "want sdk.RowErrors"},
		"mixes collections":          {"together/collections do not mix", "want"},
		"shows a commit bit by bit":  {"together/readers see one commit", "beside"},
		"deaf":                       {"together/cancelled search", "after it was cancelled"},
		"fails when cancelled":       {"together/cancelled put", "return the context's error"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			r := &recorder{T: t, only: c.path}
			stores.Run(r, memoryStage(fault), "{}", harness.NewOptions())
			if all := r.faults(); !strings.Contains(all, c.want) {
				t.Errorf("%s: got %q, want %q in it", c.path, all, c.want)
			}
		})
	}
}

func TestStoreWithoutFiltersSkipsThem(t *testing.T) {
	stage := memoryStage("not of what is missing")
	stage.Filters = false
	r := &recorder{T: t, only: "filters"}
	stores.Run(r, stage, "{}", harness.NewOptions())
	if all := r.faults(); all != "" {
		t.Error(all)
	}
}

func TestWithout(t *testing.T) {
	o := harness.NewOptions()
	Without("a/b", "it cannot")(o)
	Without("c", "it cannot either")(o)
	ran := map[string]bool{}
	root := harness.Subtests(t, o)
	root.Run("a", func(t harness.Tester) {
		t.Run("b", func(harness.Tester) { ran["a/b"] = true })
		t.Run("d", func(harness.Tester) { ran["a/d"] = true })
	})
	if ran["a/b"] || !ran["a/d"] {
		t.Errorf("ran %v", ran)
	}
	if missing := o.Unmet(); fmt.Sprint(missing) != "[c]" {
		t.Errorf("left out and not there: %v", missing)
	}
}

// recorder is a tester that keeps errors to itself. It runs the subtests of one
// path.
type recorder struct {
	*testing.T
	only, path string
	parent     *recorder

	mu     sync.Mutex
	failed bool
	lines  []string
}

func (r *recorder) Run(name string, test func(harness.Tester)) bool {
	below := path.Join(r.path, name)
	if !strings.HasPrefix(below+"/", r.only+"/") && !strings.HasPrefix(r.only+"/", below+"/") {
		return true
	}
	sub := &recorder{T: r.T, only: r.only, path: below, parent: r}
	done := make(chan struct{})
	go func() { // FailNow ends the goroutine
		defer close(done)
		test(sub)
	}()
	<-done
	return !sub.Failed()
}

func (r *recorder) faults() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

func (r *recorder) record(line string) {
	for ; r != nil; r = r.parent {
		r.mu.Lock()
		r.failed, r.lines = true, append(r.lines, line)
		r.mu.Unlock()
	}
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Fail()                     { r.record("failed") }
func (r *recorder) FailNow()                  { r.record("failed"); runtime.Goexit() }
func (r *recorder) Error(a ...any)            { r.record(fmt.Sprint(a...)) }
func (r *recorder) Errorf(f string, a ...any) { r.record(fmt.Sprintf(f, a...)) }
func (r *recorder) Fatal(a ...any)            { r.record(fmt.Sprint(a...)); runtime.Goexit() }
func (r *recorder) Fatalf(f string, a ...any) { r.record(fmt.Sprintf(f, a...)); runtime.Goexit() }
func (r *recorder) Skip(...any)               { runtime.Goexit() }
func (r *recorder) Skipf(string, ...any)      { runtime.Goexit() }
func (r *recorder) SkipNow()                  { runtime.Goexit() }

var _ sdk.Store = (*memory)(nil)
