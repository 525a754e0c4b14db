package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"time"

	"github.com/racflow/racflow/engine/terminal"
)

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
