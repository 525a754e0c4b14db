package model

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

// hubCommit is the commit of all revisions, unless a test sets another one.
const hubCommit = "0123456789abcdef0123456789abcdef01234567"

// fakeHub is a model hub on loopback with the protocol of Hugging Face, with the second host that
// sends its large files.
type fakeHub struct {
	URL string // of the hub
	CDN string // of the other host

	mu       sync.Mutex
	commit   string
	files    map[string][]byte // by OWNER/MODEL/PATH
	wrong    hubFailure
	requests []hubRequest
}

// hubFailure is an injected failure: if it returns true, it has answered the request instead of the
// hub.
type hubFailure func(w http.ResponseWriter, r *http.Request, cdn bool) bool

// hubRequest is a received request.
type hubRequest struct {
	CDN                  bool
	Path                 string // without its query
	Authorization, Range string
}

// newFakeHub starts a hub that ends with the test.
func newFakeHub(t testing.TB) *fakeHub {
	h := &fakeHub{files: map[string][]byte{}, commit: hubCommit}
	serve := func(cdn bool, handle http.HandlerFunc) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.mu.Lock()
			h.requests = append(h.requests, hubRequest{cdn, r.URL.EscapedPath(), r.Header.Get("Authorization"), r.Header.Get("Range")})
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
func (h *fakeHub) Put(repository string, files map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for path, content := range files {
		h.files[repository+"/"+path] = []byte(content)
	}
}

// Remove removes a file.
func (h *fakeHub) Remove(repository, path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.files, repository+"/"+path)
}

// SetCommit sets the commit of all revisions; "": the server sends no commit and no hash.
func (h *fakeHub) SetCommit(commit string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.commit = commit
}

// SetWrong injects a failure from now on.
func (h *fakeHub) SetWrong(wrong hubFailure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = wrong
}

// Requests returns the requests so far, and clears them.
func (h *fakeHub) Requests() []hubRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.requests
	h.requests = nil
	return all
}

// resolve answers for the hub.
func (h *fakeHub) resolve(w http.ResponseWriter, r *http.Request) {
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
func (h *fakeHub) send(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	content, found := h.files[strings.TrimPrefix(r.URL.Path, "/blobs/")]
	h.mu.Unlock()
	if !found || r.URL.Query().Get("Signature") != "secret" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}
