package api

import (
	"errors"

	"github.com/racflow/racflow/sdk"
)

// slips is how many replies in a row may be no answers until the Host hears that
// the service denies them: what answers there is not what the file says it is.
const slips = 20

// NoAnswer is an error for Took: the reply is JSON, and a success, and holds
// nothing of what was asked for. One such reply may be a slip, so that another try
// may succeed.
func NoAnswer(text string) error { return sdk.Transient(&noAnswerError{text}, 0) }

type noAnswerError struct{ text string }

func (e *noAnswerError) Error() string { return e.text }

// worth says how a call ended whose reply was a success, by the error of reading it.
func (c *Client) worth(err error) sdk.Status {
	switch none := new(noAnswerError); {
	case !errors.As(err, &none):
		c.slips.Store(0)
		return sdk.StatusOK
	case c.slips.Add(1) > slips:
		return sdk.StatusDenied
	}
	return sdk.StatusRefused
}
