package profile

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// Refused learns from an error.
func (k *Keeper) Refused(ctx context.Context, sent dialect.Request, err error) {
	said, is := api.RefusalOf(err)
	if !is || !api.BadRequest(err) {
		return
	}
	k.keep(ctx, false, func(p Profile) Profile {
		after, _ := p.Refused(sent, said)
		k.warn(p, after)
		return after
	})
}

// Saw learns from a reply.
func (k *Keeper) Saw(ctx context.Context, sent dialect.Request, reply dialect.Reply) {
	k.mu.Lock()
	k.served = true
	k.mu.Unlock()
	k.keep(ctx, false, func(p Profile) Profile {
		after := p.Saw(sent, reply)
		if k.seen.Requests == 0 {
			k.seen = p.Seen
		}
		if k.seen = k.seen.add(p, sent, reply); k.seen.due() {
			after.Seen = k.seen
		}
		return after
	})
}

// Obeyed learns that a model gives structured answers in a form, after it refused the
// stricter ones without saying that it was for them.
func (k *Keeper) Obeyed(ctx context.Context, form dialect.Form) {
	k.keep(ctx, false, func(p Profile) Profile {
		after := p
		after.Structured = structureOf(form)
		k.warn(p, after)
		return after
	})
}

// warn reports what the model turned out to refuse.
func (k *Keeper) warn(before, after Profile) {
	for _, f := range fields {
		if *f.of(&before) != No && *f.of(&after) == No {
			k.config.Warn("refused "+f.name, "the model refuses a field of the request: it is asked without", "field", f.name, "model", k.config.Model)
		}
	}
	if before.Structured != after.Structured {
		k.config.Warn("refused "+string(before.Structured), "the model refuses this form of structured answers: it is asked in another way", "now", after.Structured, "model", k.config.Model)
	}
}

// MaxCalls is how many calls a probe makes at most.
const MaxCalls = 4

// Ask sends a request as it is, with UserAgent, through the limits and the budget of a
// stage.
type Ask func(ctx context.Context, r dialect.Request) (dialect.Reply, error)

// UserAgent tells services, and tests, that a call is one of a probe.
const UserAgent = "racflow (probe)"

// Target is what is probed.
type Target struct {
	Dialect    dialect.Dialect
	Model      string
	Completion bool // by texts to continue, where the form of structured answers is not looked for
	Ask        Ask
}

// Enough says which requests a profile is enough for.
type Enough uint8

// The kinds of requests.
const (
	EnoughForNone Enough = iota
	EnoughForTexts
	EnoughForAll // structured ones, too
)

func (p *probe) enough() Enough {
	switch {
	case !p.answered || p.found.Thinks == "" || len(p.remaining()) > 0:
		return EnoughForNone
	case !p.structured:
		return EnoughForTexts
	}
	return EnoughForAll
}

// probe is one that is under way.
type probe struct {
	Target
	found    Profile
	answered bool // a call was

	untested []field // that the next calls have
	suspects []field // that stood in a call which was refused without a reason
	halve    bool    // the next call has half of the untested ones
	cautious bool    // the next call has none of them
	bare     bool    // the next call has nothing that could be refused

	structured bool         // the form of structured answers is found
	form       dialect.Form // to try next

	short, schema, long uint64 // tokens of prompts; 0: not known
}

// Run probes a model: it returns what at most MaxCalls calls show of it. After each, found
// is given what is known so far, and which requests that is enough for. An error is that of
// a call, where no call before was answered: the server is down, denies, or refuses whatever
// it is asked.
func (t Target) Run(ctx context.Context, found func(Profile, Enough)) (Profile, error) {
	p := &probe{Target: t, found: Profile{Probed: time.Now().UTC().Truncate(time.Second)}, structured: t.Completion}
	for _, f := range fields {
		switch {
		case f.add == nil:
		case p.sends(f):
			p.untested = append(p.untested, f)
		case f.name == "stop": // it leaves out this text, and may send others
		default:
			*f.of(&p.found) = No
		}
	}
	var err error
	for range MaxCalls {
		c, more := p.next()
		if !more {
			break
		}
		var reply dialect.Reply
		reply, err = t.Ask(ctx, c.Request)
		refused, is := api.RefusalOf(err)
		switch {
		case err == nil:
			p.read(c, reply)
		case is && api.BadRequest(err) && !p.refused(c, refusal(refused)):
		case p.answered && ctx.Err() == nil: // what is found is worth keeping
			return p.conclude(), nil
		default:
			return p.found, err
		}
		found(p.found, p.enough())
	}
	if !p.answered {
		return p.found, err
	}
	return p.conclude(), nil
}

// sends reports whether the dialect has a field.
func (p *probe) sends(f field) bool {
	without := p.request(shortText, fewTokens)
	with := without
	f.add(&with)
	return !bytes.Equal(p.body(without), p.body(with))
}

func (p *probe) body(r dialect.Request) []byte {
	body, err := p.Dialect.Body(r)
	if err != nil {
		return nil // Ask fails as well, and says why
	}
	text, _ := json.Marshal(body)
	return text
}

// refused learns from a refusal, and reports whether that ends the probe.
func (p *probe) refused(c call, r refusal) bool {
	var learned bool
	p.found, learned = p.found.Refused(c.Request, api.Refusal(r))
	p.untested = slices.DeleteFunc(p.untested, func(f field) bool { return *f.of(&p.found) == No })
	if len(c.fields) > 0 {
		p.cautious = !p.structured && p.found.Streaming != Yes
	}
	switch {
	case unfinished(r):
		p.answered = true
		p.tested(c.fields)
	case learned && c.Schema != nil && p.found.Structured != "":
		p.weaken()
	case learned:
	case p.bare && c.MaxTokens > 0:
		p.found.Limit = LimitNone
	case p.bare:
		return true
	case c.Effort != "":
		p.found.Effort = No
	case !p.answered && p.suspects != nil:
		p.bare = true
	default:
		p.suspect(c)
	}
	return false
}

