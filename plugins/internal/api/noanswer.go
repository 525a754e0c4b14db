package api

import (
	"errors"

	"github.com/racflow/racflow/sdk"
)

// maxNoAnswers is how many replies in a row may hold no answer before calls count as
// denied: what answers there is not the service that the file means.
const maxNoAnswers = 20

// NoAnswer is an error for Request.OnReply: the reply is JSON and a success, but holds
// nothing of what was asked for. It is transient.
func NoAnswer(text string) error { return sdk.Transient(&noAnswerError{text}, 0) }

type noAnswerError struct{ text string }

func (e *noAnswerError) Error() string { return e.text }

// statusOf is the status of a call whose reply was a success, by the error of reading it.
func (c *Client) statusOf(err error) sdk.Status {
	switch none := new(noAnswerError); {
	case !errors.As(err, &none):
		c.noAnswers.Store(0)
		return sdk.StatusOK
	case c.noAnswers.Add(1) > maxNoAnswers:
		return sdk.StatusDenied
	}
	return sdk.StatusRefused
}
