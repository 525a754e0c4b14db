package profile

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/answer"
)

// read learns from the reply to a call.
func (p *probe) read(c call, reply dialect.Reply) {
	p.answered, p.cautious = true, false
	p.tested(c.fields)
	p.found = p.found.Saw(c.Request, reply)
	if c.MaxTokens > 0 {
		p.found.Limit = limitOf(c.Request)
	}
	p.found.Streaming = finding(c.Stream)
	if p.found.Usage != Yes {
		p.found.Usage = finding(reply.Usage.InputTokens > 0 && reply.Usage.Plausible())
	}
	if c.Effort != "" {
		p.found.Effort = Yes
	}
	texts := visible(reply)
	written := slices.ContainsFunc(texts, func(text string) bool { return text != "" })
	for _, f := range c.fields {
		switch f.name {
		case "n":
			p.found.N = finding(len(reply.Choices) > 1)
		case "logprobs":
			p.found.Logprobs = Yes
			if !slices.ContainsFunc(reply.Choices, func(c dialect.Choice) bool { return len(c.Tokens) > 0 }) {
				p.found.Logprobs = ""
				if written {
					p.found.Logprobs = No
				}
			}
		case "stop":
			p.found.Stop = finding(!slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, probeStop) }))
		default:
			*f.of(&p.found) = Yes
		}
	}
	p.count(c, reply.Usage)
	if c.Schema != nil {
		p.readStructured(c, texts)
	}
}

// tested says that fields were in a call that was not refused.
func (p *probe) tested(tested []field) {
	remove := func(f field) bool {
		return slices.ContainsFunc(tested, func(t field) bool { return t.name == f.name })
	}
	p.untested = slices.DeleteFunc(p.untested, remove)
	p.suspects = slices.DeleteFunc(slices.Clone(p.suspects), remove)
}

// readStructured finds out whether a model obeys the form in which a structured answer was
// asked for.
func (p *probe) readStructured(c call, texts []string) {
	// Where its thoughts left no room, the server has taken the form.
	obeyed := len(texts) > 0 && (texts[0] == "" || isLabelled(texts[0]))
	p.found.Structured, p.structured = structureOf(c.Form), true
	if !obeyed {
		p.found.Structured = next(p.found.Structured)
		p.weaken()
	}
}

// isLabelled reports whether a text holds a JSON object with a label.
func isLabelled(text string) bool {
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	var object struct{ Label string }
	return from >= 0 && from < to && json.Unmarshal([]byte(text[from:to+1]), &object) == nil && object.Label != ""
}

// count notes the tokens of a prompt.
func (p *probe) count(c call, u sdk.Usage) {
	switch {
	case !u.Plausible():
	case c.Schema != nil && c.Form == dialect.FormSchema:
		p.schema = u.InputTokens
	case c.Schema != nil:
	case c.text == longText:
		p.long = u.InputTokens
	default:
		p.short = u.InputTokens
	}
}

// conclude returns what all calls together tell.
func (p *probe) conclude() Profile {
	for _, f := range p.suspects { // of which one is refused at least
		*f.of(&p.found) = No
	}
	if p.bare {
		p.found.Structured = StructureText
	}
	if p.found.Thinks == Yes {
		p.found.Room = max(p.found.Room, LeastRoom, roomier*p.found.Thoughts)
	}
	switch {
	case p.long > p.short && p.short > 0:
		p.found.BytesPerToken = rounded(float64(len(longText)-len(shortText)) / float64(p.long-p.short))
		if !p.Completion {
			p.found.TemplateTokens = max(0, int(math.Ceil(float64(p.short)-float64(len(shortText))/p.found.BytesPerToken)))
		}
	case p.long > 0:
		p.found.BytesPerToken = rounded(float64(len(longText)) / float64(p.long))
	}
	if p.schema > 0 && p.short > 0 && p.found.Structured == StructureSchema {
		p.found.SchemaCounted = finding(p.schema > p.short+leastSchema)
	}
	return p.found
}

// leastSchema is fewer tokens than the schema has in any tokenizer.
const leastSchema = 10

func rounded(x float64) float64 { return math.Round(100*x) / 100 }

// visible are the texts of a reply's choices, without what the model thought aloud.
func visible(reply dialect.Reply) []string {
	var all []string
	for _, c := range reply.Choices {
		all = append(all, strings.TrimSpace(c.Text[answer.Thoughts(c.Text):]))
	}
	return all
}
