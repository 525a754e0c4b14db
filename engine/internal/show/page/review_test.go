package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/internal/show/review"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// site is a review that is served.
type site struct {
	t           *testing.T
	queue       *review.Queue
	ids         map[string]string // of cases
	base, token string
	end         context.CancelFunc
	ended       chan error
}

// serve reviews two items and a row.
func serve(t *testing.T, o ReviewOptions) *site {
	t.Helper()
	q := review.NewQueue(filepath.Join(t.TempDir(), "reviewed.jsonl"), "run-000001", []review.Case{
		{Text: "where is it? " + strings.Repeat("é", 150), Items: []string{"17"}, Answer: "lost", Suggestions: []string{"lost"}},
		{Text: "<script>alert(1)</script>", Items: []string{"18"}},
		{Text: "a row", Row: "r7", Answer: "order"},
	}, []string{"order", "lost"}, sdk.LabelForm{})
	ids := map[string]string{} // the tests call cases one, two and row
	for i, c := range q.Cases() {
		ids[[]string{"one", "two", "row"}[i]] = c.ID
	}
	s, err := NewReviewServer(q, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base, token, _ := strings.Cut(s.URL(l.Addr()), "/#")
	ctx, end := context.WithCancel(t.Context())
	is := &site{t, q, ids, base, token, end, make(chan error, 1)}
	go func() { is.ended <- s.Serve(ctx, l) }()
	t.Cleanup(end)
	return is
}

// send sends a request; body "": a GET.
func (s *site) send(path, body string, change func(*http.Request)) (int, string) {
	s.t.Helper()
	for name, id := range s.ids {
		body = strings.ReplaceAll(body, `"case":"`+name+`"`, `"case":"`+id+`"`)
		path = strings.ReplaceAll(path, "id="+name, "id="+id)
	}
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(r)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if got.Header.Get("Access-Control-Allow-Origin") != "" || got.Header.Get("Cache-Control") != "no-store" {
		s.t.Errorf("%s: headers %v", path, got.Header)
	}
	return got.StatusCode, string(text)
}

// Only this machine's own page with the token may call.
func TestRefuses(t *testing.T) {
	s := serve(t, ReviewOptions{Title: "run-000001"})
	const decision = `{"case":"one","label":"order","reviewer":"Ada","page":"p"}`
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	for name, test := range map[string]struct {
		path, body string
		change     func(*http.Request)
		status     int
	}{
		"no token":                {"/api/queue", "", header("Authorization", ""), 401},
		"a wrong token":           {"/api/queue", "", header("Authorization", "Bearer "+strings.ToLower(s.token)), 401},
		"a token in the address":  {"/api/queue?token=" + s.token, "", header("Authorization", ""), 401},
		"a decision without":      {"/api/decide", decision, header("Authorization", ""), 401},
		"an unknown call without": {"/api/else", "", header("Authorization", ""), 401},
		"an unknown call":         {"/api/else", "", nil, 404},
		"another file":            {"/etc/passwd", "", nil, 404},
		"a rebound name":          {"/", "", host("evil.example:80"), 403},
		"a rebound name, token":   {"/api/decide", decision, host("127.0.0.1.evil.example"), 403},
		"no name":                 {"/api/queue", "", host("[::]"), 403},
		"localhost":               {"/api/queue", "", host("LOCALHOST:9999"), 200},
		"an IPv6 loopback":        {"/api/queue", "", host("[::1]:9999"), 200},
		"another site":            {"/api/decide", decision, header("Origin", "https://evil.example"), 403},
		"another port":            {"/api/decide", decision, header("Origin", "http://127.0.0.1:1"), 403},
		"a sandbox":               {"/api/decide", decision, header("Origin", "null"), 403},
		"a form":                  {"/api/decide", decision, header("Content-Type", "text/plain"), 415},
		"no JSON":                 {"/api/decide", "{", nil, 400},
		"another field":           {"/api/decide", `{"case":"one","text":"x"}`, nil, 400},
		"1 MB":                    {"/api/decide", `{"case":"` + strings.Repeat("x", 1<<20) + `"}`, nil, 413},
		"a get that decides":      {"/api/decide", "", nil, 405},
		"a byte order mark":       {"/api/undo", "\ufeff" + `{"page":"p"}`, nil, 409},
		"UTF-16":                  {"/api/undo", "\xff\xfe{\x00}\x00", nil, 400},
		"no such case":            {"/api/case?id=three", "", nil, 404},
		"nothing to undo":         {"/api/undo", `{"page":"p"}`, nil, 409},
		"a label nobody knows":    {"/api/decide", `{"case":"one","label":"ordr","reviewer":"Ada"}`, nil, 422},
		"nobody":                  {"/api/decide", `{"case":"one","label":"order"}`, nil, 422},
	} {
		if status, text := s.send(test.path, test.body, test.change); status != test.status {
			t.Errorf("%s: status %d, want %d: %s", name, status, test.status, text)
		}
	}
	if _, err := os.Stat(s.queue.Path()); !os.IsNotExist(err) {
		t.Errorf("something was kept: %v", err)
	}
}

// The page contains neither data nor the token, and loads nothing from elsewhere.
func TestPage(t *testing.T) {
	s := serve(t, ReviewOptions{Title: "run-000001 <b>", Reviewer: "Ada"})
	status, text := s.send("/", "", func(r *http.Request) { r.Header.Del("Authorization") })
	found := slices.DeleteFunc([]string{s.token, "alert(1)", "<b>", "Ada"}, func(never string) bool { return !strings.Contains(text, never) })
	must.Equal(t, "status, and what the page may not have", []any{200, []string{}}, []any{status, found})
	if !strings.Contains(text, "connect-src &#39;self&#39;") && !strings.Contains(text, "connect-src 'self'") {
		t.Error("the page may not call its server")
	}
}

func TestQueueAndCase(t *testing.T) {
	s := serve(t, ReviewOptions{Title: "run-000001", Reviewer: "Ada", Notes: []string{"add these lines"}, Details: func(_ context.Context, c review.Case) (any, error) {
		if strings.Contains(c.Text, "script") {
			return nil, errors.New("its knowledge is gone")
		}
		return map[string]string{"text": c.Text}, nil
	}})
	if err := os.WriteFile(s.queue.Path(), []byte("{broken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, text := s.send("/api/queue", "", nil)
	var q queueShown
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		t.Fatal(err)
	}
	must.Equal(t, "title, reviewer, numbers of cases, labels and notes", []any{"run-000001", "Ada", 3, 2, 2}, []any{q.Title, q.Reviewer, len(q.Cases), len(q.Labels), len(q.Notes)})
	if !strings.Contains(q.Notes[1], "reviewed.jsonl:1: ") {
		t.Errorf("notes %q", q.Notes)
	}
	if got := q.Cases[0].Text; !strings.HasSuffix(got, "é…") || utf8.RuneCountInString(got) != maxBrief+1 {
		t.Errorf("the beginning of a text is %q", got)
	}
	if _, text := s.send("/api/case?id=one", "", nil); !strings.Contains(text, strings.Repeat("é", 150)+`"},"gone"`) && strings.Count(text, strings.Repeat("é", 150)) != 2 {
		t.Errorf("one: %s", text)
	}
	if _, text := s.send("/api/case?id=two", "", nil); !strings.Contains(text, `"gone":"its knowledge is gone"`) || !strings.Contains(text, `\u003cscript\u003e`) {
		t.Errorf("two: %s", text)
	}
}

// Two people at two pages: each sees the other's decisions, and replaces no decision unseen.
func TestTwoPages(t *testing.T) {
	s := serve(t, ReviewOptions{})
	must := func(want int, path, body string) string {
		t.Helper()
		status, text := s.send(path, body, nil)
		if status != want {
			t.Fatalf("%s %s: status %d: %s", path, body, status, text)
		}
		return text
	}
	sees := func() (d decidedShown) {
		t.Helper()
		if err := json.Unmarshal([]byte(must(200, "/api/decided", "")), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	must(200, "/api/decide", `{"case":"one","label":"order","reviewer":"Ada","page":"ada"}`)
	seen := sees().Decided[s.ids["one"]]
	if seen == nil || seen.Label != "order" || seen.Reviewer != "Ada" {
		t.Fatalf("Ben sees %+v", seen)
	}
	if text := must(409, "/api/decide", `{"case":"one","label":"lost","reviewer":"Ben","page":"ben"}`); !strings.Contains(text, `"code":"conflict"`) || !strings.Contains(text, `"now":{"label":"order"`) {
		t.Errorf("Ben replaces unseen: %s", text)
	}
	must(200, "/api/decide", `{"case":"one","label":"brand new","new":true,"reviewer":"Ben","page":"ben","version":"`+seen.Version+`"}`)
	if d := sees(); len(d.Labels) != 3 || d.Labels[0] != "brand new" {
		t.Errorf("Ada sees %+v", d)
	}
	must(409, "/api/undo", `{"page":"ada"}`)
	must(200, "/api/undo", `{"page":"ben"}`)
	if d := sees().Decided[s.ids["one"]]; d == nil || d.Label != "order" {
		t.Errorf("Ada sees %+v", d)
	}
	must(200, "/api/decide", fmt.Sprintf(`{"case":"one","withdraw":true,"reviewer":"Ada","page":"ada","version":%q}`, seen.Version))
	if d := sees().Decided[s.ids["one"]]; d != nil {
		t.Errorf("Ben sees %+v", d)
	}
}

// A review ends when a person has finished, or with its context.
func TestFinish(t *testing.T) {
	s := serve(t, ReviewOptions{})
	if status, text := s.send("/api/finish", "{}", nil); status != 200 {
		t.Errorf("status %d: %s", status, text)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	s = serve(t, ReviewOptions{})
	s.end()
	if err := <-s.ended; err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
}
