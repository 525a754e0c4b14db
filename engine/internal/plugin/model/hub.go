package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/plugin"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/sdk/support"
)

// This file downloads files of repositories on a model hub: Hugging Face's, a mirror of it, or any
// server with its addresses, ENDPOINT/OWNER/MODEL/resolve/REVISION/PATH.
//
// It respects the usual environment: HF_ENDPOINT, HF_TOKEN or the file with the token, HF_HUB_OFFLINE, and
// the proxy variables. It sends the token only to the endpoint's host, never to another host after a
// redirect. It compares a large file with the sha256 that the hub declares, and resumes a partly
// downloaded file.
//
// contents.go defines which files make a model, and pull.go where they belong.

const publicHub = "https://huggingface.co"

// errOffline says that the environment forbids requests to the hub.
var errOffline = errors.New("HF_HUB_OFFLINE is set, so the hub is not asked")

// quickSilence is how long a hub may send nothing if there is another source of the files.
const quickSilence = 5 * time.Second

// hubClient sends requests to hubs.
type hubClient struct {
	// Note gets a line when an attempt has failed and another attempt follows; may be nil.
	Note func(string)

	endpoint  *url.URL
	token     string
	offline   bool
	attempts  int // the client gives up after this many failures in a row
	transport http.RoundTripper
	reached   bool // a server has answered
	sleep     func(context.Context, time.Duration) error
}

// newHubClient returns a client configured by the environment.
func newHubClient() (*hubClient, error) {
	endpoint, err := parseAddress(cmp.Or(os.Getenv("HF_ENDPOINT"), publicHub))
	if err != nil {
		return nil, fmt.Errorf("HF_ENDPOINT: %w", err)
	}
	return &hubClient{
		endpoint: endpoint, token: token(), offline: isSet("HF_HUB_OFFLINE"),
		attempts: 5, transport: plugin.Transport(plugin.Silence), sleep: support.SleepFor,
	}, nil
}

// hurry makes the client give up within seconds if a hub does not answer, without another attempt: the
// caller has another source of the files.
func (c *hubClient) hurry() { c.attempts, c.transport = 1, plugin.Transport(quickSilence) }

// isSet reports whether a variable of the hub is on, by the rules of the hub's own library.
func isSet(name string) bool {
	switch strings.ToUpper(os.Getenv(name)) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}

// token returns the user's token for the endpoint; "": there is none.
func token() string {
	if t := os.Getenv("HF_TOKEN"); t != "" {
		return strings.TrimSpace(t)
	}
	folder := os.Getenv("HF_HOME")
	if home, err := os.UserHomeDir(); folder == "" && err == nil {
		folder = filepath.Join(home, ".cache", "huggingface")
	}
	content, err := os.ReadFile(filepath.Join(folder, "token"))
	if err != nil {
		return "" // most people have none
	}
	return strings.TrimSpace(string(content))
}

// StatusError is a response that is not a file.
type StatusError struct {
	Host    string
	Status  int    // HTTP status
	Code    string // the hub's error code, such as GatedRepo; may be empty
	Message string // from the hub, safe to print on a terminal; may be empty

	token bool // the request had a token
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

// Is makes a StatusError for a missing file match fs.ErrNotExist.
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
		token: r.Request.Header.Get("Authorization") != "",
	}
}

// temporary reports whether another attempt may succeed.
func temporary(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Status == http.StatusRequestTimeout || status.Status == http.StatusTooManyRequests || status.Status >= 500
	}
	var broken *transferError
	return errors.As(err, &broken)
}

// transferError is a failed connection.
type transferError struct{ err error }

func (e *transferError) Error() string { return e.err.Error() }
func (e *transferError) Unwrap() error { return e.err }

// Repository is a model's repository on a hub.
type Repository struct {
	Address  *url.URL // of its page, such as https://huggingface.co/OWNER/MODEL
	Revision string   // branch, tag or commit
}

func (r Repository) String() string { return r.Address.String() }

// Name returns the last part of the address.
func (r Repository) Name() string { return path.Base(r.Address.Path) }

// owned matches OWNER/MODEL; neither part can be "..".
var owned = support.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)

// isOwned reports whether a text has the form OWNER/MODEL.
func isOwned(text string) bool { return owned().MatchString(text) }

// Repository parses the name of a repository: OWNER/MODEL at the endpoint, or the address of its page. An
// empty revision means main.
func (c *hubClient) Repository(text, revision string) (Repository, error) {
	var r Repository
	if isOwned(text) {
		r = Repository{Address: c.endpoint.JoinPath(text)}
	} else {
		address, err := parseAddress(text)
		if err != nil {
			return r, err
		}
		steps := strings.Split(strings.Trim(address.Path, "/"), "/")
		if slices.Contains(steps, "tree") || slices.Contains(steps, "blob") {
			return r, fmt.Errorf("%q is the address of a revision: name the model, https://HUB/OWNER/MODEL, and the revision with --revision", text)
		}
		if len(steps) < 2 || !owned().MatchString(strings.Join(steps[len(steps)-2:], "/")) {
			return r, fmt.Errorf("%q is not the address of a model: it is https://HUB/OWNER/MODEL", text)
		}
		address.Path, address.RawPath = "/"+strings.Join(steps, "/"), ""
		r.Address = address
	}
	r.Revision = cmp.Or(revision, "main")
	if strings.Contains(r.Revision, "..") || strings.ContainsFunc(r.Revision, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '\\' }) {
		return r, fmt.Errorf("%q is not a revision: use a branch, a tag or a commit", r.Revision)
	}
	return r, nil
}

// parseAddress parses the address of a hub or of something on it.
func parseAddress(text string) (*url.URL, error) {
	address, err := url.Parse(text)
	if err != nil || address.Host == "" {
		return nil, fmt.Errorf("%q is neither a folder, nor OWNER/MODEL, nor an address such as https://HUB/OWNER/MODEL", text)
	}
	if address.User != nil {
		return nil, errors.New("an address with a password: give the hub's token in HF_TOKEN")
	}
	if !plugin.Safe(address) {
		return nil, fmt.Errorf("%q: use https", text)
	}
	address.RawQuery, address.Fragment = "", ""
	return address, nil
}

// file returns the address of one file of the repository.
func (r Repository) file(name string) *url.URL {
	a := *r.Address
	plain := strings.TrimSuffix(a.Path, "/") + "/resolve/"
	a.Path = plain + r.Revision + "/" + name
	a.RawPath = (&url.URL{Path: plain}).EscapedPath() + url.PathEscape(r.Revision) + "/" + (&url.URL{Path: name}).EscapedPath()
	return &a
}
