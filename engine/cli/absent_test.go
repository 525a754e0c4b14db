package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// TestNeverStarted: a run does not wait for minutes for a server that was never started.
func TestNeverStarted(t *testing.T) {
	long(t)
	p := newPaidItems(t, 20)
	p.change(t, `  sample "knn" { use = "neighbours" }`, "", `  sample "prototype" { use = "prototype" }`, "")
	begun := time.Now()
	p.server.URL = "http://127.0.0.1:1/v1" // nothing listens there
	code, stderr := p.run(t)
	if took := time.Since(begun); code != 3 && code != 1 || took > time.Minute {
		t.Errorf("exit code %d after %s", code, took)
	}
	if !strings.Contains(stderr, "no server has listened at http://127.0.0.1:1/v1 for 1") || !strings.Contains(stderr, "start it, or set base_url") {
		t.Error(stderr)
	}
}

// TestRefusedEverywhere: a voter whose service refuses every item has failed, and the report says
// what to do. If the service answers one item, the voter has not failed.
func TestRefusedEverywhere(t *testing.T) {
	for name, test := range map[string]struct {
		fault modelserver.Fault
		code  int
	}{
		"every item":    {modelserver.Fault{Share: 1}, 3},
		"all but a few": {modelserver.Fault{If: func(a modelserver.Ask) bool { return !strings.Contains(a.Text(), "number 003") }}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPaidItems(t, 12)
			f := test.fault
			f.Kind, f.Status, f.Code, f.Message = modelserver.Status, http.StatusBadRequest, "exceed_context_size_error", "the request exceeds the available context size"
			p.server = modelserver.Serve(t, modelserver.Options{Answer: p.answer, Faults: []modelserver.Fault{f}})
			code, stderr := p.run(t)
			failed := strings.Contains(stderr, "sample.llm failed: its service refused every item")
			if code != test.code || failed != (code == 3) || !strings.Contains(stderr, "items continued without it") || !strings.Contains(stderr, "fewer or shorter examples") {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
		})
	}
}
