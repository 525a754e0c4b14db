package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/show/terminal"
	"github.com/racflow/racflow/sdk/support"
)

// This file downloads files of repositories on a model hub: Hugging Face's, a mirror of it, or
// any server with its addresses, ENDPOINT/OWNER/MODEL/resolve/REVISION/PATH.
//
// The usual environment counts: HF_ENDPOINT, HF_TOKEN or the file with the token, HF_HUB_OFFLINE,
// and the proxy variables. The token goes to the endpoint's host alone, never along a redirect to
// another one. A file that was cut off is resumed where the server still has the same content,
// and what arrives is compared with the hash that the hub declares.
//
// The package does not know which files make a model, nor where they belong: package model does.

const publicHub = "https://huggingface.co"

// ErrOffline says that the environment forbids to ask the hub.
var ErrOffline = errors.New("HF_HUB_OFFLINE is set, so the hub is not asked")

// HubClient asks hubs.
type HubClient struct {
	// Quick makes a hub that does not answer fail after seconds, without another attempt: there is
	// another way to get the files.
	Quick bool
	// Note gets a line where an attempt failed and another one follows; nil: nobody reads it.
	Note func(string)

	endpoint *url.URL
	token    string
	offline  bool
	http     *http.Client
	reached  bool // some server has answered

	answer time.Duration // the longest time until a server's headers are there, redirects included
	stall  time.Duration // the longest time without a byte
	sleep  func(context.Context, time.Duration) error
}

// NewHubClient makes a client as the environment says.
func NewHubClient() (*HubClient, error) {
	endpoint, err := parseAddress(cmp.Or(os.Getenv("HF_ENDPOINT"), publicHub))
	if err != nil {
		return nil, fmt.Errorf("HF_ENDPOINT: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() // with the proxies of the environment
	transport.DisableCompression = true                          // else sizes and hashes are of something else
	transport.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	transport.OnProxyConnectResponse = refused
	return &HubClient{
		endpoint: endpoint, token: token(), offline: isSet("HF_HUB_OFFLINE"),
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		answer: 30 * time.Second, stall: time.Minute, sleep: support.SleepFor,
	}, nil
}

// refused says that a proxy lets nobody through to a hub.
func refused(_ context.Context, proxy *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	text := fmt.Sprintf("the proxy %s answered %d %s", proxy.Host, answer.StatusCode, http.StatusText(answer.StatusCode))
	if answer.StatusCode == http.StatusProxyAuthRequired {
		text += "; put its user and password into HTTPS_PROXY"
	}
	return errors.New(text)
}

// isSet reports whether a variable of the hub is on, in the words that its own library takes.
func isSet(name string) bool {
	switch strings.ToUpper(os.Getenv(name)) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}

// token is the user's token for the endpoint; "": there is none.
func token() string {
	if isSet("HF_HUB_DISABLE_IMPLICIT_TOKEN") {
		return ""
	}
	if t := cmp.Or(os.Getenv("HF_TOKEN"), os.Getenv("HUGGING_FACE_HUB_TOKEN")); t != "" {
		return strings.TrimSpace(t)
	}
	path := os.Getenv("HF_TOKEN_PATH")
	if home := os.Getenv("HF_HOME"); path == "" && home != "" {
		path = filepath.Join(home, "token")
	}
	if path == "" {
		cache := os.Getenv("XDG_CACHE_HOME")
		if home, err := os.UserHomeDir(); cache == "" && err == nil {
			cache = filepath.Join(home, ".cache")
		}
		path = filepath.Join(cache, "huggingface", "token")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "" // most people have none
	}
	return strings.TrimSpace(string(content))
}

// answerTime is how long a server may take until its headers are there.
func (c *HubClient) answerTime() time.Duration {
	if c.Quick {
		return min(c.answer, 4*time.Second)
	}
	return c.answer
}

// stallTime is how long it may send nothing after that.
func (c *HubClient) stallTime() time.Duration {
	if c.Quick {
		return min(c.stall, 15*time.Second)
	}
	return c.stall
}

// attempts is how often in a row something may fail before the client gives up.
func (c *HubClient) attempts() int {
	if c.Quick {
		return 1
	}
	return 5
}

// longestWait is how long a server may ask to wait before another attempt.
const longestWait = 2 * time.Minute

// delay is how long to wait after a number of failures in a row, of which err is the last.
func delay(failures int, err error) (time.Duration, error) {
	var status *StatusError
	if errors.As(err, &status) && status.After > 0 {
		if status.After > longestWait {
			return 0, fmt.Errorf("%w; it asks to wait %s: try again later", err, status.After)
		}
		return status.After, nil
	}
	return support.Backoff{First: time.Second, Max: 30 * time.Second}.Delay(failures), nil
}

// retryAfter reads the header of that name: seconds or a date.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

// StatusError is an answer that is no file.
type StatusError struct {
	Host    string
	Status  int           // of HTTP
	Code    string        // of the hub, such as GatedRepo; may be empty
	Message string        // of the hub, fit for a terminal; may be empty
	After   time.Duration // how long to wait before another attempt; 0: not said

	token bool // one was sent
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s answered %d %s", e.Host, e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		text += ": " + e.Message
	}
	switch {
	case e.Code == "GatedRepo":
		return text + "; accept the model's terms on its page, and set HF_TOKEN to a token that may read it"
	case e.Code == "RevisionNotFound":
		return text + "; there is no such revision"
	case e.Status == http.StatusUnauthorized && e.token:
		return text + "; the repository does not exist, or the token (HF_TOKEN) is not valid for it"
	case e.Status == http.StatusUnauthorized, e.Code == "RepoNotFound":
		return text + "; the repository does not exist, or it is private: then set HF_TOKEN"
	case e.Status == http.StatusForbidden:
		return text + "; the token (HF_TOKEN) may not read it, or a proxy forbids it"
	}
	return text
}

// Is makes a file that the repository lacks fs.ErrNotExist.
func (e *StatusError) Is(target error) bool {
	return target == fs.ErrNotExist && e.Status == http.StatusNotFound && (e.Code == "" || e.Code == "EntryNotFound")
}

func statusError(r *http.Response) *StatusError {
	message := []rune(terminal.Sanitize(r.Header.Get("X-Error-Message")))
	if len(message) > 200 {
		message = append(message[:200], '…')
	}
	return &StatusError{
		Host: r.Request.URL.Host, Status: r.StatusCode, Code: r.Header.Get("X-Error-Code"), Message: string(message),
		After: retryAfter(r.Header, time.Now()), token: r.Request.Header.Get("Authorization") != "",
	}
}

// temporary reports whether another attempt may end otherwise.
func temporary(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Status == http.StatusRequestTimeout || status.Status == http.StatusTooManyRequests || status.Status >= 500
	}
	var broken *transferError
	return errors.As(err, &broken)
}

