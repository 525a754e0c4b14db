package model

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

const repository = "owner/model"

// client returns a client for a hub, without the user's environment. It does not wait between
// attempts.
func client(t *testing.T, h *fakeHub) *hubClient {
	t.Helper()
	t.Setenv("HF_TOKEN", "")
	t.Setenv("HF_HUB_OFFLINE", "")
	t.Setenv("HF_HOME", t.TempDir())
	t.Setenv("HF_ENDPOINT", h.URL)
	c, err := newHubClient()
	must.Do(t, err)
	c.sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return c
}

func at(t *testing.T, c *hubClient) Repository {
	t.Helper()
	r, err := c.Repository(repository, "")
	must.Do(t, err)
	return r
}

func target(t *testing.T) Target {
	return Target{Path: filepath.Join(t.TempDir(), "file"), Limit: 1 << 20}
}

// weights are long enough to be cut off.
var weights = strings.Repeat("0123456789abcdef", 8192)

// once injects a failure the first n times.
func once(n int64, do hubFailure) hubFailure {
	var left atomic.Int64
	left.Store(n)
	return func(w http.ResponseWriter, r *http.Request, cdn bool) bool {
		if left.Add(-1) < 0 {
			return false
		}
		if do(w, r, cdn) {
			return true
		}
		left.Add(1) // this request is not affected
		return false
	}
}

// cut sends half of the requested bytes, and ends the connection.
func cut(w http.ResponseWriter, r *http.Request, cdn bool) bool {
	if !cdn || r.Header.Get("Range") != "" {
		return false
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(weights)))
	_, _ = w.Write([]byte(weights[:len(weights)/2]))
	return true
}

// status answers with a status, on the hub or the other host.
func status(code int, onCDN bool, header ...string) hubFailure {
	return func(w http.ResponseWriter, _ *http.Request, cdn bool) bool {
		if cdn != onCDN {
			return false
		}
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		return true
	}
}

// TestNoWayInside: a hub on another machine cannot redirect to a service on this machine.
func TestNoWayInside(t *testing.T) {
	h := newFakeHub(t)
	outside := httptest.NewTLSServer(http.RedirectHandler(h.URL, http.StatusFound))
	defer outside.Close()
	c := client(t, h)
	c.transport = outside.Client().Transport
	r, err := c.Repository(outside.URL+"/"+repository, "")
	must.Do(t, err)
	if _, err := c.Fetch(t.Context(), r, "config.json", target(t)); err == nil || !strings.Contains(err.Error(), "redirects to an address that is not https") {
		t.Errorf("got %v", err)
	}
	if sent := h.Requests(); len(sent) > 0 {
		t.Errorf("requests %+v", sent)
	}
}

