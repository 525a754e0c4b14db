package telemetry_test

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/show/telemetry"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

const key = "sk-very-secret-key"

// asking is a pipeline with a local voter and a voter that calls a service.
func asking(t *testing.T, url string) (path string, o workspace.Options) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "p.hcl")
	for name, text := range map[string]string{
		path: fmt.Sprintf(`
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  retrieve "near" { from = knowledge.k }
  prompt "ask" {
    use = "chat"
    config { labels = "all" }
  }
  sample "vote" { use = "neighbours" }
  sample "llm" {
    use     = "openai"
    retries = 3
    config {
      base_url = %q
      model    = "gpt-test"
      api_key  = secret("TELEMETRY_TEST_KEY")
      probe    = false
    }
    price {
      input  = 2
      output = 10
    }
  }
  elect "e" {
    use    = "soft"
    accept = "answer in labels"
    flag   = "agreement < 2"
  }
}
`, url),
		filepath.Join(dir, "rows.tsv"): "text\tlabel\nred apple\tfruit\ngreen pear\tfruit\nblue car\tvehicle\nfast train\tvehicle\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TELEMETRY_TEST_KEY", key)
	return path, workspace.Options{Builtin: builtin, State: filepath.Join(dir, "state")}
}

func texts(all ...string) func(func(workspace.Item) bool) {
	return func(yield func(workspace.Item) bool) {
		for i, text := range all {
			if !yield(workspace.Item{ID: fmt.Sprintf("item-%d", i), Text: text}) {
				return
			}
		}
	}
}

