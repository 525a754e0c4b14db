package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// shop starts a server of a pipeline with two labels.
func shop(t *testing.T, o Options) string {
	t.Helper()
	p := newFake("shop")
	p.State.Labels = []string{"refund", "late"}
	p.To = func(_ context.Context, i workspace.Item) (workspace.Result, error) {
		switch i.Text {
		case "busy":
			return workspace.Result{}, live.ErrBusy
		case "fails":
			return workspace.Result{Error: &result.Failure{Stage: "sample.llm", Message: "it was refused"}}, nil
		}
		if wrong := i.Row(1).Err; wrong != nil {
			return workspace.Result{Error: &result.Failure{Message: wrong.Error()}}, nil //nolint:nilerr // an item that fails is in its result
		}
		return workspace.Result{Answer: "refund", Verdict: result.Verdict{Confidence: .75, Labels: []sdk.LabelConfidence{{Label: "refund", Confidence: .75}, {Label: "late", Confidence: .25}}}}, nil
	}
	starting := newFake("starting")
	starting.State = live.Status{}
	o.Aliases = map[string]string{"jev-latest": "shop"}
	s, url := serving(t, o, p, starting)
	MountChat(s)
	MountDecisions(s)
	return url
}

func systemOne(model, state, question string) string {
	return fmt.Sprintf(`{"model": %q, "state": %q, "questions": {"q": %s}}`, model, state, question)
}

const (
	which   = `{"type": "choice", "criteria": {"late": null, "refund": null}}`
	decided = `{"model":"shop","answers":{"q":{"type":"choice","choice":"refund","probabilities":{"late":0.25,"refund":0.75},"confidence":0.5}},"usage":{"input_tokens":0,"output_tokens":0}}`
)

// TestDecisions: both forms answer, by a pipeline's name and by its alias, and report errors in their own form.
func TestDecisions(t *testing.T) {
	url := shop(t, Options{Guard: GuardOptions{Body: 1 << 12}})
	openAI := func(model, input, question string) string {
		return fmt.Sprintf(`{"model": %q, "input": %q, "questions": [%s]}`, model, input, question)
	}
	wrong := `{"error":{"message":"%s","type":"%s","param":%s,"code":%s}}`
	for _, test := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/v1/systemone", systemOne("shop", "t", which), 200, decided},
		{"/v1/systemone", systemOne("jev-latest", "t", which), 200, decided},
		{"/v1/systemone", systemOne("other", "t", which), 404, `{"detail":{"error_type":"not_found_error","message":"there is no pipeline \"other\": GET /v1/models lists those that there are"}}`},
		{"/v1/systemone", systemOne("starting", "t", which), 503, `{"detail":{"error_type":"overloaded_error","message":"the pipeline is starting: GET /readyz says when it is ready"}}`},
		{"/v1/systemone", systemOne("shop", "busy", which), 429, `{"detail":{"error_type":"rate_limit_error","message":"as many requests as may wait for this pipeline do already"}}`},
		{"/v1/systemone", systemOne("shop", "fails", which), 502, `{"detail":{"error_type":"api_error","message":"sample.llm: it was refused"}}`},
		{"/v1/systemone", systemOne("shop", " ", which), 422, `{"detail":[{"loc":["body","state"],"msg":"the text is empty","type":"value_error"}]}`},
		{"/v1/systemone", systemOne("shop", "t", `{"type": "box"}`), 422, `{"detail":[{"loc":["body","questions","q","type"],"msg":"\"box\" is no type of a question: it is noul, choice or score","type":"value_error"}]}`},
		{"/v1/systemone", systemOne("shop", "t", `{"type": "choice", "criteria": {"late": null, "lost": null}}`), 422, `{"detail":[{"loc":["body","questions","q"],"msg":"no label of this pipeline: lost; write none for what is outside of the options; the labels are refund, late","type":"not_a_label"}]}`},
		{"/v1/systemone", `{`, 422, `{"detail":[{"loc":["body"],"msg":"the body is not JSON: line 1, column 1: unexpected end of JSON input","type":"json_invalid"}]}`},
		{"/v1/systemone", systemOne("shop", strings.Repeat("x", 1<<12), which), 413, `{"detail":{"error_type":"invalid_request_error","message":"the body is longer than the 4096 bytes that this server takes"}}`},
		{"/v1/decisions", openAI("jev-latest", "t", `{"type": "predicate", "instructions": "Late"}`), 200, `{"model":"shop","answers":[{"type":"predicate","name":null,"probability":0.25}],"usage":{"input_tokens":0,"input_tokens_details":{"cache_write_tokens":0,"cached_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}}`},
		{"/v1/decisions", openAI("other", "t", `{"type": "predicate", "instructions": "x"}`), 404, fmt.Sprintf(wrong, `there is no pipeline \"other\": GET /v1/models lists those that there are`, "invalid_request_error", `"model"`, `"model_not_found"`)},
		{"/v1/decisions", openAI("shop", "t", `{"type": "noul"}`), 400, fmt.Sprintf(wrong, `\"noul\" is no type of a question: it is predicate, choice or score`, "invalid_request_error", `"questions.0.type"`, "null")},
		{"/v1/decisions", openAI("shop", "t", `{"type": "score", "levels": [{"label": "late"}, {"label": "lost"}]}`), 422, fmt.Sprintf(wrong, `no label of this pipeline: lost; write none for what is outside of the options; the labels are refund, late`, "invalid_request_error", `"questions.0"`, "null")},
		{"/v1/decisions", openAI("shop", "", `{"type": "predicate", "instructions": "late"}`), 422, fmt.Sprintf(wrong, `the text is empty`, "invalid_request_error", `"input"`, "null")},
		{"/v1/decisions", `{`, 400, fmt.Sprintf(wrong, `the body is not JSON: line 1, column 1: unexpected end of JSON input`, "invalid_request_error", "null", "null")},
	} {
		response, text := post(t, url+test.path, "application/json", test.body)
		if response.StatusCode != test.status || strings.TrimSpace(text) != test.want || response.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %.200s: %s\ngot  %s\nwant %s", test.path, test.body, response.Status, text, test.want)
		}
		if late := test.status == 429 || test.status == 503; late != (response.Header.Get("Retry-After") != "") {
			t.Errorf("%.100s: Retry-After is %q", test.body, response.Header.Get("Retry-After"))
		}
	}
	if _, text := send(t, request(t, http.MethodGet, url+"/v1/models", "")); !strings.Contains(text, `{"name":"jev-latest","description":`) || !strings.Contains(text, `{"id":"jev-latest"`) {
		t.Errorf("the alias is not listed: %s", text)
	}
}

