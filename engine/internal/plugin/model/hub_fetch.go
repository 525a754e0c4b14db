package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/plugin/transfer"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk/support"
)

// Target is where to save a file, and which content to accept.
type Target struct {
	Path   string                  // of the file; an existing part is resumed
	State  string                  // file that keeps the ETag of the partial content, between attempts and processes
	SHA256 string                  // in hex; "": any
	Limit  int64                   // most bytes
	Report func(done, total int64) // called as bytes arrive; total is -1 if unknown; may be nil
}

// Fetched describes a downloaded file.
type Fetched struct {
	Commit string // of the repository; "": unknown
	ETag   string // of the content; "": unknown
	Size   int64
	SHA256 string
}

// Fetch downloads one file of a repository to its target, in several attempts if needed. After a
// failure it keeps the part that has arrived, and the next call resumes it if the hub still has the
// same content. The error is fs.ErrNotExist if the repository has no such file.
func (c *HubClient) Fetch(ctx context.Context, r Repository, name string, t Target) (Fetched, error) {
	if c.offline {
		return Fetched{}, ErrOffline
	}
	for failures := 1; ; failures++ {
		before := size(t.Path)
		f, err := c.attempt(ctx, r, name, t)
		if err == nil {
			return f, nil
		}
		if ctx.Err() != nil {
			return Fetched{}, context.Cause(ctx)
		}
		if size(t.Path) > before {
			failures = 0 // some bytes came
		}
		if !temporary(err) || !c.reached || failures >= c.attempts { // do not wait for a hub that has never answered
			return Fetched{}, fmt.Errorf("%s: %w", name, err)
		}
		wait := support.Backoff{First: time.Second, Max: 30 * time.Second}.Delay(max(failures, 1))
		if c.Note != nil {
			c.Note(fmt.Sprintf("%s: %v; trying again in %s", name, err, max(wait, time.Second).Round(time.Second)))
		}
		if err := c.sleep(ctx, wait); err != nil {
			return Fetched{}, err
		}
	}
}

// answer is what responses say about a file.
type answer struct {
	etag   string // of the content; empty: none, or a weak one
	linked bool   // the hub has said the ETag; that of the host that sends the file does not count
	total  int64  // bytes of the file; -1: unknown
	commit string
}

func (a *answer) read(h http.Header) {
	if commit := h.Get("X-Repo-Commit"); gitHash().MatchString(commit) {
		a.commit = commit
	}
	if etag := strong(h.Get("X-Linked-Etag")); etag != "" {
		a.etag, a.linked = etag, true
		if n, err := strconv.ParseInt(h.Get("X-Linked-Size"), 10, 64); err == nil && n >= 0 {
			a.total = n
		}
	}
	if !a.linked {
		a.etag = strong(h.Get("Etag"))
	}
}

// sha256 returns the declared hash. Only a hub's ETag is one.
func (a *answer) sha256() string {
	if etag := strings.Trim(a.etag, `"`); a.commit != "" && fileHash().MatchString(etag) {
		return etag
	}
	return ""
}

// attempt requests the file once, or the rest of it.
func (c *HubClient) attempt(ctx context.Context, r Repository, name string, t Target) (f Fetched, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a, have := &answer{total: -1}, begun(t)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.file(name).String(), nil)
	if err != nil {
		return f, errors.New("an address that no request can be made of")
	}
	response, err := c.request(request, a, have)
	if err != nil {
		return f, err
	}
	defer response.Body.Close()
	host := response.Request.URL.Host
	whole := have.size > 0 && have.etag == a.etag && have.size == a.total // the hub has described the file
	from, n := contentRange(response.Header)
	unsuitable := response.StatusCode == http.StatusRequestedRangeNotSatisfiable
	switch {
	case whole:
	case unsuitable && have.size > 0 && n == have.size:
		whole, a.etag, a.total = true, have.etag, n
	case have.size > 0 && (unsuitable || response.StatusCode == http.StatusPartialContent && from != have.size): // the next attempt begins anew
		return f, &transferError{errors.Join(fmt.Errorf("%s does not send the rest of the file", host), os.Remove(t.State))}
	case response.StatusCode == http.StatusOK:
		have = part{}
	case response.StatusCode != http.StatusPartialContent:
		return f, statusError(response)
	}
	if !whole {
		if err := a.body(response, have); err != nil {
			return f, fmt.Errorf("%s %w", host, err)
		}
		if err := a.acceptable(t); err != nil {
			return f, err
		}
		if err := c.receive(response, a, have.size, t); err != nil {
			return f, err
		}
	}
	sum, err := verify(a, t)
	if err != nil {
		err = errors.Join(err, os.Remove(t.Path))
		if have.size > 0 {
			err = &transferError{err} // the old part was damaged; the next attempt begins anew
		}
		return f, err
	}
	return Fetched{Commit: a.commit, ETag: a.etag, Size: size(t.Path), SHA256: sum}, nil
}

