package profile

import (
	"encoding/json"
	"math/bits"
	"slices"

	"github.com/racflow/racflow/plugins/internal/dialect"
)

// Seen adds up what the replies to real requests said, for estimates: texts of other
// languages than the probe's have other tokens, and other questions other thoughts.
type Seen struct {
	Requests int `json:"requests"`
	Bytes    int `json:"bytes"`  // of their prompts and schemas
	Tokens   int `json:"tokens"` // that these had, without what the chat template adds
	Answers  int `json:"answers"`
	Thoughts int `json:"thoughts"` // tokens that the model thought before these
	Objects  int `json:"objects"`  // answers that are JSON objects of several properties
	Written  int `json:"written"`  // tokens of these, about
}

// enough is how many requests are counted in full: of more, earlier ones count less.
const enough = 1024

// add counts a reply to a request of a model with a profile, as the request was sent.
func (s Seen) add(p Profile, sent dialect.Request, reply dialect.Reply) Seen {
	in := int(reply.Usage.InputTokens)
	if !reply.Usage.Plausible() || in == 0 || len(reply.Choices) == 0 || slices.ContainsFunc(reply.Choices, dialect.Choice.Starved) {
		return s
	}
	if s.Requests >= enough {
		s = Seen{s.Requests / 2, s.Bytes / 2, s.Tokens / 2, s.Answers / 2, s.Thoughts / 2, s.Objects / 2, s.Written / 2}
	}
	s.Requests++
	s.Bytes += len(asked(sent)) + len(p.schema(sent))
	s.Tokens += max(0, in-p.template(sent))
	s.Answers += len(reply.Choices)
	texts := visible(reply)
	tokens, thinks := thoughts(reply, texts)
	if thinks {
		s.Thoughts += tokens * len(reply.Choices)
	}
	if slices.ContainsFunc(texts, several) {
		s.Objects += len(texts)
		s.Written += max(0, int(reply.Usage.OutputTokens)-tokens*len(texts))
	}
	return s
}

// several reports whether a text is a JSON object of several properties.
func several(text string) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &object) == nil && len(object) > 1
}

// due reports whether it is time to keep what was seen: after 1, 2, 4, 8 requests and so on.
func (s Seen) due() bool { return bits.OnesCount(uint(s.Requests)) == 1 }
