package rerank

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	nethttp "net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

const secret = "rk-0123456789abcdef"

// asked is a request as the server saw it.
type asked struct {
	path string
	auth string
	body map[string]any
}

// documents returns the texts of a request.
func (a asked) documents() (all []string) {
	for _, name := range []string{"documents", "texts"} {
		list, _ := a.body[name].([]any)
		for _, d := range list {
			all = append(all, d.(string))
		}
	}
	return all
}

// server records requests. It scores each document by its number of letters x, in the form of its
// API.
type server struct {
	*httptest.Server
	answer func(a asked, scores []float64) (status int, reply string)
	mu     sync.Mutex
	seen   []asked
}

func serve(t *testing.T, answer func(asked, []float64) (int, string)) *server {
	s := &server{answer: answer}
	s.Server = httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		raw, _ := io.ReadAll(r.Body)
		a := asked{path: r.URL.Path, auth: r.Header.Get("Authorization")}
		if err := json.Unmarshal(raw, &a.body); err != nil || r.Method != nethttp.MethodPost {
			t.Errorf("%s %s: %v", r.Method, raw, err)
		}
		s.mu.Lock()
		s.seen = append(s.seen, a)
		s.mu.Unlock()
		var scores []float64
		for _, d := range a.documents() {
			scores = append(scores, float64(strings.Count(d, "x"))/10)
		}
		status, reply := s.answer(a, scores)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, reply)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) requests() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// entries returns scores as a list of JSON objects, best first, as services send them.
func entries(scores []float64, format string) string {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(100 * (scores[b] - scores[a])) })
	var all []string
	for _, i := range order {
		all = append(all, fmt.Sprintf(format, i, scores[i]))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

const relevance = `{"index": %d, "relevance_score": %g}`

// published are the forms of the services' replies, from their references.
var published = map[string]func([]float64) string{
	"cohere": func(s []float64) string {
		return `{"id": "a1", "results": ` + entries(s, relevance) + `, "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}}`
	},
	"jina": func(s []float64) string {
		return `{"model": "m", "object": "list", "usage": {"total_tokens": 815}, "results": ` + entries(s, relevance) + `}`
	},
	"voyage": func(s []float64) string {
		return `{"object": "list", "data": ` + entries(s, `{"relevance_score": %[2]g, "index": %[1]d}`) + `, "model": "m", "usage": {"total_tokens": 815}}`
	},
	"tei": func(s []float64) string { return entries(s, `{"index": %d, "score": %g}`) },
	"vllm": func(s []float64) string {
		return `{"id": "rerank-1", "model": "m", "usage": {"total_tokens": 815}, "results": ` +
			entries(s, `{"index": %d, "document": {"text": "...", "multi_modal": null}, "relevance_score": %g}`) + `}`
	},
	"llamacpp": func(s []float64) string {
		return `{"model": "m", "object": "list", "usage": {"prompt_tokens": 815, "total_tokens": 815}, "results": ` + entries(s, relevance) + `}`
	},
}

func good(name string) func(asked, []float64) (int, string) {
	return func(_ asked, scores []float64) (int, string) { return 200, published[name](scores) }
}

func configOf(name, address, more string) string {
	return fmt.Sprintf(`{"api": %q, "base_url": %q, "model": "m", "api_key": %q%s}`, name, address, secret, more)
}

func openAt(t *testing.T, host sdk.Host, config string) *httpReranker {
	t.Helper()
	stage, err := HTTP().Open(t.Context(), sdk.Setup{Host: host, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stage.(*httpReranker).Close() })
	return stage.(*httpReranker)
}

// httpItem returns an item with candidates with these texts.
func httpItem(texts ...string) sdk.Item {
	it := sdk.Item{ID: "1", Text: "how many x"}
	for i, text := range texts {
		it.Candidates = append(it.Candidates, sdk.Candidate{ID: fmt.Sprint(i), Text: text})
	}
	return it
}

func (r *httpReranker) one(t *testing.T, it sdk.Item) ([]sdk.Ranked, error) {
	t.Helper()
	ranked, err := r.Rerank(t.Context(), sdk.Batch{Items: []sdk.Item{it}})
	if failed, ok := err.(sdk.RowErrors); ok {
		err = failed[0]
	}
	if err != nil {
		return nil, err
	}
	return ranked[0], nil
}

func TestShapes(t *testing.T) {
	documents := []any{"one x", "xxx three", "none", "two xx"}
	for name, want := range map[string]struct {
		body   map[string]any
		tokens uint64
	}{
		"cohere":   {map[string]any{"model": "m", "query": "how many x", "documents": documents, "top_n": 4.0}, 0},
		"jina":     {map[string]any{"model": "m", "query": "how many x", "documents": documents, "top_n": 4.0, "return_documents": false}, 815},
		"voyage":   {map[string]any{"model": "m", "query": "how many x", "documents": documents, "top_k": 4.0, "return_documents": false, "truncation": true}, 815},
		"tei":      {map[string]any{"model": "m", "query": "how many x", "texts": documents, "return_text": false, "truncate": true}, 0},
		"vllm":     {map[string]any{"model": "m", "query": "how many x", "documents": documents, "top_n": 4.0}, 815},
		"llamacpp": {map[string]any{"model": "m", "query": "how many x", "documents": documents, "top_n": 4.0}, 815},
	} {
		t.Run(name, func(t *testing.T) {
			s, host := serve(t, good(name)), &apitest.Host{}
			r := openAt(t, host, configOf(name, s.URL+"/v9/", ""))
			it := httpItem("one x", "xxx three", "", "none", "two xx", "  \n ")
			got, err := r.one(t, it)
			if err != nil {
				t.Fatal(err)
			}
			ranked := []sdk.Ranked{{Candidate: 1, Score: .3}, {Candidate: 4, Score: .2}, {Candidate: 0, Score: .1}, {Candidate: 3}}
			if diff := cmp.Diff(ranked, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]asked{{"/v9/rerank", "Bearer " + secret, want.body}}, s.requests(), cmp.AllowUnexported(asked{})); diff != "" {
				t.Error(diff)
			}
			if calls := host.Calls(); len(calls) != 1 || calls[0].Endpoint != s.URL+"/v9" || calls[0].Tokens == 0 || host.Spent(t).InputTokens != want.tokens {
				t.Errorf("calls %+v, spent %+v", calls, host.Spent(t))
			}
			// The same again costs nothing, and no secret is cached.
			if events := host.Events(); !slices.Equal(events, []string{"acquire", "cache", "release"}) {
				t.Errorf("events %v: scores are cached before the call has ended", events)
			}
			again, err := openAt(t, host, configOf(name, s.URL+"/v9/", "")).one(t, it)
			if diff := cmp.Diff(got, again); diff != "" || err != nil || len(s.requests()) != 1 {
				t.Errorf("%d requests, %v %s", len(s.requests()), err, diff)
			}
			sdktest.Stage(t, HTTP(), configOf(name, s.URL, ""))
		})
	}
}

