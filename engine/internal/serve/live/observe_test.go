package live

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/racflow/racflow/engine/internal/show/telemetry"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// Items that travel together are counted, and each is a part of the trace of its request. The
// number of waiting items is counted, and so is a new version that takes over, as a swap.
func TestObserved(t *testing.T) {
	dir, o := folder(t, map[string]string{"p.hcl": intent, "rows.tsv": fruit})
	file := filepath.Join(dir, "traces.jsonl")
	tel := must.Get(telemetry.New(t.Context(), telemetry.Options{TraceFile: file}))(t)
	o.Engine.Observe = tel
	p := started(t, o, filepath.Join(dir, "p.hcl")).pipeline("intent")
	const trace = "0af7651916cd43dd8448eb211c80319c"
	ctx := sdk.WithTrace(t.Context(), sdk.Trace{Parent: "00-" + trace + "-b7ad6b7169203331-01"})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if r, err := p.Answer(ctx, workspace.Item{Text: "red apple"}); err != nil || r.Error != nil {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	all.Wait()
	if _, err := p.Retrieve(ctx, workspace.Item{Text: "blue car"}); err != nil {
		t.Error(err)
	}
	write(t, filepath.Join(dir, "rows.tsv"), fruit+"old bike\tvehicle\n")
	must.Do(t, p.Rebuild(t.Context()))
	got := exposed(t, tel)
	for _, want := range []string{
		`racflow_items_total{outcome="answered",pipeline="intent"} 51`, `racflow_queue_items{pipeline="intent"} 0`,
		`racflow_items_in_progress{pipeline="intent"} 0`, `racflow_knowledge_swaps_total{pipeline="intent"} 1`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	must.Do(t, tel.Close(t.Context()))
	text := read(t, file)
	if n := strings.Count(text, `"traceId":"`+trace+`","spanId"`); n < 51 || strings.Count(text, `"name":"item intent"`) != 51 {
		t.Errorf("%d spans are in the requests' trace", n)
	}
}

// exposed returns the metrics as they are served.
func exposed(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func read(t *testing.T, path string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(path))(t))
}
