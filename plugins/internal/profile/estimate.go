package profile

import (
	"math"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

// Estimate is about how many tokens the prompt of a request has, which Apply has changed.
func (p Profile) Estimate(r dialect.Request) uint64 {
	return uint64(math.Round(p.tokens(asked(r)+string(p.schema(r))))) + uint64(p.template(r))
}

// Tokens is about how many tokens a text has.
func (p Profile) Tokens(text string) int { return int(math.Ceil(p.tokens(text))) }

func (p Profile) tokens(text string) float64 {
	switch {
	case p.Seen.Tokens > 0:
		return float64(len(text)) * float64(p.Seen.Tokens) / float64(p.Seen.Bytes)
	case p.BytesPerToken > 0:
		return float64(len(text)) / p.BytesPerToken
	}
	return float64(utf8.RuneCountInString(text)) / sdk.CharactersPerToken
}

// MostInput is how many tokens the prompt of a request has at most, which Apply has changed
// and whose body has so many bytes. No token of a text is shorter than a byte. What the
// template adds is what was measured or, where nothing was, as much as the frame of the
// body has bytes.
func (p Profile) MostInput(r dialect.Request, body int) uint64 {
	most := body
	if p.TemplateTokens > 0 && r.Messages != nil {
		most = len(asked(r)) + len(r.Schema) + p.TemplateTokens + slack + leastFrame*(len(r.Messages)-1)
	}
	if r.Schema != nil && r.Form == dialect.FormTool {
		most += preamble
	}
	return uint64(most)
}

const (
	// frame is about how many tokens a chat template adds to each message.
	frame = 4
	// leastFrame is how many bytes {"role":"user","content":""} has: more than any template
	// adds tokens to a message.
	leastFrame = 27
	// slack is how many tokens too few the template may be measured: the question of the probe
	// is counted by bytes, and a token of it may be half as long as those of other texts.
	slack = 16
	// preamble is more than the tokens by which services explain tools to a model.
	preamble = 512
)

// template is how many tokens stand beside the texts of a request, about.
func (p Profile) template(r dialect.Request) int {
	switch {
	case r.Messages == nil:
		return 0
	case p.TemplateTokens == 0:
		return frame * len(r.Messages)
	}
	return p.TemplateTokens + frame*(len(r.Messages)-1)
}

// schema is the schema that counts as input beside the texts; nil: none.
func (p Profile) schema(r dialect.Request) []byte {
	switch r.Form {
	case dialect.FormObject, dialect.FormText: // it stands in the texts
		return nil
	case dialect.FormSchema:
		if p.SchemaCounted == No {
			return nil
		}
	}
	return r.Schema
}

// Foreseen is about how many tokens the model thinks before an answer.
func (p Profile) Foreseen() int {
	switch {
	case p.Thinks != Yes:
		return 0
	case p.Seen.Answers > 0:
		return (p.Seen.Thoughts + p.Seen.Answers/2) / p.Seen.Answers
	}
	return p.Thoughts
}

// Object is about how many tokens a JSON object of several properties has; 0: nobody knows.
func (p Profile) Object() int {
	if p.Seen.Objects == 0 {
		return 0
	}
	return (p.Seen.Written + p.Seen.Objects - 1) / p.Seen.Objects
}

// Unbounded is why nobody knows how many tokens an answer to a request takes at most, which
// Apply has changed, and what to do about that; empty: its MaxTokens, thoughts among them,
// unless they leave no room for an answer and it is asked for again with more.
func (p Profile) Unbounded(r dialect.Request) string {
	switch {
	case r.MaxTokens == 0:
		return "its answers have no limit; max_tokens in its config sets one"
	case p.Thinks == "" || p.Thinks == Unknown:
		return "it is not known whether the model thinks before it answers, which would take more; racflow model probe finds out, or thinking in the profile block of its config says it"
	}
	return ""
}

// asked are the texts of a request, as they are sent.
func asked(r dialect.Request) string {
	if r.Schema != nil && (r.Form == dialect.FormObject || r.Form == dialect.FormText) {
		r = dialect.Instruct(r)
	}
	text := r.Prompt
	for _, m := range r.Messages {
		text += m.Text
	}
	return text
}