func TestManyDocumentsTravelInParts(t *testing.T) {
	s, host := serve(t, good("tei")), &apitest.Host{}
	var texts []string
	for i := range 150 {
		texts = append(texts, strings.Repeat("x", (i*37)%101)+".")
	}
	it := httpItem(texts...)
	it.Candidates[7].Text = "" // empty texts are not sent, so parts are counted without them
	got, err := openAt(t, host, fmt.Sprintf(`{"api": "tei", "base_url": %q}`, s.URL)).one(t, it)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for _, a := range s.requests() {
		sizes = append(sizes, len(a.documents()))
		if _, ok := a.body["model"]; ok || a.auth != "" {
			t.Errorf("request %v, key %q", a.body, a.auth)
		}
	}
	if slices.Sort(sizes); !slices.Equal(sizes, []int{21, 32, 32, 32, 32}) || len(got) != 149 {
		t.Errorf("requests of %v documents, %d candidates ranked", sizes, len(got))
	}
	for i, r := range got {
		if want := float32(strings.Count(it.Candidates[r.Candidate].Text, "x")) / 10; r.Score != want {
			t.Errorf("candidate %d has the score %v, not %v", r.Candidate, r.Score, want)
		}
		if i > 0 && (r.Score > got[i-1].Score || r.Score == got[i-1].Score && r.Candidate < got[i-1].Candidate) {
			t.Errorf("place %d: %v after %v", i, r, got[i-1])
		}
	}
	// If one part is lost, the others are not requested again.
	for key := range host.Cached() {
		host.Forget(key)
		break
	}
	if _, err := openAt(t, host, fmt.Sprintf(`{"api": "tei", "base_url": %q}`, s.URL)).one(t, it); err != nil || len(s.requests()) != 6 {
		t.Errorf("%d requests, %v", len(s.requests()), err)
	}
}

func TestDocuments(t *testing.T) {
	it := httpItem("größer als", "text")
	it.Candidates[1].Context = "from the manual"
	for _, c := range []struct {
		more string
		want []string
	}{
		{"", []string{"größer als", "from the manual\ntext"}},
		{`, "context": false`, []string{"größer als", "text"}},
		{`, "max_characters": 4`, []string{"größ", "from"}},
	} {
		s := serve(t, good("jina"))
		if _, err := openAt(t, nil, configOf("jina", s.URL, c.more)).one(t, it); err != nil {
			t.Fatal(err)
		}
		if got := s.requests()[0].documents(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.more, got, c.want)
		}
	}
}