func TestFetch(t *testing.T) {
	for name, test := range map[string]struct {
		file     string
		wrong    hubFailure
		set      func(*Target)
		want     string // in the error; "": none
		requests int    // number of requests sent; 0: any
	}{
		"small":               {file: "config.json", requests: 1},
		"large":               {file: "model.safetensors", requests: 2},
		"not there":           {file: "none.json", want: "404 Not Found: Entry not found"},
		"cut, then resumed":   {file: "model.safetensors", wrong: once(1, cut), requests: 4},
		"cut every time":      {file: "model.safetensors", wrong: cut, requests: 4},
		"429, then there":     {file: "config.json", wrong: once(2, status(429, false, "Retry-After", "1")), requests: 3},
		"500, then there":     {file: "config.json", wrong: once(1, status(500, false)), requests: 2},
		"503 of the other":    {file: "model.safetensors", wrong: once(1, status(503, true)), requests: 4},
		"500 for ever":        {file: "config.json", wrong: status(500, false), want: "answered 500 Internal Server Error", requests: 5},
		"gated":               {file: "config.json", wrong: status(403, false, "X-Error-Code", "GatedRepo", "X-Error-Message", "Access restricted"), want: "Access restricted; accept the model's terms", requests: 1},
		"401":                 {file: "config.json", wrong: status(401, false), want: "private: then set HF_TOKEN", requests: 1},
		"no such revision":    {file: "config.json", wrong: status(404, false, "X-Error-Code", "RevisionNotFound"), want: "there is no such revision", requests: 1},
		"expired signature":   {file: "model.safetensors", wrong: status(403, true), want: "403 Forbidden", requests: 2},
		"message for screens": {file: "config.json", wrong: status(400, false, "X-Error-Message", "a\u202eb"), want: "a\ufffdb", requests: 1},
		"redirect to http":    {file: "config.json", wrong: status(302, false, "Location", "http://hub.invalid/x"), want: "redirects to an address that is not https", requests: 1},
		"redirect in a ring":  {file: "config.json", wrong: status(302, false, "Location", "/again"), want: "more than 8 redirects", requests: 8},
		"not the pinned one":  {file: "config.json", set: func(t *Target) { t.SHA256 = strings.Repeat("0", 64) }, want: "the pinned one " + strings.Repeat("0", 64)},
		"large, not pinned":   {file: "model.safetensors", set: func(t *Target) { t.SHA256 = strings.Repeat("0", 64) }, want: "the hub has other content there", requests: 2},
		"over the limit":      {file: "model.safetensors", set: func(t *Target) { t.Limit = 1000 }, want: "more than the limit of 1.0 kB"},
		"wrong size": {file: "model.safetensors", wrong: func(w http.ResponseWriter, _ *http.Request, cdn bool) bool {
			if cdn {
				_, _ = w.Write([]byte("short"))
			}
			return cdn
		}, want: "has 5 bytes, the hub says 131072"},
		"wrong content": {file: "model.safetensors", wrong: func(w http.ResponseWriter, _ *http.Request, cdn bool) bool {
			if cdn {
				_, _ = w.Write([]byte(strings.ToUpper(weights)))
			}
			return cdn
		}, want: "what arrived differs: its sha256 is"},
		"no end": {file: "config.json", wrong: func(w http.ResponseWriter, _ *http.Request, _ bool) bool {
			for range 100 { // the client hangs up
				_, _ = w.Write([]byte(weights))
			}
			return true
		}, want: "more than the limit"},
		"a part nobody asked for": {file: "config.json", wrong: status(206, false, "Content-Range", "bytes 5-9/10"), want: "a part of the file that was not asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHub(t)
			h.Put(repository, map[string]string{"config.json": "{\"a\": 1}", "model.safetensors": weights})
			h.SetWrong(test.wrong)
			c, to := client(t, h), target(t)
			if test.set != nil {
				test.set(&to)
			}
			f, err := c.Fetch(context.Background(), at(t, c), test.file, to)
			sent := h.Requests()
			if test.requests > 0 && len(sent) != test.requests {
				t.Errorf("%d requests, want %d: %+v", len(sent), test.requests, sent)
			}
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
					t.Errorf("got %v, want %q", err, test.want)
				}
				return
			}
			must.Do(t, err)
			want := weights
			if test.file == "config.json" {
				want = "{\"a\": 1}"
			}
			if content, err := os.ReadFile(to.Path); string(content) != want || err != nil {
				t.Errorf("got %d bytes, %v", len(content), err)
			}
			if f.Commit != hubCommit || f.Size != int64(len(want)) || len(f.SHA256) != 64 {
				t.Errorf("got %+v", f)
			}
		})
	}
}

func TestNotThere(t *testing.T) {
	h := newFakeHub(t)
	h.Put(repository, map[string]string{"config.json": "{}"})
	c := client(t, h)
	if _, err := c.Fetch(context.Background(), at(t, c), "none", target(t)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	r, err := c.Repository("owner/other", "")
	must.Do(t, err)
	if _, err := c.Fetch(context.Background(), r, "config.json", target(t)); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a repository that is not there: %v", err)
	}
}

