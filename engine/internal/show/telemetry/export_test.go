package telemetry_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/result"

	"github.com/racflow/racflow/engine/internal/show/telemetry"
	"github.com/racflow/racflow/sdk"
)

// few makes spans of all kinds: a command with a batch of two items, a failed call, a request to a
// service, and a request to a server.
func few(t *testing.T, tel *telemetry.Telemetry) {
	ctx, end := tel.Command(t.Context(), "racflow run")
	within, done := tel.Batch(ctx, "p", []outcome.ObservedItem{{ID: "a"}, {ID: "a"}, {ID: "left"}})
	called, ended := tel.Call(within, progress.StageCall{Pipeline: "p", Stage: "sample.llm", Use: "openai", Model: "m", Kind: sdk.KindSample, Rows: 2})
	sent, replied := tel.Request(called, outcome.ServiceRequest{Pipeline: "p", Stage: "sample.llm", Use: "openai", Model: "m", Kind: sdk.KindSample, Endpoint: "https://example.org/v1"})
	sent()
	replied(outcome.ServiceReply{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: 5, OutputTokens: 2}, Cost: .5})
	ended(progress.CallDone{Err: sdk.Invalid(fmt.Errorf("it says the word"))})
	missing := []*outcome.Failure{{Stage: "sample.llm"}}
	done([]outcome.Result{
		{ID: "a", Text: "the word", Answer: "x", Verdict: result.Verdict{Flagged: true}, Cost: .5, Missing: missing, Votes: []result.Vote{{Voter: "v", Answer: "y"}, {Voter: "w", Answer: "y"}, {Voter: "w", Answer: "x", Accepted: true}}},
		{ID: "a", Failure: &outcome.Failure{Err: fmt.Errorf("it says the word")}},
	})
	_, served := tel.Serving(httptest.NewRequest(http.MethodPost, "/v1/x", nil), "/v1/{name}")
	served(503)
	end(nil)
}

// Lines of a file are valid requests to a collector: in the protocol's JSON, with hexadecimal ids
// instead of base64, all fields are known.
func TestFile(t *testing.T) {
	tel, spans := watched(t, telemetry.Options{Texts: true, Version: "1.2.3"})
	few(t, tel)
	_, text := spans()
	ids := regexp.MustCompile(`"(\w*[iI]d)":"([0-9a-f]+)"`)
	text = ids.ReplaceAllStringFunc(text, func(s string) string {
		m := ids.FindStringSubmatch(s)
		raw, err := hex.DecodeString(m[2])
		if err != nil {
			t.Error(err)
		}
		return fmt.Sprintf("%q:%q", m[1], base64.StdEncoding.EncodeToString(raw))
	})
	var request collector.ExportTraceServiceRequest
	if err := protojson.Unmarshal([]byte(strings.TrimSpace(text)), &request); err != nil {
		t.Fatal(err)
	}
	all := request.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()
	if len(all) != 8 || request.GetResourceSpans()[0].GetScopeSpans()[0].GetScope().GetVersion() != "1.2.3" {
		t.Errorf("%v", &request)
	}
	for _, s := range all {
		if len(s.GetTraceId()) != 16 || len(s.GetSpanId()) != 8 || s.GetEndTimeUnixNano() < s.GetStartTimeUnixNano() || s.GetStartTimeUnixNano() == 0 {
			t.Errorf("%v", s)
		}
	}
}

