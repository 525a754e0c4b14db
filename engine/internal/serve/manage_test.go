package serve

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/show/telemetry"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestMetrics checks that the metrics count requests by route and status, and that each request is a
// span of its caller's trace. Neither the metrics nor the spans show a request's path or text.
func TestMetrics(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.jsonl")
	seen := must.Get(telemetry.New(t.Context(), telemetry.Options{TraceFile: file}))(t)
	_, url := serving(t, Options{Telemetry: seen}, newFake("p"))
	for _, path := range []string{"/v1/pipelines/p/answer", "/v1/pipelines/p/answer", "/v1/pipelines/q/answer", "/v1/answer/secret-path"} {
		trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		send(t, request(t, http.MethodPost, url+path, `{"text": "a secret text"}`, "Traceparent", trace))
	}
	_, text := send(t, request(t, http.MethodGet, url+"/metrics", ""))
	for _, want := range []string{
		`racflow_http_requests_total{code="200",route="POST /v1/pipelines/{name}/answer"} 2`,
		`racflow_http_requests_total{code="404",route="POST /v1/pipelines/{name}/answer"} 1`,
		`racflow_http_requests_total{code="404",route="none"} 1`,
		`racflow_http_seconds_count{route="POST /v1/pipelines/{name}/answer"} 3`,
		"racflow_build_info",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	must.Do(t, seen.Close(t.Context()))
	spans := must.Get(os.ReadFile(file))(t)
	if n := strings.Count(string(spans), "0af7651916cd43dd8448eb211c80319c"); n < 4 {
		t.Errorf("%d parts of the trace in\n%s", n, spans)
	}
	if strings.Contains(text+string(spans), "secret") {
		t.Error("it has what was asked")
	}
}
