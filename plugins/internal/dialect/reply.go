package dialect

import (
	"errors"
	"net/http"
	"strings"

	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
)

// Dialect is a provider's form of requests and replies.
type Dialect interface {
	// Path is where a request goes, below the base address, with its query.
	Path(r Request) string
	// Header is how a key is shown; an empty key gives what goes along without one.
	Header(key string) http.Header
	// Body encodes to the JSON object that is sent.
	Body(r Request) (any, error)
	// Read reads the whole reply to r, which is valid JSON.
	Read(reply []byte, r Request) (Reply, error)
	// Join makes a reply for Read of a stream of events. Its error says how the stream broke off.
	Join(events []byte) ([]byte, error)
}

// Reply is what a server replied.
type Reply struct {
	Choices       []Choice
	Usage         sdk.Usage // as it is reported, plausible or not
	ThoughtTokens uint64    // of Usage.OutputTokens
	Model         string    // that answered, by the server
	Streamed      bool      // it came as events
}

// Choice is one answer, as it is cached.
type Choice struct {
	Text     string  `json:"text"`               // also of content in parts, and the arguments of a tool call
	Thoughts string  `json:"thoughts,omitempty"` // that came in a field of their own
	Finish   string  `json:"finish,omitempty"`   // why it ended: FinishStop, FinishLength, ... or a server's own word
	Refusal  string  `json:"refusal,omitempty"`  // of the model
	Tokens   []Token `json:"-"`                  // of Text, where Logprobs was sent
}

// Why an answer ended.
const (
	FinishStop   = "stop"
	FinishLength = "length"         // a limit cut it
	FinishFilter = "content_filter" // a filter took it
	FinishError  = "error"          // the server broke off
)

// Token is a piece of an answer with the natural logarithm of its probability.
type Token struct {
	Text string
	Log  float64
}

// Broken is the error of an answer that the server did not end; nil: it did.
func (c Choice) Broken() error {
	if c.Finish == FinishError { // as gateways say it
		return sdk.Transient(errors.New("the server broke off in the middle of an answer"), 0)
	}
	return nil
}

// Unusable is why a reply is no answer, whatever its text; "": it may be one.
func (c Choice) Unusable() string {
	switch {
	case c.Refusal != "":
		return "the model refused: " + shorten(c.Refusal)
	case c.Finish == FinishFilter:
		return "the server's filter took the answer"
	}
	return ""
}

// TooLong is why an answer counts for nothing that a limit cut.
const TooLong = answer.CutOff

// Cut reports whether a limit ended the answer.
func (c Choice) Cut() bool { return c.Finish == FinishLength }

// Starved reports whether a limit ended the answer before anything of it was written, as
// when a model needs all tokens for its thoughts.
func (c Choice) Starved() bool { return c.Cut() && c.Visible() == "" }

// Visible is the text without what the model thought aloud.
func (c Choice) Visible() string {
	return strings.TrimSpace(strings.ToValidUTF8(c.Text[answer.Thoughts(c.Text):], "\uFFFD"))
}

// Written returns what an answer says, without what the model thought aloud, and an
// error where it says nothing that can be used.
func (c Choice) Written() (string, error) {
	if reason := c.Unusable(); reason != "" {
		return "", sdk.Invalid(errors.New(reason))
	}
	text := c.Visible()
	switch {
	case text == "" && c.Cut():
		return "", sdk.Invalid(errors.New(TooLong))
	case text == "":
		return "", sdk.Invalid(errors.New(answer.Nothing))
	}
	return text, nil
}

// shorten keeps a reason to a line.
func shorten(text string) string {
	const most = 160
	line := fewshot.OneLine(text)
	if short := fewshot.Clip(line, most); short != line {
		return short + "..."
	}
	return line
}