// weaken makes the form that was found last the one to try next.
func (p *probe) weaken() {
	p.form, p.structured, p.cautious = p.found.Structured.form(), p.found.Structured == StructureText, false
}

// suspect notes what a call had that was refused without a reason.
func (p *probe) suspect(c call) {
	if c.Schema != nil {
		p.found.Structured = next(structureOf(c.Form))
		p.weaken()
	}
	switch {
	case len(c.fields) == 0:
	case p.halve: // one of them is refused: do without all
		for _, f := range c.fields {
			*f.of(&p.found) = No
		}
		p.tested(c.fields)
		p.suspects, p.halve = nil, false
	default:
		p.suspects, p.halve = c.fields, true
	}
}

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

// conclude returns what all calls show together.
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
		all = append(all, strings.TrimSpace(c.Text[support.Thoughts(c.Text):]))
	}
	return all
}

// Refused returns what is known after a request was refused that was sent as it is, and
// whether that is more than before. Servers name a field as the parameter of their error or
// in its message. A complaint about a value that is too large or too small says nothing about
// the field, except that a server which refuses two answers gives one alone.
func (p Profile) Refused(sent dialect.Request, said api.Refusal) (Profile, bool) {
	r := refusal(said)
	before := p
	if unfinished(r) {
		p.Thinks = Yes
		p.Room = min(max(p.Room, 2*sent.MaxTokens, LeastRoom), mostRoom)
		return p, p != before
	}
	for _, f := range fields {
		if f.has(sent) && r.names(f.name) && (!r.outOfRange() || f.name == "n" && sent.N == 2) {
			*f.of(&p) = No
		}
	}
	if sent.MaxTokens > 0 && r.names(string(LimitTokens), string(LimitCompletion)) {
		switch room := p.ThoughtTokens(); {
		case !r.outOfRange() && p.Limit != LimitNone:
			p.Limit = nextLimit(limitOf(sent))
		case room > 1: // the model cannot write that much
			p.Room = room / 2
		}
	}
	// Of requests that are under way together one may be refused for a form that another has
	// left behind already.
	weaker := next(structureOf(sent.Form))
	if sent.Schema != nil && r.names(structureWords...) && slices.Index(structures, weaker) > slices.Index(structures, p.Structured) {
		p.Structured = weaker
	}
	if sent.Schema == nil && sent.Grammar != "" && r.names("grammar") {
		p.Structured = StructureText
	}
	if !sent.Stream && streams.MatchString(r.text()) {
		p.Streaming = Yes
	}
	return p, p != before
}

// refusal is what a server says of a request that it refuses.
type refusal api.Refusal

// structureWords are the names of what asks for a structured answer.
var structureWords = []string{
	"response_format", "json_schema", "json_object", "json_mode", "schema", "structured_outputs", "structured", "tools", "tool_choice", "tool", "functions", "function",
	"output_config", "output_format", "grammar",
}

// next is the form after one that is refused, or not obeyed.
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

// nextLimit is the field to send the limit in after one is refused.
func nextLimit(refused Limit) Limit {
	if refused == LimitTokens {
		return LimitCompletion
	}
	return LimitNone
}

// unfinished reports whether a server says, in place of an answer, that the limit was
// reached before there was one: OpenAI's models do that while they think.
func unfinished(r refusal) bool {
	return strings.Contains(strings.ToLower(r.Message), "could not finish the message")
}

// streams matches what servers say that answer by streams alone.
var streams = regexp.MustCompile(`(?i)\bstream(ing)?\b.*\b(only|must|require[sd]?|enabled?|true)\b|\b(only|must|require[sd]?|enabled?)\b.*\bstream(ing)?\b`)

// outOfRange reports whether a value is refused, and not its field.
func (r refusal) outOfRange() bool {
	return ranges.MatchString(r.Message) && !unsupported.MatchString(r.Message)
}

var (
	ranges      = regexp.MustCompile(`(?i)\b(between|less than|greater than|larger than|at most|at least|maximum|minimum|exceeds?|out of range|too (large|high|long|many|small|low))\b|[<>]=?`)
	unsupported = regexp.MustCompile(`(?i)\b(unsupported|not support(ed)?|not accept(ed)?|not take|takes no|unrecognized|unknown|unexpected|not permitted|not allowed|only the default|deprecated|incompatible|does not exist|instead)\b`)
)

func (r refusal) text() string { return r.Param + " " + r.Message }

// names reports whether a refusal names one of the fields: as its parameter, or a part of
// that, or as a word of its message.
func (r refusal) names(fields ...string) bool {
	if r.Param != "" {
		parts := strings.FieldsFunc(r.Param, func(c rune) bool { return c == '.' || c == '[' || c == ']' })
		return slices.ContainsFunc(fields, func(f string) bool { return slices.Contains(parts, f) })
	}
	text := strings.ToLower(r.Message)
	return slices.ContainsFunc(fields, func(f string) bool { return isWord(text, f) })
}

// isWord reports whether a field's name stands in a text by itself: not within another name,
// and not behind a backslash.
func isWord(text, name string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], name)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(name)
		if (at == 0 || !inName(text[at-1]) && text[at-1] != '\\') && (end == len(text) || !inName(text[end])) {
			return true
		}
		from = end
	}
}

func inName(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80
}
