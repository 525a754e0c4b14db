package rerank

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
)

func TestReplies(t *testing.T) {
	for name, c := range map[string]struct {
		api    string
		status int
		reply  string
		code   sdk.Code
		want   string
	}{
		"another document":  {"cohere", 200, `{"results": [{"index": 2, "relevance_score": 1}]}`, sdk.CodeTransient, "none of the 2"},
		"below the first":   {"cohere", 200, `{"results": [{"index": -1, "relevance_score": 1}]}`, sdk.CodeTransient, "none of the 2"},
		"no index":          {"cohere", 200, `{"results": [{"relevance_score": 1}]}`, sdk.CodeTransient, "none of the 2"},
		"one twice":         {"voyage", 200, `{"data": [{"index": 0, "relevance_score": 1}, {"index": 0, "relevance_score": 2}]}`, sdk.CodeTransient, "two scores for document 0"},
		"not a number":      {"llamacpp", 200, `{"results": [{"index": 0, "relevance_score": null}]}`, sdk.CodeInvalid, "is not a number"},
		"no score":          {"tei", 200, `[{"index": 0}]`, sdk.CodeInvalid, "is not a number"},
		"a score too large": {"tei", 200, `[{"index": 0, "score": 1e300}]`, sdk.CodeInvalid, "is not a number"},
		"nothing":           {"jina", 200, `{"results": []}`, sdk.CodeTransient, "no scores for 2 documents"},
		"another form":      {"jina", 200, `{"results": {"0": 1}}`, sdk.CodeInvalid, "another form"},
		"a list":            {"cohere", 200, `[{"index": 0, "score": 1}]`, sdk.CodeInvalid, "another form"},
		"an object":         {"tei", 200, `{"results": []}`, sdk.CodeInvalid, "another form"},
		"too many":          {"tei", 422, `{"error": "batch size 2 > maximum allowed batch size 1", "error_type": "Validation"}`, sdk.CodeInvalid, "max_documents"},
		"too long":          {"llamacpp", 400, `{"error": {"code": 400, "message": "input is too large to process"}}`, sdk.CodeRefused, "lower max_characters"},
		"overloaded":        {"tei", 429, `{"error": "Model is overloaded", "error_type": "Overloaded"}`, sdk.CodeTransient, "Model is overloaded"},
		"down":              {"vllm", 500, `{"object": "error", "message": "it broke", "code": 500}`, sdk.CodeTransient, "it broke"},
		"a wrong key":       {"cohere", 401, `{"message": "invalid api token ` + secret + `"}`, sdk.CodeInvalid, "check api_key"},
		"no such model":     {"voyage", 404, `{"detail": "model m not found"}`, sdk.CodeInvalid, "model m not found"},
	} {
		t.Run(name, func(t *testing.T) {
			s, host := serve(t, func(asked, []float64) (int, string) { return c.status, c.reply }), &apitest.Host{}
			_, err := openAt(t, host, configOf(c.api, s.URL, "")).one(t, httpItem("a", "b"))
			if err == nil || sdk.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) {
				t.Errorf("got %v (%v), want %q (%v)", err, sdk.CodeOf(err), c.want, c.code)
			}
			if len(host.Cached()) != 0 || len(host.Results(t)) != 1 {
				t.Errorf("cached %v, results %v", host.Cached(), host.Results(t))
			}
		})
	}
}

func TestLeftOut(t *testing.T) {
	s, host := serve(t, func(_ asked, scores []float64) (int, string) {
		return 200, `{"results": [{"index": 2, "relevance_score": 0.5}, {"index": 0, "relevance_score": -3}]}`
	}), &apitest.Host{}
	want := []sdk.Ranked{{Candidate: 2, Score: .5}, {Candidate: 0, Score: -3}}
	for range 2 { // requested, then cached
		got, err := openAt(t, host, configOf("cohere", s.URL, "")).one(t, httpItem("a", "b", "c"))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
	}
	if len(s.requests()) != 1 {
		t.Errorf("%d requests", len(s.requests()))
	}
}