// TestDecisionBatch: each line is a request, and its answer or error comes in its place; the batch waits for a full
// queue.
func TestDecisionBatch(t *testing.T) {
	url := shop(t, Options{})
	response, text := post(t, url+"/v1/systemone", linesType, strings.Join([]string{systemOne("shop", "a", which), "", systemOne("other", "a", which), `{`, systemOne("shop", "", which), systemOne("shop", "b", which)}, "\n"))
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if response.StatusCode != http.StatusOK || len(lines) != 5 || lines[0] != decided || !strings.Contains(lines[1], "not_found_error") || !strings.Contains(lines[2], "json_invalid") || !strings.Contains(lines[3], "the text is empty") || lines[4] != decided {
		t.Errorf("%s\n%s", response.Status, text)
	}
	response, text = post(t, url+"/v1/decisions", linesType, "\xff\xfe{\x00}\x00")
	if response.StatusCode != http.StatusUnsupportedMediaType || !strings.Contains(text, `"invalid_request_error"`) {
		t.Errorf("%s %s", response.Status, text)
	}
}

// TestRefusals: refusals of the guard have the form of the path.
func TestRefusals(t *testing.T) {
	url := shop(t, Options{Guard: GuardOptions{Tokens: must.Get(NewTokens("0123456789abcdef", "", nil))(t)}})
	for path, want := range map[string]string{"/v1/systemone": `"error_type":"authentication_error"`, "/v1/decisions": `{"error":{"message":"send a valid token`, "/v1/models": `"title":"Unauthorized"`} {
		response, text := post(t, url+path, "application/json", systemOne("shop", "t", which))
		if response.StatusCode != http.StatusUnauthorized || !strings.Contains(text, want) {
			t.Errorf("%s: %s %s", path, response.Status, text)
		}
	}
}