// The collector that the environment names gets the spans, with the configured headers. A collector
// that refuses is reported once, without the headers, and does no harm.
func TestCollector(t *testing.T) {
	var mu sync.Mutex
	var got []string
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &request); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, r := range request.GetResourceSpans() {
			for _, a := range r.GetResource().GetAttributes() {
				got = append(got, a.GetKey()+"="+a.GetValue().GetStringValue())
			}
			for _, s := range r.GetScopeSpans()[0].GetSpans() {
				got = append(got, s.GetName())
			}
		}
		got = append(got, r.URL.Path+" "+r.Header.Get("X-Key"))
		w.WriteHeader(status)
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "X-Key="+key)
	t.Setenv("OTEL_SERVICE_NAME", "mine")
	for _, status = range []int{http.StatusOK, http.StatusForbidden} {
		got = nil
		var log bytes.Buffer
		tel, err := telemetry.New(t.Context(), telemetry.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		few(t, tel)
		if err := tel.Close(t.Context()); err != nil {
			t.Error(err)
		}
		all := strings.Join(got, "\n")
		for _, want := range []string{"batch p", "item p", "sample.llm", "chat m", "racflow run", "POST /v1/{name}", "service.name=mine", "/v1/traces " + key} {
			if !strings.Contains(all, want) {
				t.Errorf("the collector did not get %q:\n%s", want, all)
			}
		}
		if n := strings.Count(log.String(), "could not be exported"); n != map[int]int{200: 0, 403: 1}[status] || strings.Contains(log.String(), key) {
			t.Errorf("%d: the log has %q", status, log.String())
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]struct{ variable, value, want string }{
		"gRPC":         {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "4318"},
		"another form": {"OTEL_TRACES_EXPORTER", "zipkin", "--trace FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv(c.variable, c.value)
			if _, err := telemetry.New(t.Context(), telemetry.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v does not say %q", err, c.want)
			}
			t.Setenv("OTEL_SDK_DISABLED", "true")
			if tel, err := telemetry.New(t.Context(), telemetry.Options{}); err != nil || tel.Traces() {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := telemetry.New(t.Context(), telemetry.Options{TraceFile: t.TempDir()}); err == nil {
		t.Error("a folder is written to")
	}
}

// Items of a batch are counted by outcome; unanswered items are not counted.
func TestCounts(t *testing.T) {
	tel, err := telemetry.New(t.Context(), telemetry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	few(t, tel)
	tel.Queued("p", 3)
	tel.Queued("p", -1)
	tel.Restarted("sample.v", "it was killed")
	tel.Swapped("p")
	got := values(t, tel.Registry())
	for name, want := range map[string]float64{
		"racflow_items_total{outcome=answered,pipeline=p}": 1, "racflow_items_total{outcome=failed,pipeline=p}": 1,
		"racflow_items_total{outcome=undecided,pipeline=p}": 0, "racflow_flagged_total{pipeline=p}": 1,
		"racflow_abstentions_total{pipeline=p,stage=sample.v}": 1, "racflow_abstentions_total{pipeline=p,stage=sample.w}": 0,
		"racflow_stage_errors_total{pipeline=p,stage=sample.llm}": 2, "racflow_queue_items{pipeline=p}": 2,
		"racflow_stage_restarts_total{stage=sample.v}": 1, "racflow_knowledge_swaps_total{pipeline=p}": 1,
		"racflow_items_in_progress{pipeline=p}": 0, "racflow_cost_total{pipeline=p,stage=sample.llm}": .5,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

func TestListen(t *testing.T) {
	for address, want := range map[string]bool{
		"0": true, ":0": true, "127.0.0.1:0": true, "localhost:0": true, "[::1]:0": true,
		"0.0.0.0:0": false, "[::]:0": false, "192.0.2.1:0": false, "many": false,
	} {
		l, err := telemetry.Listen(address)
		if err == nil {
			if !l.Addr().(*net.TCPAddr).IP.IsLoopback() {
				t.Errorf("%q listens on %s", address, l.Addr())
			}
			_ = l.Close()
		}
		if (err == nil) != want && address != "[::1]:0" { // not every machine has IPv6
			t.Errorf("%q: %v", address, err)
		}
	}
}

// Metrics are served at one path, until the listener is closed.
func TestServe(t *testing.T) {
	tel, err := telemetry.New(t.Context(), telemetry.Options{Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := telemetry.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { tel.Serve(l, slog.New(slog.DiscardHandler)); close(done) }()
	for path, want := range map[string]string{"/metrics": `racflow_build_info{go_version="go`, "/other": "404 page not found"} {
		res, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: %v, %s", path, err, body)
		}
	}
	_ = l.Close()
	<-done
}