func TestOneItemFailsAlone(t *testing.T) {
	s := serve(t, func(a asked, scores []float64) (int, string) {
		if a.body["query"] == "bad" {
			return 400, `{"message": "no"}`
		}
		return good("cohere")(a, scores)
	})
	bad, blank, empty := httpItem("x"), httpItem("x"), httpItem()
	bad.Text, blank.Text, empty.Text = "bad", " ", ""
	got, err := openAt(t, nil, configOf("cohere", s.URL, "")).Rerank(t.Context(), sdk.Batch{Items: []sdk.Item{httpItem("x"), bad, blank, empty}})
	var failed sdk.RowErrors
	if !errors.As(err, &failed) || len(failed) != 2 || failed[1] == nil || !strings.Contains(failed[2].Error(), "no text to rank by") {
		t.Errorf("failed %v", err)
	}
	if diff := cmp.Diff([][]sdk.Ranked{{{Score: .1}}, nil, nil, nil}, got); diff != "" {
		t.Error(diff)
	}
}

func TestHostRefuses(t *testing.T) {
	s := serve(t, good("cohere"))
	stopped := &sdk.Error{Code: sdk.CodeStopped, Err: errors.New("the budget is spent")}
	_, err := openAt(t, &apitest.Host{Refuse: stopped}, configOf("cohere", s.URL, "")).one(t, httpItem("x"))
	if sdk.CodeOf(err) != sdk.CodeStopped || len(s.requests()) != 0 {
		t.Errorf("got %v after %d requests", err, len(s.requests()))
	}
	// Scores that cannot be cached count nevertheless.
	got, err := openAt(t, &apitest.Host{Full: errors.New("disk full")}, configOf("cohere", s.URL, "")).one(t, httpItem("x"))
	if err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestHttpConfig(t *testing.T) {
	for arguments, want := range map[string]string{
		`{}`:                            "api: ",
		`{"api": "bm25"}`:               "api: ",
		`{"api": "cohere"}`:             "model: cohere needs the name of a model",
		`{"api": "tei"}`:                "base_url: ",
		`{"api": "vllm", "model": "m"}`: "base_url: ",
		`{"api": "jina", "model": "m", "path": "rerank"}`:         "path: ",
		`{"api": "jina", "model": "m", "path": "/rerank?x"}`:      "path: ",
		`{"api": "jina", "model": "m", "max_characters": 0}`:      "max_characters: ",
		`{"api": "jina", "model": "m", "max_documents": -1}`:      "max_documents: ",
		`{"api": "jina", "model": "m", "body": "{\"top_n\": 3}"}`: "body: ",
	} {
		_, err := HTTP().Open(t.Context(), sdk.Setup{}, []byte(arguments))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", arguments, err, want)
		}
	}
	for name, address := range map[string]string{
		"cohere": "https://api.cohere.com/v2", "jina": "https://api.jina.ai/v1", "voyage": "https://api.voyageai.com/v1",
	} {
		r := openAt(t, nil, fmt.Sprintf(`{"api": %q, "model": "m"}`, name))
		if r.Address() != address {
			t.Errorf("%s is at %s", name, r.Address())
		}
	}
	// Arguments that change the scores change the fingerprint; the key does not.
	prints := map[string]string{}
	for _, more := range []string{"", `, "model": "n"`, `, "context": false`, `, "max_characters": 9`, `, "path": "/v1/rerank"`, `, "body": "{\"a\":1}"`} {
		p := openAt(t, nil, `{"api": "jina", "model": "m"`+more+`}`).Fingerprint()
		if prints[p] != "" {
			t.Errorf("%q and %q have the same fingerprint", more, prints[p])
		}
		prints[p] = more + " "
	}
	if p := openAt(t, nil, `{"api": "jina", "model": "m", "api_key": "another"}`).Fingerprint(); prints[p] != " " {
		t.Error("the key changes the fingerprint")
	}
}