// TestResume: a process resumes another process's partial download, if the content is the same.
func TestResume(t *testing.T) {
	half := len(weights) / 2
	for name, test := range map[string]struct {
		change func(h *fakeHub, part string)
		ranged bool // the last request asks only for the rest
		sent   int  // requests
	}{
		"the rest": {nil, true, 2},
		"changed meanwhile": {func(h *fakeHub, _ string) {
			h.Put(repository, map[string]string{"model.safetensors": strings.ToUpper(weights)})
		}, false, 2},
		"shorter now": {func(h *fakeHub, _ string) {
			h.Put(repository, map[string]string{"model.safetensors": "short"})
		}, false, 2},
		"whole":    {func(_ *fakeHub, part string) { hubWrite(t, part, weights) }, false, 1},
		"damaged":  {func(_ *fakeHub, part string) { hubWrite(t, part, strings.Repeat("x", half)) }, false, 4},
		"too long": {func(_ *fakeHub, part string) { hubWrite(t, part, weights+"x") }, false, 4},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHub(t)
			h.Put(repository, map[string]string{"model.safetensors": weights})
			h.SetWrong(func(w http.ResponseWriter, r *http.Request, cdn bool) bool {
				switch {
				case cdn && r.Header.Get("Range") == "":
					return cut(w, r, cdn)
				case cdn:
					panic(http.ErrAbortHandler) // the response ends here
				}
				return false
			})
			c, to := client(t, h), target(t)
			if _, err := c.Fetch(context.Background(), at(t, c), "model.safetensors", to); err == nil {
				t.Fatal("it should not have come")
			}
			parts, err := filepath.Glob(to.Path + ".*")
			if err != nil || len(parts) != 1 || size(parts[0]) != int64(half) {
				t.Fatalf("%v is left, want %d bytes", parts, half)
			}
			h.SetWrong(nil)
			if test.change != nil {
				test.change(h, parts[0])
			}
			h.Requests()
			f, err := c.Fetch(context.Background(), at(t, c), "model.safetensors", to)
			must.Do(t, err)
			sent := h.Requests()
			if last := sent[len(sent)-1]; (last.Range != "") != test.ranged || len(sent) != test.sent {
				t.Errorf("requests %+v", sent)
			}
			whole := target(t)
			if g, err := c.Fetch(context.Background(), at(t, c), "model.safetensors", whole); err != nil || g != f {
				t.Errorf("resumed %+v, whole %+v, %v", f, g, err)
			}
			if _, err := c.Fetch(context.Background(), at(t, c), "model.safetensors", whole); err != nil || len(h.Requests()) != 3 {
				t.Errorf("what is there was got again: %v", err)
			}
		})
	}
}

func hubWrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Error(err)
	}
}

// TestNoHub: files of a server that declares no hashes are accepted, and never resumed.
func TestNoHub(t *testing.T) {
	h := newFakeHub(t)
	h.SetCommit("")
	h.Put(repository, map[string]string{"model.safetensors": weights})
	h.SetWrong(once(1, cut))
	c, to := client(t, h), target(t)
	f, err := c.Fetch(context.Background(), at(t, c), "model.safetensors", to)
	if err != nil || f.Commit != "" || f.Size != int64(len(weights)) {
		t.Errorf("got %+v, %v", f, err)
	}
}

// TestSilent: a server that does not answer, and a server that stops in the middle.
func TestSilent(t *testing.T) {
	for name, wrong := range map[string]hubFailure{
		"no answer": func(_ http.ResponseWriter, r *http.Request, cdn bool) bool {
			if cdn {
				<-r.Context().Done()
			}
			return cdn
		},
		"stalled": func(w http.ResponseWriter, r *http.Request, cdn bool) bool {
			if cdn {
				_, _ = w.Write([]byte(weights[:100]))
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
			return cdn
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHub(t)
			h.Put(repository, map[string]string{"model.safetensors": weights})
			h.SetWrong(once(1, wrong))
			c := client(t, h)
			c.transport = plugin.Transport(50 * time.Millisecond)
			var notes []string
			c.Note = func(n string) {
				notes = append(notes, n)
				c.transport = plugin.Transport(time.Minute) // the next attempt may take longer
			}
			f, err := c.Fetch(context.Background(), at(t, c), "model.safetensors", target(t))
			if err != nil || f.Size != int64(len(weights)) || len(notes) != 1 {
				t.Errorf("got %+v, %v, notes %q", f, err, notes)
			}
		})
	}
}

// TestInterrupted: an interruption by the user is not a failure of the server.
func TestInterrupted(t *testing.T) {
	h := newFakeHub(t)
	h.Put(repository, map[string]string{"config.json": "{}"})
	ctx, cancel := context.WithCancel(context.Background())
	h.SetWrong(func(_ http.ResponseWriter, r *http.Request, _ bool) bool {
		cancel()
		<-r.Context().Done()
		return true
	})
	c := client(t, h)
	if _, err := c.Fetch(ctx, at(t, c), "config.json", target(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := len(h.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}
