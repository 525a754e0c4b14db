// Package fakehub is a model hub on loopback for tests, with the protocol of Hugging Face. The hub
// sends small files itself; it redirects large ones to a signed address on
// another host, named by their sha256. Tests inject failures.
package fakehub

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Commit is the commit of all revisions, unless a test sets another one.
const Commit = "0123456789abcdef0123456789abcdef01234567"

// Hub is a hub, and the other host that sends its large files.
type Hub struct {
	URL string // of the hub
	CDN string // of the other host

	mu       sync.Mutex
	commit   string
	files    map[string][]byte // by OWNER/MODEL/PATH
	wrong    Wrong
	requests []Request
}

// Wrong is an injected failure: if it returns true, it has answered the request in place of the hub.
type Wrong func(w http.ResponseWriter, r *http.Request, cdn bool) bool

// Request is a received request.
type Request struct {
	CDN                  bool
	Path                 string // without its query
	Authorization, Range string
}

// New starts a hub that ends with the test.
func New(t testing.TB) *Hub {
	h := &Hub{files: map[string][]byte{}, commit: Commit}
	serve := func(cdn bool, handle http.HandlerFunc) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.mu.Lock()
			h.requests = append(h.requests, Request{cdn, r.URL.EscapedPath(), r.Header.Get("Authorization"), r.Header.Get("Range")})
			wrong := h.wrong
			h.mu.Unlock()
			if wrong == nil || !wrong(w, r, cdn) {
				handle(w, r)
			}
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	h.URL = serve(false, h.resolve)
	h.CDN = serve(true, h.send)
	return h
}

// Put adds or changes files of a repository.
func (h *Hub) Put(repository string, files map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for path, content := range files {
		h.files[repository+"/"+path] = []byte(content)
	}
}

// Remove removes a file.
func (h *Hub) Remove(repository, path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.files, repository+"/"+path)
}

// SetCommit sets the commit of all revisions; "": the server sends no commit and no hash.
func (h *Hub) SetCommit(commit string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.commit = commit
}

// SetWrong injects a failure from now on.
func (h *Hub) SetWrong(wrong Wrong) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = wrong
}

// Requests returns the requests so far, and clears them.
func (h *Hub) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.requests
	h.requests = nil
	return all
}

// resolve answers for the hub.
func (h *Hub) resolve(w http.ResponseWriter, r *http.Request) {
	repository, rest, ok := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/resolve/")
	_, path, _ := strings.Cut(rest, "/") // a revision is one path element, with its slashes escaped
	h.mu.Lock()
	content, found := h.files[repository+"/"+path]
	known := false
	for name := range h.files {
		known = known || strings.HasPrefix(name, repository+"/")
	}
	commit := h.commit
	h.mu.Unlock()
	switch {
	case !ok || !known:
		w.Header().Set("X-Error-Code", "RepoNotFound")
		w.Header().Set("X-Error-Message", "Invalid username or password.")
		w.WriteHeader(http.StatusUnauthorized)
		return
	case !found:
		w.Header().Set("X-Error-Code", "EntryNotFound")
		w.Header().Set("X-Error-Message", "Entry not found")
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if commit != "" {
		w.Header().Set("X-Repo-Commit", commit)
	}
	if !strings.HasSuffix(path, ".safetensors") {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		return
	}
	sum := sha256.Sum256(content)
	if commit != "" {
		w.Header().Set("X-Linked-Etag", `"`+hex.EncodeToString(sum[:])+`"`)
		w.Header().Set("X-Linked-Size", fmt.Sprint(len(content)))
	}
	w.Header().Set("Location", h.CDN+"/blobs/"+repository+"/"+path+"?Signature=secret")
	w.WriteHeader(http.StatusFound)
}

// send answers for the other host.
func (h *Hub) send(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	content, found := h.files[strings.TrimPrefix(r.URL.Path, "/blobs/")]
	h.mu.Unlock()
	if !found || r.URL.Query().Get("Signature") != "secret" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}
