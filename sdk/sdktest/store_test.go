package sdktest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestGoodStorePasses(t *testing.T) {
	must.NoRace(t)
	Stage(t, memoryStage(""), "{}")
}

func TestDenseStorePasses(t *testing.T) {
	must.NoRace(t)
	Stage(t, memoryStage(""), "{}", DenseOnly("the test says so"), Tolerance(1e-4),
		Without("content", "it passes above"), Without("scan", "it passes above"), Without("write", "it passes above"))
}

// TestFaultyStoresFail: a store with one fault fails the case for this fault.
func TestFaultyStoresFail(t *testing.T) {
	for fault, c := range map[string]struct{ path, want string }{
		"takes products for cosines":            {"search/dense", "score"},
		"finds all by a zero vector":            {"search/nothing to find", "candidates, want 0"},
		"other b":                               {"search/lexical/as put", "score"},
		"counts the dead":                       {"search/lexical/after changes", "score"},
		"takes a query's word once":             {"search/lexical/as put", "score"},
		"queries through standard":              {"search/every analyzer/code", "score"},
		"ties in any order":                     {"search/ties by id", "place 0"},
		"filters after the cut":                 {"filters/is", ", 3 candidates"},
		"statistics of the selected":            {"filters/is", "score"},
		"not of what is missing":                {"filters/not", "candidates, want"},
		"prefixes are patterns":                 {"filters/odd strings", `startsWith "%"`},
		"filter of the first query":             {"filters/is", "candidates, want"},
		"numbers become strings":                {"filters/is", "metadata"},
		"first of the same id wins":             {"write/last of the same id wins", `entry "a"`},
		"visible before commit":                 {"write/visible only after commit", "301 entries, want 300"},
		"open keeps the uncommitted":            {"write/open drops the uncommitted", "should not be"},
		"forgets the note":                      {"write/commit without changes", "note"},
		"forgets at a restart":                  {"restart/committed stays", "open: 0 entries"},
		"cuts long texts":                       {"content/empty and long texts", "(32768 bytes)"},
		"ends strings at NUL":                   {"content/zero bytes", "label"},
		"pages by number":                       {"scan/while others change", "pages"},
		"gets an id once":                       {"scan/get in the order of the ids", "place 3"},
		"lists without notes":                   {"list/list", "note"},
		"drops nothing":                         {"list/drop", "want ["},
		"opens with any analyzer":               {"refuse/other schema", "as code: got <nil>"},
		"takes NaN":                             {"refuse/bad entries", "put 2 entries: got <nil>"},
		"writes half of a bad batch":            {"refuse/bad entries", "entries, want 1"},
		"a long text fails all":                 {"refuse/too long", "want sdk.RowErrors"},
		"a bad query fails all":                 {"refuse/bad queries", "want sdk.RowErrors"},
		"mixes collections":                     {"together/collections do not mix", "want"},
		"shows a commit bit by bit":             {"together/readers see one commit", "beside"},
		"overwrites what another process wrote": {"processes/one after the other", "want 3"},
		"deaf":                                  {"together/cancelled search", "after a cancelled call"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			if all := faults(t, memoryStage(fault), c.path, options()); !strings.Contains(all, c.want) {
				t.Errorf("%s says %q, not %q", c.path, all, c.want)
			}
		})
	}
}

func TestStoreWithoutFiltersSkipsThem(t *testing.T) {
	stage := memoryStage("not of what is missing")
	stage.Filters = false
	if all := faults(t, stage, "filters", options()); all != "" {
		t.Error(all)
	}
}

func TestWithout(t *testing.T) {
	o := &settings{Options: options()}
	Without("filters", "it has none")(t, o)
	Without("search/lexical/as put", "it cannot")(t, o)
	Without("c", "there is no such check")(t, o)
	for check, left := range map[string]bool{"filters": true, "search/lexical/as put": true, "search/every analyzer/code": false} {
		fault := map[bool]string{true: "not of what is missing", false: "queries through standard"}[check == "filters"]
		if all := faults(t, memoryStage(fault), check, o.Options); left != (all == "") {
			t.Errorf("%s: left out is to be %v: %s", check, left, all)
		}
	}
	if missing := o.Unmet(); fmt.Sprint(missing) != "[c]" {
		t.Errorf("left out and not there: %v", missing)
	}
}

var _ sdk.Store = (*memory)(nil)