// transferError is a connection that failed.
type transferError struct{ err error }

func (e *transferError) Error() string { return e.err.Error() }
func (e *transferError) Unwrap() error { return e.err }

var (
	errSilent  = errors.New("no answer in time")
	errStalled = errors.New("nothing more arrived")
)

// transferred says what went wrong in a request, without its address: that may hold a signature.
func transferred(ctx context.Context, host string, err error) error {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return &transferError{fmt.Errorf("%s: %w", host, err)}
}

// Repository is a model's repository on a hub.
type Repository struct {
	Address  *url.URL // of its page, such as https://huggingface.co/OWNER/MODEL
	Revision string   // a branch, tag or commit
}

func (r Repository) String() string { return r.Address.String() }

// Name is the last part of the address.
func (r Repository) Name() string { return path.Base(r.Address.Path) }

// owned is OWNER/MODEL. Neither part may be a step up.
var owned = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)

// IsOwned reports whether a text is of the form OWNER/MODEL.
func IsOwned(text string) bool { return owned.MatchString(text) }

// Repository returns the repository that a text names: OWNER/MODEL at the endpoint, or the address
// of its page, which may go on with /tree/REVISION. A revision that is given beside it goes first;
// without any it is main.
func (c *HubClient) Repository(text, revision string) (Repository, error) {
	var r Repository
	if IsOwned(text) {
		r = Repository{Address: c.endpoint.JoinPath(text)}
	} else {
		address, err := parseAddress(text)
		if err != nil {
			return r, err
		}
		steps := strings.Split(strings.Trim(address.Path, "/"), "/")
		for i, step := range steps {
			if i > 1 && i+1 < len(steps) && (step == "tree" || step == "resolve" || step == "blob") {
				r.Revision = steps[i+1]
				steps = steps[:i]
				break
			}
		}
		if len(steps) < 2 || !owned.MatchString(strings.Join(steps[len(steps)-2:], "/")) {
			return r, fmt.Errorf("%q is not the address of a model: it is https://HUB/OWNER/MODEL", text)
		}
		address.Path, address.RawPath = "/"+strings.Join(steps, "/"), ""
		r.Address = address
	}
	if revision != "" {
		r.Revision = revision
	}
	if r.Revision == "" {
		r.Revision = "main"
	}
	if strings.Contains(r.Revision, "..") || strings.ContainsFunc(r.Revision, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '\\' }) {
		return r, fmt.Errorf("%q is not a revision: use a branch, a tag or a commit", r.Revision)
	}
	return r, nil
}

// parseAddress reads the address of a hub or of something there.
func parseAddress(text string) (*url.URL, error) {
	address, err := url.Parse(text)
	if err != nil || address.Host == "" {
		return nil, fmt.Errorf("%q is neither a folder, nor OWNER/MODEL, nor an address such as https://HUB/OWNER/MODEL", text)
	}
	if address.User != nil {
		return nil, errors.New("an address with a password: give the hub's token in HF_TOKEN")
	}
	if !safe(address) {
		return nil, fmt.Errorf("%q: use https", text)
	}
	address.RawQuery, address.Fragment = "", ""
	return address, nil
}

// safe reports whether nobody between here and there can read or change what is sent.
func safe(address *url.URL) bool {
	host := address.Hostname()
	ip := net.ParseIP(host)
	return address.Scheme == "https" || address.Scheme == "http" && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// file is the address of one file of the repository.
func (r Repository) file(name string) *url.URL {
	a := *r.Address
	plain := strings.TrimSuffix(a.Path, "/") + "/resolve/"
	a.Path = plain + r.Revision + "/" + name
	a.RawPath = (&url.URL{Path: plain}).EscapedPath() + url.PathEscape(r.Revision) + "/" + (&url.URL{Path: name}).EscapedPath()
	return &a
}
