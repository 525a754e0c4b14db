package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// mostHops is how many requests one answer may take.
const mostHops = 8

// answer is a file, or the rest of one, that a server is about to send.
type answer struct {
	body     io.ReadCloser
	offset   int64  // of the first byte
	total    int64  // of the whole file; -1: not known
	complete bool   // all of it is here: nothing is sent
	etag     string // of the content, where it is a strong one
	commit   string
	host     string
}

// hash is the declared hash of that form. A server that is no hub may mean anything by an ETag.
func (a *answer) hash(form *regexp.Regexp) string {
	if etag := strings.Trim(a.etag, `"`); a.commit != "" && form.MatchString(etag) {
		return etag
	}
	return ""
}

func (a *answer) sha256() string { return a.hash(fileHash) }

// open follows redirects to the file, by hand: headers of the first answers say what it is, and the
// token must not leave the endpoint's host. Of a file that has begun it asks for the rest. The body
// ends with the context; stop ends it for a reason.
func (c *Client) open(ctx context.Context, stop context.CancelCauseFunc, address *url.URL, have part) (*answer, error) {
	late := time.AfterFunc(c.answerTime(), func() { stop(errSilent) })
	defer late.Stop()
	a := &answer{total: -1, body: http.NoBody}
	linked := false // the hub has said what the file is
	trusted := sameHost(address, c.endpoint)
	for range mostHops {
		response, err := c.ask(ctx, address, trusted, have, !linked)
		if err != nil {
			return nil, err
		}
		h := response.Header
		if commit := h.Get("X-Repo-Commit"); gitHash.MatchString(commit) {
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
			if err != nil || !safe(next) || address.Scheme == "https" && next.Scheme != "https" { // nor may a hub lead to what runs on this machine
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
			have = part{} // it is shorter than what is here: from its start
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
func (c *Client) ask(ctx context.Context, address *url.URL, trusted bool, have part, unsure bool) (*http.Response, error) {
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

// strong returns an ETag that stands for the bytes; "" for others.
func strong(etag string) string {
	if len(etag) < 2 || len(etag) > 200 || etag[0] != '"' || etag[len(etag)-1] != '"' {
		return ""
	}
	return etag
}

var ranges = regexp.MustCompile(`^bytes (?:(\d{1,18})-\d{1,18}|\*)/(?:(\d{1,18})|\*)$`)

// contentRange reads the header of that name; -1 for what it does not say.
func contentRange(h http.Header) (from, total int64) {
	m := ranges.FindStringSubmatch(h.Get("Content-Range"))
	number := func(i int) int64 {
		if m == nil || m[i] == "" {
			return -1
		}
		n, _ := strconv.ParseInt(m[i], 10, 64) // of up to 18 digits
		return n
	}
	return number(1), number(2)
}