// TestPacked: bodies in zstd are unpacked on every path, and the unpacked size is limited.
func TestPacked(t *testing.T) {
	url := shop(t, Options{Guard: GuardOptions{Body: 1 << 16}})
	enc := must.Get(zstd.NewWriter(nil))(t)
	pack := func(text string) string { return string(enc.EncodeAll([]byte(text), nil)) }
	wide := must.Get(zstd.NewWriter(nil, zstd.WithWindowSize(64<<20), zstd.WithSingleSegment(false)))(t)
	var b bytes.Buffer
	wide.Reset(&b)
	must.Get(wide.Write(bytes.Repeat([]byte(" "), 80<<20)))(t)
	must.Do(t, wide.Close())
	for name, test := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"as it should be":    {pack(systemOne("shop", "t", which)), 200, decided},
		"in two frames":      {pack(systemOne("shop", "t", which)[:20]) + pack(systemOne("shop", "t", which)[20:]), 200, decided},
		"a bomb":             {pack(systemOne("shop", strings.Repeat("x", 64<<20), which)), 413, "longer than the 65536 bytes"},
		"a wide window":      {b.String(), 422, "not whole in zstd"},
		"cut off":            {pack(systemOne("shop", strings.Repeat("xyz", 1000), which))[:40], 422, "not whole in zstd"},
		"something else":     {systemOne("shop", "t", which), 422, "not whole in zstd"},
		"another encoding":   {pack("\xff\xfe{\x00}\x00"), 415, "UTF-16"},
		"longer than it may": {strings.Repeat("x", 1<<17), 413, "longer than the 65536 bytes"},
	} {
		response, text := send(t, request(t, http.MethodPost, url+"/v1/systemone", test.body, "Content-Type", "application/json", "Content-Encoding", "ZSTD"))
		if response.StatusCode != test.status || !strings.Contains(text, test.want) {
			t.Errorf("%s: %s %.300s", name, response.Status, text)
		}
	}
	response, text := send(t, request(t, http.MethodPost, url+"/v1/systemone", pack(systemOne("shop", "a", which)+"\n"+systemOne("shop", "b", which)), "Content-Type", linesType, "Content-Encoding", "zstd"))
	if response.StatusCode != http.StatusOK || strings.Count(text, decided) != 2 {
		t.Errorf("a batch: %s %s", response.Status, text)
	}
}

// TestRealDecisions: a real pipeline's probabilities agree with its answers, whose form stays the same, under
// concurrent requests.
func TestRealDecisions(t *testing.T) {
	for _, election := range []string{"soft", "learned"} {
		r := startIn(t, t.TempDir(), strings.Replace(intent, `"soft"`, `"`+election+`"`, 1), Options{})
		var ask sync.WaitGroup
		errs := make(chan error, 64)
		for i := range 64 {
			text := []string{"red apple", "blue car"}[i%2]
			ask.Go(func() {
				body := systemOne("intent", text, `{"type": "choice", "criteria": {"vehicle": null, "none": null, "fruit": null}}`)
				response, err := http.Post(r.url+"/v1/systemone", "application/json", strings.NewReader(body)) //nolint:noctx // the server ends with the test
				if err == nil {
					var b bytes.Buffer
					_, err = b.ReadFrom(response.Body)
					response.Body.Close() //nolint:errcheck // it was only read
					if want := fmt.Sprintf(`"choice":%q,"probabilities":{"vehicle":`, right[text]); response.StatusCode != http.StatusOK || !strings.Contains(b.String(), want) {
						err = errors.New(b.String())
					}
				}
				errs <- err
			})
		}
		ask.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				t.Errorf("%s: %v", election, err)
			}
		}
		if _, text := post(t, r.url+"/v1/pipelines/intent/answer", "application/json", `{"text": "red apple"}`); strings.Contains(text, `"labels"`) {
			t.Errorf("%s: an answer has more than the file asks for: %s", election, text)
		}
		if response, text := post(t, r.url+"/v1/systemone", "application/json", systemOne("intent", "x", `{"type": "choice", "criteria": {"colour": null, "form": null}}`)); response.StatusCode != http.StatusOK || !strings.Contains(text, `"x_basis":"descriptions"`) {
			t.Errorf("%s: %s %s", election, response.Status, text)
		}
		r.stop()
	}
}
