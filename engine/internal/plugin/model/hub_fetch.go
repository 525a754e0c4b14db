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

	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/sdk/support"
)

// Target is where to save a file, and which content to accept.
type Target struct {
	Path   string                  // of the file; its partial download is beside it
	SHA256 string                  // in hex; "": any
	Limit  int64                   // most bytes
	Report func(done, total int64) // called as bytes arrive; total is -1 if unknown; may be nil
}

// fetched describes a downloaded file.
type fetched struct {
	Commit string // of the repository; "": unknown
	Size   int64
	SHA256 string
}

// Fetch downloads one file of a repository to its target, in several attempts if needed. If the hub declares the file's
// hash, as it does for large files, a failure leaves the partial download, and the next call gets the rest. The error
// is fs.ErrNotExist if the repository has no such file.
func (c *hubClient) Fetch(ctx context.Context, r Repository, name string, t Target) (fetched, error) {
	if c.offline {
		return fetched{}, errOffline
	}
	for failures := 1; ; failures++ {
		a := &answer{total: -1}
		f, err := c.attempt(ctx, r.file(name), a, t)
		if err == nil {
			return f, nil
		}
		if ctx.Err() != nil {
			return fetched{}, context.Cause(ctx)
		}
		if a.sha256 != "" && size(a.part(t)) > a.have {
			failures = 0 // some bytes came
		}
		if !temporary(err) || !c.reached || failures >= c.attempts { // do not wait for a hub that has never answered
			return fetched{}, fmt.Errorf("%s: %w", name, err)
		}
		wait := support.Backoff{First: time.Second, Max: 30 * time.Second}.Delay(max(failures, 1))
		if c.Note != nil {
			c.Note(fmt.Sprintf("%s: %v; trying again in %s", name, err, max(wait, time.Second).Round(time.Second)))
		}
		if err := c.sleep(ctx, wait); err != nil {
			return fetched{}, err
		}
	}
}

// answer holds what responses say about a file.
type answer struct {
	commit string
	sha256 string // of the content; "": the hub does not declare it
	total  int64  // bytes of the file; -1: unknown
	have   int64  // bytes of the file that are here, if the hash is known
}

func (a *answer) read(h http.Header) {
	if commit := h.Get("X-Repo-Commit"); gitHash().MatchString(commit) {
		a.commit = commit
	}
	if etag := strings.Trim(h.Get("X-Linked-Etag"), `"`); a.commit != "" && fileHash().MatchString(etag) {
		a.sha256 = etag
		if n, err := strconv.ParseInt(h.Get("X-Linked-Size"), 10, 64); err == nil && n >= 0 {
			a.total = n
		}
	}
}

// part returns the path of a file's partial download. The path depends on the content, so that other content is never
// resumed.
func (a *answer) part(t Target) string {
	if a.sha256 == "" {
		return t.Path + ".part"
	}
	return t.Path + "." + a.sha256
}

// attempt requests the file once, or the rest of it.
func (c *hubClient) attempt(ctx context.Context, address *url.URL, a *answer, t Target) (fetched, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return fetched{}, errors.New("an address that no request can be made of")
	}
	response, err := c.request(request, a, t)
	if err != nil {
		return fetched{}, err
	}
	defer response.Body.Close()
	if a.have == 0 || a.have != a.total {
		if err := c.receive(response, a, t); err != nil {
			return fetched{}, err
		}
	}
	sum, err := a.verify(t)
	if err != nil {
		err = errors.Join(err, os.Remove(a.part(t)))
		if a.have > 0 {
			err = &transferError{err} // the partial file was damaged; the next attempt starts again
		}
		return fetched{}, err
	}
	return fetched{Commit: a.commit, Size: size(a.part(t)), SHA256: sum}, os.Rename(a.part(t), t.Path)
}

