package model

import (
	"context"
	"crypto/sha1" // #nosec G505 -- git names contents so; nothing is protected by it
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk/support"
)

// mostHops is how many requests one file may take.
const mostHops = 8

// answer is a response with a file, or the rest of one.
type answer struct {
	body     io.ReadCloser
	offset   int64  // of the body's first byte in the file
	total    int64  // of the whole file; -1: unknown
	complete bool   // the local file is complete, and the body empty
	etag     string // of the content; empty: none, or a weak one
	commit   string
	host     string
}

// hash returns the declared hash, if it has that form. Only a hub's ETag is a hash.
func (a *answer) hash(form *regexp.Regexp) string {
	if etag := strings.Trim(a.etag, `"`); a.commit != "" && form.MatchString(etag) {
		return etag
	}
	return ""
}

func (a *answer) sha256() string { return a.hash(fileHash()) }

// open requests a file, or the rest of a partial one. It follows redirects itself, since the first
// responses describe the file, and the token must not leave the endpoint's host. The body ends with
// the context; stop ends it with a reason.
func (c *HubClient) open(ctx context.Context, stop context.CancelCauseFunc, address *url.URL, have part) (*answer, error) {
	late := time.AfterFunc(c.answerTime(), func() { stop(errSilent) })
	defer late.Stop()
	a := &answer{total: -1, body: http.NoBody}
	linked := false // the hub has described the file
	trusted := sameHost(address, c.endpoint)
	for range mostHops {
		response, err := c.ask(ctx, address, trusted, have, !linked)
		if err != nil {
			return nil, err
		}
		h := response.Header
		if commit := h.Get("X-Repo-Commit"); gitHash().MatchString(commit) {
			a.commit = commit
		}
		if etag := strong(h.Get("X-Linked-Etag")); etag != "" {
			linked, a.etag = true, etag
			if n, err := strconv.ParseInt(h.Get("X-Linked-Size"), 10, 64); err == nil && n >= 0 {
				a.total = n
			}
			if have.etag != etag {
				have = part{}
			}
		}
		switch response.StatusCode {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
			_ = response.Body.Close() // of no interest
			next, err := address.Parse(h.Get("Location"))
			if err != nil || !safe(next) || address.Scheme == "https" && next.Scheme != "https" { // a hub must not redirect to services of this machine either
				return nil, fmt.Errorf("%s redirects to an address that is not https", address.Host)
			}
			if have.size > 0 && have.size == a.total {
				a.offset, a.complete = have.size, true
				return a, nil
			}
			trusted = trusted && sameHost(next, address)
			address = next
			continue
		case http.StatusRequestedRangeNotSatisfiable:
			_ = response.Body.Close()
			if _, n := contentRange(h); have.size > 0 && n == have.size {
				a.etag, a.offset, a.total, a.complete = have.etag, n, n, true
				return a, nil
			}
			if have.size == 0 {
				return nil, statusError(response)
			}
			have = part{} // the file is shorter than the local part: restart
			continue
		case http.StatusOK, http.StatusPartialContent:
		default:
			_ = response.Body.Close()
			return nil, statusError(response)
		}
		if !linked {
			a.etag = strong(h.Get("Etag"))
		}
		from, n := int64(0), response.ContentLength
		if response.StatusCode == http.StatusPartialContent {
			from, n = contentRange(h)
			if from != have.size || from == 0 || a.etag != "" && a.etag != have.etag {
				_ = response.Body.Close()
				if have.size == 0 {
					return nil, fmt.Errorf("%s sends a part of the file that was not asked for", address.Host)
				}
				have = part{}
				continue
			}
			a.etag = have.etag
		}
		if a.total >= 0 && n >= 0 && n != a.total {
			_ = response.Body.Close()
			return nil, &transferError{fmt.Errorf("%s has %d bytes, the hub says %d", address.Host, n, a.total)}
		}
		if n >= 0 {
			a.total = n
		}
		a.body, a.offset, a.host = response.Body, from, address.Host
		return a, nil
	}
	return nil, fmt.Errorf("%s: more than %d redirects", address.Host, mostHops)
}

// ask sends one request.
func (c *HubClient) ask(ctx context.Context, address *url.URL, trusted bool, have part, unsure bool) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, errors.New("an address that no request can be made of")
	}
	request.Header.Set("User-Agent", "racflow")
	if trusted && c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if have.size > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", have.size))
		if unsure {
			request.Header.Set("If-Range", have.etag)
		}
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, transferred(ctx, address.Host, err)
	}
	c.reached = true
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

var ranges = support.Pattern(`^bytes (?:(\d{1,18})-\d{1,18}|\*)/(?:(\d{1,18})|\*)$`)

