package model

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestToken: the token is sent only to the endpoint.
func TestToken(t *testing.T) {
	for name, test := range map[string]struct {
		env      map[string]string
		file     string // with the token
		address  func(h, other *fakeHub) string
		redirect string // of the hub's first answer
		want     []string
	}{
		"to the hub, not to the other host": {env: map[string]string{"HF_TOKEN": "t1"}, want: []string{"Bearer t1", ""}},
		"white space around it":             {env: map[string]string{"HF_TOKEN": " t1\n"}, want: []string{"Bearer t1", ""}},
		"of the file":                       {file: "t3\n", want: []string{"Bearer t3", ""}},
		"of another hub": {
			env:     map[string]string{"HF_TOKEN": "t1"},
			address: func(_, other *fakeHub) string { return other.URL + "/" + repository }, want: []string{"", ""},
		},
		"along a redirect on the host": {env: map[string]string{"HF_TOKEN": "t1"}, redirect: "/api/cache/x", want: []string{"Bearer t1", "Bearer t1", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			h, other := newFakeHub(t), newFakeHub(t)
			for _, one := range []*fakeHub{h, other} {
				one.Put(repository, map[string]string{"model.safetensors": weights})
			}
			h.SetWrong(once(1, func(w http.ResponseWriter, r *http.Request, _ bool) bool {
				if test.redirect == "" {
					return false
				}
				http.Redirect(w, r, r.URL.Path+"?again", http.StatusTemporaryRedirect)
				return true
			}))
			c := client(t, h)
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			if test.file != "" {
				hubWrite(t, filepath.Join(os.Getenv("HF_HOME"), "token"), test.file)
			}
			c.token = token()
			r := at(t, c)
			if test.address != nil {
				var err error
				if r, err = c.Repository(test.address(h, other), ""); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Fetch(context.Background(), r, "model.safetensors", target(t)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range append(h.Requests(), other.Requests()...) {
				got = append(got, r.Authorization)
			}
			if strings.Join(got, "|") != strings.Join(test.want, "|") {
				t.Errorf("sent %q, want %q", got, test.want)
			}
		})
	}
}

// TestTokenFile: where the token file is searched.
func TestTokenFile(t *testing.T) {
	for _, name := range []string{"HF_TOKEN", "HF_HOME"} {
		t.Setenv(name, "")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, step := range []struct{ variable, value, file string }{ // each takes precedence over those above
		{"HOME", home, filepath.Join(home, ".cache", "huggingface", "token")},
		{"HF_HOME", filepath.Join(home, "hf"), filepath.Join(home, "hf", "token")},
	} {
		t.Setenv(step.variable, step.value)
		must.Do(t, os.MkdirAll(filepath.Dir(step.file), 0o700))
		hubWrite(t, step.file, step.file+"\n")
		if got := token(); got != step.file {
			t.Errorf("%s: got %q", step.variable, got)
		}
	}
}

func TestOffline(t *testing.T) {
	h := newFakeHub(t)
	h.Put(repository, map[string]string{"config.json": "{}"})
	for value, want := range map[string]bool{"1": true, "true": true, "ON": true, "0": false, "": false} {
		client(t, h)
		t.Setenv("HF_HUB_OFFLINE", value)
		c, err := newHubClient()
		must.Do(t, err)
		_, err = c.Fetch(context.Background(), at(t, c), "config.json", target(t))
		if offline := errors.Is(err, errOffline); offline != want || !offline && err != nil {
			t.Errorf("HF_HUB_OFFLINE=%q: %v", value, err)
		}
	}
	if n := len(h.Requests()); n != 2 {
		t.Errorf("%d requests, want those of the two clients that may ask", n)
	}
}

// TestQuick: if there is another source, one failure is enough.
func TestQuick(t *testing.T) {
	h := newFakeHub(t)
	h.Put(repository, map[string]string{"config.json": "{}"})
	h.SetWrong(status(503, false))
	c := client(t, h)
	c.hurry()
	if _, err := c.Fetch(context.Background(), at(t, c), "config.json", target(t)); err == nil {
		t.Error("no error")
	}
	if n := len(h.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestRepository(t *testing.T) {
	t.Setenv("HF_ENDPOINT", "https://hub.example/mirror")
	c, err := newHubClient()
	must.Do(t, err)
	for _, test := range []struct{ text, revision, want, wantErr string }{
		{"owner/model", "", "https://hub.example/mirror/owner/model/resolve/main/a/b.json", ""},
		{"owner/model", "refs/pr/1", "https://hub.example/mirror/owner/model/resolve/refs%2Fpr%2F1/a/b.json", ""},
		{"owner/model.v-1_0", "v1", "https://hub.example/mirror/owner/model.v-1_0/resolve/v1/a/b.json", ""},
		{"https://other.example/owner/model", "", "https://other.example/owner/model/resolve/main/a/b.json", ""},
		{"https://other.example/owner/model/", "", "https://other.example/owner/model/resolve/main/a/b.json", ""},
		{"http://127.0.0.1:8080/owner/model", "", "http://127.0.0.1:8080/owner/model/resolve/main/a/b.json", ""},
		{"http://localhost/owner/model", "", "http://localhost/owner/model/resolve/main/a/b.json", ""},
		{"http://other.example/owner/model", "", "", "use https"},
		{"ftp://other.example/owner/model", "", "", "use https"},
		{"https://me:secret@other.example/owner/model", "", "", "HF_TOKEN"},
		{"https://other.example/owner/model/tree/v2", "", "", "the revision with --revision"},
		{"https://other.example/owner/model?x=y#z", "", "https://other.example/owner/model/resolve/main/a/b.json", ""},
		{"https://other.example/model", "", "", "it is https://HUB/OWNER/MODEL"},
		{"https://other.example/owner/..", "", "", "it is https://HUB/OWNER/MODEL"},
		{"https://other.example/owner/%2e%2e", "", "", "it is https://HUB/OWNER/MODEL"},
		{"no/such/folder", "", "", "neither a folder, nor OWNER/MODEL, nor an address"},
		{"../owner/model", "", "", "neither a folder"},
		{"owner/model", "../../x", "", "not a revision"},
		{"owner/model", "a b", "", "not a revision"},
		{"owner/model", "a\nb", "", "not a revision"},
	} {
		r, err := c.Repository(test.text, test.revision)
		if test.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), test.wantErr) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s@%s: got %v, want %q", test.text, test.revision, err, test.wantErr)
			}
			continue
		}
		if err != nil || r.file("a/b.json").String() != test.want {
			t.Errorf("%s@%s: got %v, %v, want %s", test.text, test.revision, r.file("a/b.json"), err, test.want)
		}
	}
	for _, endpoint := range []string{"http://hub.example", "hub.example", "https://me:secret@hub.example"} {
		t.Setenv("HF_ENDPOINT", endpoint)
		if _, err := newHubClient(); err == nil || !strings.Contains(err.Error(), "HF_ENDPOINT") || strings.Contains(err.Error(), "secret") {
			t.Errorf("HF_ENDPOINT=%s: %v", endpoint, err)
		}
	}
}

// TestProxy: the error names a proxy that refuses connections, but not its password.
func TestProxy(t *testing.T) {
	for code, want := range map[int]string{404: "answered 404 Not Found", 407: "answered 407 Proxy Authentication Required; put its user and password into HTTPS_PROXY"} {
		var asked atomic.Value
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Store(r.Method + " " + r.Host + " " + r.Header.Get("Authorization"))
			w.WriteHeader(code)
		}))
		t.Cleanup(server.Close)
		c := client(t, newFakeHub(t))
		c.token = "token"
		transport := c.transport.(*http.Transport)
		if transport.Proxy == nil || !transport.DisableCompression {
			t.Errorf("transport %+v", transport)
		}
		transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: strings.TrimPrefix(server.URL, "http://"), User: url.UserPassword("me", "secret")})
		c.endpoint = &url.URL{Scheme: "https", Host: "hub.invalid"}
		_, err := c.Fetch(context.Background(), at(t, c), "config.json", target(t))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want %q", err, want)
		}
		if got := asked.Load(); got != "CONNECT hub.invalid:443 " {
			t.Errorf("the proxy was asked %q", got)
		}
	}
}

// TestUnreachable: the error names the failed address without its signature.
func TestUnreachable(t *testing.T) {
	h := newFakeHub(t)
	h.Put(repository, map[string]string{"model.safetensors": weights})
	h.SetWrong(func(w http.ResponseWriter, _ *http.Request, cdn bool) bool {
		if !cdn {
			w.Header().Set("Location", "http://127.0.0.1:1/x?Signature=secret")
			w.WriteHeader(http.StatusFound)
		}
		return !cdn
	})
	c := client(t, h)
	c.hurry()
	_, err := c.Fetch(context.Background(), at(t, c), "model.safetensors", target(t))
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
}