// request sends a request and follows redirects. The first responses describe the file. The token is sent only to the
// endpoint's host. Once the hub has declared the content, the other hosts are asked only for the missing part.
func (c *hubClient) request(request *http.Request, a *answer, t Target) (*http.Response, error) {
	request.Header.Set("User-Agent", "racflow")
	if c.token != "" && sameHost(request.URL, c.endpoint) {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	client := &http.Client{Transport: c.transport, CheckRedirect: func(to *http.Request, before []*http.Request) error {
		c.reached = true
		if err := plugin.StaySafe(to, before); err != nil {
			return err
		}
		if a.read(to.Response.Header); a.sha256 != "" {
			if size(t.Path) == a.total { // an earlier pull has the file, if the content is the same
				_ = os.Rename(t.Path, a.part(t))
			}
			if a.have = size(a.part(t)); a.have == a.total {
				return http.ErrUseLastResponse
			}
		}
		if a.have > 0 {
			to.Header.Set("Range", fmt.Sprintf("bytes=%d-", a.have))
		}
		if !sameHost(to.URL, c.endpoint) {
			to.Header.Del("Authorization")
		}
		return nil
	}}
	response, err := client.Do(request)
	switch {
	case err != nil && response != nil: // a refused redirect
		return nil, plugin.Plain(err)
	case err != nil:
		return nil, &transferError{plugin.Plain(err)}
	}
	c.reached = true
	a.read(response.Header)
	return response, nil
}

func sameHost(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// receive appends the body of a response to the partial file.
func (c *hubClient) receive(response *http.Response, a *answer, t Target) (err error) {
	host, n, flags := response.Request.URL.Host, response.ContentLength, os.O_APPEND
	switch response.StatusCode {
	case http.StatusOK:
		a.have, flags = 0, os.O_TRUNC
	case http.StatusPartialContent:
		var from int64
		if _, err := fmt.Sscanf(response.Header.Get("Content-Range"), "bytes %d-", &from); err != nil || from != a.have || from == 0 {
			return fmt.Errorf("%s sends a part of the file that was not asked for", host)
		}
		n += from
	case http.StatusRequestedRangeNotSatisfiable:
		return &transferError{errors.Join(fmt.Errorf("%s does not send the rest of the file", host), os.Remove(a.part(t)))}
	default:
		return statusError(response)
	}
	if a.total >= 0 && response.ContentLength >= 0 && n != a.total {
		return &transferError{fmt.Errorf("%s has %d bytes, the hub says %d", host, n, a.total)}
	}
	a.total = max(a.total, n)
	if a.total > t.Limit {
		return fmt.Errorf("%s: it has %s, more than the limit of %s", host, terminal.Bytes(a.total), terminal.Bytes(t.Limit))
	}
	if a.sha256 != "" && t.SHA256 != "" && a.sha256 != t.SHA256 {
		return fmt.Errorf("the hub has other content there (sha256 %s) than the pinned one (%s)", a.sha256, t.SHA256)
	}
	f, err := os.OpenFile(a.part(t), os.O_CREATE|os.O_WRONLY|flags, 0o644) // #nosec G302 -- models are for all users of the machine
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := &reporting{Reader: response.Body, done: a.have, total: a.total, report: t.Report}
	_, err = io.Copy(f, io.LimitReader(in, t.Limit-a.have+1))
	onDisk := (*fs.PathError)(nil)
	switch {
	case in.done > t.Limit:
		return fmt.Errorf("%s sends more than the limit", host)
	case err == nil || errors.As(err, &onDisk):
		return err
	}
	return &transferError{fmt.Errorf("%s: after %d of %d bytes: %w", host, in.done, a.total, err)}
}

// verify compares a complete file with the expected hashes, and returns its sha256.
func (a *answer) verify(t Target) (string, error) {
	sum, err := program.HashFile(a.part(t))
	if err != nil {
		return "", err
	}
	if t.SHA256 != "" && sum != t.SHA256 {
		return "", fmt.Errorf("what arrived differs: its sha256 is %s, the pinned one %s", sum, t.SHA256)
	}
	if a.sha256 != "" && sum != a.sha256 {
		return "", fmt.Errorf("what arrived differs: its sha256 is %s, the hub declares %s", sum, a.sha256)
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

// reporting reports the bytes that are read.
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