// request sends a request and follows redirects. The first responses describe the file; the token does not leave the
// endpoint's host. Once the hub has named the content, the other hosts are asked for the rest of the part that is
// there, or for all of another content, whatever ETags they have themselves.
func (c *HubClient) request(request *http.Request, a *answer, have part) (*http.Response, error) {
	request.Header.Set("User-Agent", "racflow")
	if c.token != "" && sameHost(request.URL, c.endpoint) {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if have.size > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", have.size))
		request.Header.Set("If-Range", have.etag)
	}
	client := &http.Client{Transport: c.transport, CheckRedirect: func(to *http.Request, before []*http.Request) error {
		c.reached = true
		if err := transfer.StaySafe(to, before); err != nil {
			return err
		}
		if a.read(to.Response.Header); a.linked {
			to.Header.Del("If-Range")
			switch {
			case a.etag != have.etag:
				to.Header.Del("Range")
			case a.total == have.size:
				return http.ErrUseLastResponse // the file is here already
			}
		}
		if !sameHost(to.URL, c.endpoint) {
			to.Header.Del("Authorization")
		}
		return nil
	}}
	response, err := client.Do(request)
	switch {
	case err != nil && response != nil: // a refused redirect
		return nil, transfer.Plain(err)
	case err != nil:
		return nil, &transferError{transfer.Plain(err)}
	}
	c.reached = true
	a.read(response.Header)
	return response, nil
}

func sameHost(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// strong returns an ETag that identifies the exact bytes; "" for any other.
func strong(etag string) string {
	if len(etag) < 2 || len(etag) > 200 || etag[0] != '"' || etag[len(etag)-1] != '"' {
		return ""
	}
	return etag
}

// contentRange parses the header Content-Range; -1: unknown.
func contentRange(h http.Header) (from, total int64) {
	var to int64
	text := h.Get("Content-Range")
	if _, err := fmt.Sscanf(text, "bytes %d-%d/%d", &from, &to, &total); err == nil {
		return from, total
	}
	if _, err := fmt.Sscanf(text, "bytes */%d", &total); err == nil {
		return -1, total
	}
	return -1, -1
}

// body checks that a body is the file, or the rest of the part that is there.
func (a *answer) body(response *http.Response, have part) error {
	n := response.ContentLength
	if response.StatusCode == http.StatusPartialContent {
		var from int64
		if from, n = contentRange(response.Header); from != have.size || from == 0 {
			return errors.New("sends a part of the file that was not asked for")
		}
		a.etag = have.etag
	}
	if a.total >= 0 && n >= 0 && n != a.total {
		return &transferError{fmt.Errorf("has %d bytes, the hub says %d", n, a.total)}
	}
	a.total = max(a.total, n)
	return nil
}

// acceptable returns why an answer is refused without reading it.
func (a *answer) acceptable(t Target) error {
	if a.total > t.Limit {
		return fmt.Errorf("it has %s, more than the limit of %s", terminal.Bytes(a.total), terminal.Bytes(t.Limit))
	}
	if declared := a.sha256(); declared != "" && t.SHA256 != "" && declared != t.SHA256 {
		return fmt.Errorf("the hub has other content there (sha256 %s) than the pinned one (%s)", declared, t.SHA256)
	}
	return nil
}

// verify compares a complete file with the expected hashes, and returns its sha256.
func verify(a *answer, t Target) (string, error) {
	sum, err := program.HashFile(t.Path)
	if err != nil {
		return "", err
	}
	if t.SHA256 != "" && sum != t.SHA256 {
		return "", fmt.Errorf("what arrived differs: its sha256 is %s, the pinned one %s", sum, t.SHA256)
	}
	if declared := a.sha256(); declared != "" && sum != declared {
		return "", fmt.Errorf("what arrived differs: its sha256 is %s, the hub declares %s", sum, declared)
	}
	return sum, nil
}

var (
	fileHash = support.Pattern(`^[0-9a-f]{64}$`)
	gitHash  = support.Pattern(`^[0-9a-f]{40}$`)
)

// size returns the bytes of a file; 0 if it does not exist.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// part is the local beginning of a file.
type part struct {
	etag string // of the content; "": unknown, so the part cannot be resumed
	size int64
}

func begun(t Target) part {
	etag, err := os.ReadFile(t.State)
	if err != nil {
		return part{}
	}
	return part{string(etag), size(t.Path)}
}

// begin creates an empty file, and saves the ETag of its future content.
func begin(t Target, etag string) (*os.File, error) {
	if err := os.Remove(t.State); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.Create(t.Path)
	if err != nil || etag == "" {
		return f, err
	}
	if err := os.WriteFile(t.State, []byte(etag), 0o600); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// receive writes the body of a response to the target, which has the bytes before it.
func (c *HubClient) receive(response *http.Response, a *answer, before int64, t Target) (err error) {
	f, err := os.OpenFile(t.Path, os.O_WRONLY|os.O_APPEND, 0)
	if before == 0 {
		f, err = begin(t, a.etag)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := &reporting{Reader: response.Body, done: before, total: a.total, report: t.Report}
	_, err = io.Copy(f, io.LimitReader(in, t.Limit-before+1))
	host, onDisk := response.Request.URL.Host, (*fs.PathError)(nil)
	switch {
	case in.done > t.Limit:
		return fmt.Errorf("%s sends more than the limit", host)
	case err == nil || errors.As(err, &onDisk):
		return err
	}
	return &transferError{fmt.Errorf("%s: after %d of %d bytes: %w", host, in.done, a.total, err)}
}

// reporting reports what is read.
type reporting struct {
	io.Reader
	done, total int64
	report      func(done, total int64) // may be nil
}

func (r *reporting) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if r.done += int64(n); n > 0 && r.report != nil {
		r.report(r.done, r.total)
	}
	return n, err
}
