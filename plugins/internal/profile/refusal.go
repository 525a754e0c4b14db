package profile

import (
	"math/bits"
	"reflect"
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk/support"
)

// refusal is a server's refusal of a request.
type refusal api.Refusal

// refused returns the profile after a refusal of a request in its sent form, and whether the profile has changed.
// Servers name a field as the parameter of their error or in its message. A complaint that a value is too large or
// too small says nothing about the field. The exception is the number of answers: the server may give fewer. The next
// try is the next lower power of two, as most limits are, or one answer.
func (p Profile) refused(sent dialect.Request, said api.Refusal) (Profile, bool) {
	r := refusal(said)
	before := p
	if unfinished(r) {
		p.Thinks = Yes
		p.Room = min(max(p.Room, 2*sent.MaxTokens, LeastRoom), mostRoom)
		return p, !reflect.DeepEqual(p, before)
	}
	for _, f := range fields {
		switch {
		case !f.has(sent) || !r.names(append(f.others, f.name)...):
		case !r.outOfRange():
			*f.of(&p) = No
		case f.name == "n":
			p = p.atMost(1 << (bits.Len(uint(sent.N-1)) - 1))
		}
	}
	if sent.MaxTokens > 0 && r.names(string(LimitTokens), string(LimitCompletion)) {
		switch room := p.thoughtTokens(); {
		case !r.outOfRange() && p.Limit != LimitNone:
			p.Limit = nextLimit(limitOf(sent))
		case room > 1: // the model cannot write that much
			p.Room = room / 2
		}
	}
	// Of several running requests, one may be refused for a form that another one has already ruled out.
	weaker := next(structureOf(sent.Form))
	if sent.Schema != nil && r.names(structureWords...) && slices.Index(structures, weaker) > slices.Index(structures, p.Structured) {
		p.Structured = weaker
	}
	if sent.Schema == nil && sent.Grammar != "" && r.names("grammar") {
		p.Structured = StructureText
	}
	if !sent.Stream && streams().MatchString(r.text()) {
		p.Streaming = Yes
	}
	return p, !reflect.DeepEqual(p, before)
}

// atMost returns the profile of a model that gives at most that many answers to one request.
func (p Profile) atMost(choices int) Profile {
	switch {
	case choices <= 1:
		p.N, p.Choices = No, 0
	case p.Choices == 0 || choices < p.Choices:
		p.Choices = choices
	}
	return p
}

// structureWords are names of fields and settings for structured answers.
var structureWords = []string{
	"response_format", "json_schema", "json_object", "json_mode", "schema", "structured_outputs", "structured", "tools", "tool_choice", "tool", "functions", "function",
	"output_config", "output_format", "grammar",
}

// next returns the form to try after one that was refused or not obeyed.
func next(s Structure) Structure {
	at := slices.Index(structures, s)
	return structures[min(at+1, len(structures)-1)]
}

func limitOf(r dialect.Request) Limit {
	if r.MaxTokensField == string(LimitCompletion) {
		return LimitCompletion
	}
	return LimitTokens
}

// nextLimit returns the field for the limit after one was refused.
func nextLimit(refused Limit) Limit {
	if refused == LimitTokens {
		return LimitCompletion
	}
	return LimitNone
}

// unfinished reports whether a server says that the limit was reached before an answer. OpenAI's models do that while
// they think.
func unfinished(r refusal) bool {
	return strings.Contains(strings.ToLower(r.Message), "could not finish the message")
}

// streams matches messages of servers that only answer with streams.
var streams = support.Pattern(`(?i)\bstream(ing)?\b.*\b(only|must|require[sd]?|enabled?|true)\b|\b(only|must|require[sd]?|enabled?)\b.*\bstream(ing)?\b`)

// outOfRange reports whether a value is refused rather than its field.
func (r refusal) outOfRange() bool {
	return ranges().MatchString(r.Message) && !unsupported().MatchString(r.Message)
}

var (
	ranges      = support.Pattern(`(?i)\b(between|less than|greater than|larger than|at most|at least|maximum|minimum|exceeds?|out of range|too (large|high|long|many|small|low))\b|[<>]=?`)
	unsupported = support.Pattern(`(?i)\b(unsupported|not support(ed)?|not accept(ed)?|not take|takes no|unrecognized|unknown|unexpected|not permitted|not allowed|only the default|deprecated|incompatible|does not exist|instead)\b`)
)

func (r refusal) text() string { return r.Param + " " + r.Message }

// names reports whether a refusal names one of the fields: as its parameter, as a part of the parameter, or as a word
// of its message.
func (r refusal) names(fields ...string) bool {
	if r.Param != "" {
		parts := strings.FieldsFunc(r.Param, func(c rune) bool { return c == '.' || c == '[' || c == ']' })
		return slices.ContainsFunc(fields, func(f string) bool { return slices.Contains(parts, f) })
	}
	words := strings.FieldsFunc(strings.ToLower(r.Message), func(c rune) bool { return c != '\\' && !inName(c) })
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(fields, strings.TrimRight(word, `\`)) })
}

// inName reports whether a character may be part of a field's name, or of a word in another language. A word behind a
// backslash is no name.
func inName(c rune) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80
}