// Metrics and spans of a run whose voter asks a service, once over the network and once from
// the cache, agree with the results, with what the service was asked and with one another.
func TestRun(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{
		Key:    key,
		Answer: func(modelserver.Ask, int) string { return "fruit" },
		Faults: []modelserver.Fault{{Kind: modelserver.Status, Status: http.StatusBadGateway, First: 1}},
	})
	path, o := asking(t, server.URL)
	tel, spans := watched(t, telemetry.Options{})
	o.Observe = tel
	p, err := workspace.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var usage sdk.Usage // of the first run: the second run reports the usage of the cached replies again
	for round := range 2 {
		for r, err := range p.Run(t.Context(), texts("a red pear", "a slow train", " ")) {
			if err != nil {
				t.Fatal(err)
			}
			if round == 0 {
				usage.InputTokens += r.Usage.InputTokens
			}
		}
	}
	spent, _ := p.Workspace().Spent()
	got := values(t, tel.Registry())
	for name, want := range map[string]float64{
		"racflow_items_total{outcome=answered,pipeline=p}":                4,
		"racflow_items_total{outcome=failed,pipeline=p}":                  2,
		"racflow_flagged_total{pipeline=p}":                               4,
		"racflow_items_in_progress{pipeline=p}":                           0,
		"racflow_stage_rows_total{pipeline=p,stage=retrieve.near}":        4,
		"racflow_stage_rows_total{pipeline=p,stage=embed.k}":              4,
		"racflow_stage_rows_total{pipeline=p,stage=store.k}":              4,
		"racflow_stage_errors_total{pipeline=p,stage=sample.llm}":         1,
		"racflow_retries_total{pipeline=p,stage=sample.llm}":              1,
		"racflow_requests_total{pipeline=p,stage=sample.llm,status=ok}":   2,
		"racflow_requests_total{pipeline=p,stage=sample.llm,status=down}": 1,
		"racflow_requests{pipeline=p,stage=sample.llm,state=sent}":        0,
		"racflow_requests{pipeline=p,stage=sample.llm,state=waiting}":     0,
		"racflow_cache_hits_total{pipeline=p,stage=sample.llm}":           2,
		"racflow_tokens_total{kind=input,pipeline=p,stage=sample.llm}":    float64(spent.Total.InputTokens),
		"racflow_tokens_total{kind=output,pipeline=p,stage=sample.llm}":   float64(spent.Total.OutputTokens),
		"racflow_tokens_total{kind=cached,pipeline=p,stage=sample.llm}":   float64(spent.Total.CachedTokens),
		"racflow_cost_total{pipeline=p,stage=sample.llm}":                 spent.Total.Cost,
		"racflow_stage_seconds{pipeline=p,stage=elect.e}":                 got["racflow_stage_seconds{pipeline=p,stage=sample.vote}"],
		"racflow_stage_rows_total{pipeline=p,stage=elect.e}":              4,
	} {
		if v, ok := got[name]; !ok || math.Abs(v-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	if spent.Total.InputTokens == 0 || spent.Total.Cost == 0 || spent.Total.InputTokens != usage.InputTokens {
		t.Errorf("spent %+v, results have %+v", spent.Total, usage)
	}
	if got["racflow_stage_seconds{pipeline=p,stage=elect.e}"] == 0 || got["racflow_knowledge_seconds{knowledge=k}"] == 0 {
		t.Errorf("%v", got)
	}
	for name := range got {
		if strings.Contains(name, "item-") || strings.Contains(name, "pear") {
			t.Errorf("%s has an item's id or text", name)
		}
	}
	all, text := spans()
	checkSpans(t, all, server.Asks())
	for _, hidden := range []string{key, "red pear", "slow train", "fruit"} {
		if strings.Contains(text, hidden) {
			t.Errorf("traces have %q", hidden)
		}
	}
}

// checkSpans follows the server's requests up to the items.
func checkSpans(t *testing.T, all []span, asks []modelserver.Ask) {
	t.Helper()
	byID := map[string]span{}
	for _, s := range all {
		byID[s.SpanID] = s
	}
	requests, items := named(all, "chat gpt-test"), named(all, "item p")
	if len(requests) != 3 || len(items) != 6 || len(asks) != 3 {
		t.Fatalf("%d requests, %d items, %d asked", len(requests), len(items), len(asks))
	}
	tokens := 0
	for _, s := range requests {
		must.Equal(t, "kind, model, operation, provider, address, whether there is a port", []any{3, "gpt-test", "chat", "openai", "127.0.0.1", true},
			[]any{s.Kind, s.text("gen_ai.request.model"), s.text("gen_ai.operation.name"), s.text("gen_ai.provider.name"), s.text("server.address"), s.text("server.port") != ""})
		if s.text("gen_ai.usage.input_tokens") != "" {
			tokens++
		} else if s.text("error.type") != "down" || s.Status.Code != 2 {
			t.Errorf("a request without tokens is %+v", s)
		}
		call := byID[s.ParentSpanID]
		within := byID[call.ParentSpanID]
		if call.Name != "sample.llm" || within.Name != "batch p" || call.TraceID != s.TraceID {
			t.Errorf("the request is in %q, which is in %q", call.Name, within.Name)
		}
		for _, l := range within.Links {
			if byID[l.SpanID].Name != "item p" {
				t.Errorf("a batch links %+v", byID[l.SpanID])
			}
		}
		if len(within.Links) == 0 {
			t.Error("a batch links nothing")
		}
	}
	if tokens != 2 {
		t.Errorf("%d requests have tokens", tokens)
	}
	for _, a := range asks {
		parts := strings.Split(a.Header.Get("Traceparent"), "-")
		if len(parts) != 4 || byID[parts[2]].Name != "sample.llm" || byID[parts[2]].TraceID != parts[1] {
			t.Errorf("the service got the traceparent %q", a.Header.Get("Traceparent"))
		}
	}
}

// An item with a trace is a part of that trace, and so is work of stages for this item alone.
func TestTraceOfItem(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{})
	path, o := asking(t, server.URL)
	tel, spans := watched(t, telemetry.Options{Texts: true})
	o.Observe = tel
	p, err := workspace.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	const trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	item := workspace.Item{ID: "one", Text: "a red pear", Trace: sdk.Trace{Parent: "00-" + trace + "-" + caller + "-01", State: "congo=t61rcWkgMzE"}}
	if _, err := p.Answer(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Answer(t.Context(), workspace.Item{ID: "two", Text: "a pear", Trace: sdk.Trace{Parent: "no trace"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Retrieve(t.Context(), workspace.Item{ID: "three", Text: "a car", Trace: item.Trace}); err != nil {
		t.Fatal(err)
	}
	all, text := spans()
	for _, name := range []string{"item p", "batch p", "retrieve.near", "embed.k", "sample.llm", "chat gpt-test"} {
		if !slices.ContainsFunc(named(all, name), func(s span) bool { return s.TraceID == trace }) {
			t.Errorf("no %q is in the caller's trace", name)
		}
	}
	items := named(all, "item p")
	must.Equal(t, "number of items", 3, len(items))
	must.Equal(t, "parents of the items, and whether the second is in the caller's trace", []any{caller, "", caller, false}, []any{items[0].ParentSpanID, items[1].ParentSpanID, items[2].ParentSpanID, items[1].TraceID == trace})
	must.Equal(t, "text and ID of the first, and whether it has an answer", []any{"a red pear", "one", true}, []any{items[0].text("racflow.text"), items[0].text("racflow.item.id"), items[0].text("racflow.answer") != ""})
	asks := server.Asks()
	if h := asks[0].Header; !strings.HasPrefix(h.Get("Traceparent"), "00-"+trace+"-") || h.Get("Tracestate") != "congo=t61rcWkgMzE" {
		t.Errorf("the service got %q and %q", h.Get("Traceparent"), h.Get("Tracestate"))
	}
	if strings.Contains(text, key) {
		t.Error("traces have a secret")
	}
}

// Without an observer, services get no header of a trace.
func TestUntraced(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{})
	path, o := asking(t, server.URL)
	p, err := workspace.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Answer(t.Context(), workspace.Item{Text: "a red pear"}); err != nil {
		t.Fatal(err)
	}
	if h := server.Asks()[0].Header; h.Get("Traceparent") != "" {
		t.Errorf("the service got %q", h.Get("Traceparent"))
	}
}

// A knowledge that cannot be built is counted.
func TestKnowledgeFails(t *testing.T) {
	path, o := asking(t, "http://127.0.0.1:1/v1")
	tel, _ := watched(t, telemetry.Options{})
	o.Observe = tel
	p, err := workspace.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := os.Remove(filepath.Join(filepath.Dir(path), "rows.tsv")); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Answer(t.Context(), workspace.Item{Text: "a"}); err == nil {
		t.Fatal("nothing is searched")
	}
	if n := values(t, tel.Registry())["racflow_knowledge_failures_total{knowledge=k}"]; n != 1 {
		t.Errorf("%v failures", n)
	}
}
