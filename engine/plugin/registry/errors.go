package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// ErrNotFound says that a repository, or something in it, does not exist.
var ErrNotFound = errors.New("it is not there")

// problem is an error with advice, and without the credentials that a registry may repeat.
type problem struct {
	text string
	is   error
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.is }

// explain says what went wrong while something was read or written, and what to do.
func (r *Repository) explain(what string, err error) error {
	if err == nil {
		return nil
	}
	var answer *errcode.ErrorResponse
	var network net.Error
	text, is := err.Error(), error(nil)
	switch {
	case errors.Is(err, context.Canceled):
		is = context.Canceled
	case errors.Is(err, auth.ErrBasicCredentialNotFound) || errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		text = fmt.Sprintf("the registry refuses it; log in with docker login %s, and look whether the repository's name is right", r.host)
	case errors.Is(err, errdef.ErrNotFound) || errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		text, is = ErrNotFound.Error(), ErrNotFound
	case errors.Is(err, content.ErrMismatchedDigest) || errors.Is(err, content.ErrTrailingData) || errors.Is(err, content.ErrInvalidDescriptorSize) || errors.Is(err, io.ErrUnexpectedEOF):
		text = fmt.Sprintf("what arrived is not what its digest says, or it was cut off (%v); try again, and if that does not help, ask whoever runs %s", err, r.name)
	case errors.As(err, &network):
		text += "; without a network, install what the lock has on a machine with one, or name a mirror in " + MirrorVariable
	}
	return &problem{r.secrets.Message(fmt.Sprintf("%s: %s: %s", r.name, what, text)), is}
}
