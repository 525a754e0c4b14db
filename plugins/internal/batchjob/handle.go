package batchjob

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/racflow/racflow/sdk"
)

// handle names work that is under way: all jobs that were sent for it.
type handle struct {
	Jobs     []string  `json:"jobs,omitempty"`     // oldest first; none: nothing was sent yet
	Latest   int       `json:"latest,omitempty"`   // how many of them, at the end, are not known to have ended
	Round    int       `json:"round,omitempty"`    // of jobs one after the other
	Requests int       `json:"requests,omitempty"` // of the latest
	Mark     string    `json:"mark,omitempty"`     // digest of the first job: what was cached then is kept under it
	Cached   bool      `json:"cached,omitempty"`   // something was
	Since    time.Time `json:"since,omitzero"`     // when the latest were sent
	Digests  []string  `json:"digests,omitempty"`  // of the latest, as intents are called
	// What the latest take, to reserve it again.
	Tokens int    `json:"tokens,omitempty"`
	Input  uint64 `json:"input,omitempty"`
	Output uint64 `json:"output,omitempty"`
}

func (h handle) String() string {
	text, _ := json.Marshal(h) // texts, numbers and a time of this century
	return string(text)
}

func readHandle(text string) (h handle, err error) {
	if text == "" {
		return h, nil
	}
	if err = json.Unmarshal([]byte(text), &h); err == nil && (h.Latest < 0 || h.Latest > len(h.Jobs)) {
		err = errors.New("it names jobs that it does not have")
	}
	return h, err
}

// call is what the latest jobs take.
func (h handle) call() sdk.Call {
	return sdk.Call{Tokens: h.Tokens, Most: sdk.Usage{InputTokens: h.Input, OutputTokens: h.Output}, Batch: true}
}

// next is the handle once more jobs were sent.
func (h handle) next(ids, digests []string, requests int, c sdk.Call) handle {
	return handle{
		Jobs: append(h.Jobs[:len(h.Jobs):len(h.Jobs)], ids...), Latest: len(ids), Round: h.Round + 1, Requests: requests,
		Mark: h.Mark, Cached: h.Cached, Digests: digests, Since: time.Now().UTC().Truncate(time.Second),
		Tokens: c.Tokens, Input: c.Most.InputTokens, Output: c.Most.OutputTokens,
	}
}