// contentRange parses the header Content-Range; -1: unknown.
func contentRange(h http.Header) (from, total int64) {
	m := ranges().FindStringSubmatch(h.Get("Content-Range"))
	number := func(i int) int64 {
		if m == nil || m[i] == "" {
			return -1
		}
		n, _ := strconv.ParseInt(m[i], 10, 64) // cannot fail: up to 18 digits
		return n
	}
	return number(1), number(2)
}

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
	for failures := 0; ; {
		before := size(t.Path)
		f, resumed, err := c.attempt(ctx, r, name, t)
		switch {
		case err == nil:
			return f, nil
		case ctx.Err() != nil:
			return Fetched{}, context.Cause(ctx)
		case errors.Is(err, errDiffers) && resumed: // the old part was damaged; the next attempt restarts
			continue
		case !temporary(err), !c.reached: // do not wait for a hub that has never answered
			return Fetched{}, fmt.Errorf("%s: %w", name, err)
		}
		if size(t.Path) > before {
			failures = 0 // some bytes came
		} else if failures++; failures >= c.attempts() {
			return Fetched{}, fmt.Errorf("%s: %w", name, err)
		}
		wait, tooLong := delay(max(failures, 1), err)
		if tooLong != nil {
			return Fetched{}, fmt.Errorf("%s: %w", name, tooLong)
		}
		if c.Note != nil {
			c.Note(fmt.Sprintf("%s: %v; trying again in %s", name, err, max(wait, time.Second).Round(time.Second)))
		}
		if err := c.sleep(ctx, wait); err != nil {
			return Fetched{}, err
		}
	}
}

// attempt requests the file once, or the rest of it, and reports whether it resumed a part.
func (c *HubClient) attempt(ctx context.Context, r Repository, name string, t Target) (_ Fetched, resumed bool, _ error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a, err := c.open(ctx, stop, r.file(name), begun(t))
	if err != nil {
		return Fetched{}, false, err
	}
	defer a.body.Close()
	resumed = a.offset > 0
	if err := a.acceptable(t); err != nil {
		return Fetched{}, resumed, err
	}
	if !a.complete {
		if err := c.receive(ctx, stop, a, t); err != nil {
			return Fetched{}, resumed, err
		}
	}
	sum, err := verify(a, t)
	if err != nil {
		return Fetched{}, resumed, errors.Join(err, os.Remove(t.Path))
	}
	return Fetched{Commit: a.commit, ETag: a.etag, Size: size(t.Path), SHA256: sum}, resumed, nil
}

// acceptable returns why an answer is refused without reading it.
func (a *answer) acceptable(t Target) error {
	if a.total > t.Limit {
		return fmt.Errorf("it has %s, more than the limit of %s", terminal.Bytes(a.total), terminal.Bytes(t.Limit))
	}
	if declared := a.sha256(); declared != "" && t.SHA256 != "" && declared != t.SHA256 {
		return fmt.Errorf("the hub has other content there (sha256 %s) than the pinned one (%s)", declared, t.SHA256)
	}
	dir := filepath.Dir(t.Path)
	if free := FreeSpace(dir); free >= 0 && a.total-a.offset > free {
		return fmt.Errorf("%s more are needed in %s, where %s are free", terminal.Bytes(a.total-a.offset), dir, terminal.Bytes(free))
	}
	return nil
}

var errDiffers = errors.New("what arrived differs")

// verify compares a complete file with the expected hashes, and returns its sha256.
func verify(a *answer, t Target) (string, error) {
	sum, err := program.HashFile(t.Path)
	if err != nil {
		return "", err
	}
	if t.SHA256 != "" && sum != t.SHA256 {
		return "", fmt.Errorf("%w: its sha256 is %s, the pinned one %s", errDiffers, sum, t.SHA256)
	}
	if declared := a.sha256(); declared != "" && sum != declared {
		return "", fmt.Errorf("%w: its sha256 is %s, the hub declares %s", errDiffers, sum, declared)
	}
	if declared := a.hash(gitHash()); declared != "" {
		git, err := blob(t.Path)
		if err == nil && git != declared {
			err = fmt.Errorf("%w: git would call it %s, the hub declares %s", errDiffers, git, declared)
		}
		return sum, err
	}
	return sum, nil
}

var (
	fileHash = support.Pattern(`^[0-9a-f]{64}$`)
	gitHash  = support.Pattern(`^[0-9a-f]{40}$`)
)

// blob returns git's hash of a file's content.
func blob(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	sum := sha1.New() // #nosec G401 -- as above
	fmt.Fprintf(sum, "blob %d\x00", info.Size())
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

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

// receive writes the body of an answer to the target.
func (c *HubClient) receive(ctx context.Context, stop context.CancelCauseFunc, a *answer, t Target) (err error) {
	var f *os.File
	if a.offset == 0 {
		f, err = begin(t, a.etag)
	} else {
		f, err = os.OpenFile(t.Path, os.O_WRONLY|os.O_APPEND, 0)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	stalled := time.AfterFunc(c.stallTime(), func() { stop(errStalled) })
	defer stalled.Stop()
	buffer, done := make([]byte, 256<<10), a.offset
	for {
		n, err := a.body.Read(buffer)
		stalled.Reset(c.stallTime())
		if done += int64(n); done > t.Limit || a.total >= 0 && done > a.total {
			return fmt.Errorf("%s sends more than it said, or more than the limit", a.host)
		}
		if _, err := f.Write(buffer[:n]); err != nil {
			return err
		}
		if n > 0 && t.Report != nil {
			t.Report(done, a.total)
		}
		switch {
		case err == io.EOF && (a.total < 0 || done == a.total):
			return nil
		case err == io.EOF:
			return &transferError{fmt.Errorf("%s: the connection was cut after %d of %d bytes", a.host, done, a.total)}
		case err != nil:
			return transferred(ctx, a.host, err)
		}
	}
}
