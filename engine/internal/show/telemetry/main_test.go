package telemetry_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/racflow/racflow/engine/internal/show/telemetry"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/plugins"
)

var builtin workspace.Builtin

func TestMain(m *testing.M) {
	builtin = workspace.Serve(plugins.All())
	os.Exit(m.Run())
}

// span is a span in a file of traces, with the fields that tests check.
type span struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	Links                               []struct{ TraceID, SpanID string }
	Attributes                          []struct {
		Key   string
		Value struct {
			StringValue string
			IntValue    string
			DoubleValue float64
		}
	}
	Status struct {
		Code    int
		Message string
	}
}

func (s span) text(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

// watched makes a Telemetry with a file of traces. spans closes it, and returns its spans with the
// file's text.
func watched(t *testing.T, o telemetry.Options) (tel *telemetry.Telemetry, spans func() ([]span, string)) {
	t.Helper()
	o.TraceFile = filepath.Join(t.TempDir(), "traces.jsonl")
	tel, err := telemetry.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return tel, func() ([]span, string) {
		if err := tel.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(o.TraceFile)
		if err != nil {
			t.Fatal(err)
		}
		return spansOf(t, string(text)), string(text)
	}
}

func spansOf(t *testing.T, text string) (all []span) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		var request struct {
			ResourceSpans []struct{ ScopeSpans []struct{ Spans []span } }
		}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			t.Fatal(err)
		}
		for _, r := range request.ResourceSpans {
			for _, s := range r.ScopeSpans {
				all = append(all, s.Spans...)
			}
		}
	}
	return all
}

// named returns the spans with a name.
func named(all []span, name string) (some []span) {
	for _, s := range all {
		if s.Name == name {
			some = append(some, s)
		}
	}
	return some
}

// values returns the metrics, by name and labels as in the exposition; for a histogram the number
// of observations.
func values(t *testing.T, r prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			all[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = valueOf(m)
		}
	}
	return all
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	}
	return float64(m.GetHistogram().GetSampleCount())
}
