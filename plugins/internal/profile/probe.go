package profile

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

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
	Choices    int  // most that a stage asks for in one request; a probe asks for as many, and for two at least
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
	last     bool    // the next call is the last one
	choices  int     // that the next call with n asks for
	fewer    bool    // than were refused before

	structured bool         // the form of structured answers is found
	form       dialect.Form // to try next

	short, schema, long uint64 // tokens of prompts; 0: not known
}

// The limits of answers to a probe, in tokens: of a word or two, and of one before which
// the model may think.
const (
	fewTokens  = 64
	manyTokens = 2048
)

// question is what a probe asks.
const question = "Is ice cold? Answer with yes or no."

// The texts of prompts. The long one reads like what stages send.
const (
	shortText = question
	longText  = `Here are some messages that customers have sent, each with the name of what it is about.

Text: I still have not received the card that I ordered two weeks ago.
Label: card_arrival
Text: Why was I charged an extra fee when I paid in a foreign currency?
Label: card_payment_fee_charged
Text: The machine kept my card after I typed the wrong number three times!
Label: card_swallowed
Text: Could you tell me how to change the address on my account, please?
Label: edit_personal_details
Text: My transfer of 250.00 has been pending since Monday morning.
Label: pending_transfer

` + question
)

// schema is that of a structured answer; its description makes its tokens noticeable.
var schema = json.RawMessage(`{"type":"object","properties":{"label":{"type":"string","enum":["yes","no"],"description":"Whether it is so, in one word."}},"required":["label"],"additionalProperties":false}`)

// call is one of a probe.
type call struct {
	dialect.Request
	text   string
	fields []field // that it has
}

// request asks for an answer to a text.
func (p *probe) request(text string) dialect.Request {
	r := dialect.Request{Model: p.Model, MaxTokens: fewTokens, MaxTokensField: string(p.found.Limit), Stream: p.found.Streaming == Yes}
	if p.found.Limit == LimitNone {
		r.MaxTokens, r.MaxTokensField = 0, ""
	}
	if p.Completion {
		r.Prompt = text
	} else {
		r.Messages = []sdk.Message{{Role: sdk.MessageUser, Text: text}}
	}
	return r
}

// next is the call that shows most now; false: none shows anything more.
func (p *probe) next() (call, bool) {
	c := call{text: shortText, Request: p.request(shortText)}
	switch fields := p.remaining(); {
	case p.bare:
		if !p.answered {
			c.MaxTokens = 0
		}
		return c, !p.answered || p.found.Limit == ""
	case p.last && !p.answered && p.fewer: // a further refusal would leave nothing known
		c.text, c.Request = longText, p.request(longText)
	case len(fields) > 0 && !p.cautious:
		if p.fewer { // no call may be left for the long text alone
			c.text, c.Request = longText, p.request(longText)
		}
		c.fields = fields
		for _, f := range fields {
			f.add(&c.Request)
		}
		if c.N > 1 {
			c.N = p.choices
		}
		if p.form != dialect.FormSchema && !p.structured {
			p.structure(&c)
		}
	case !p.structured:
		p.structure(&c)
	case p.found.Usage == Yes && p.long == 0, p.tries():
		c.text, c.Request = longText, p.request(longText)
		if p.tries() {
			c.Effort = probeEffort
			c.MaxTokens = min(c.MaxTokens*16, manyTokens)
		}
	case p.found.Usage == Yes && p.short == 0:
	default:
		return c, false
	}
	return c, true
}

// remaining are the fields to try in one call.
func (p *probe) remaining() []field {
	all := slices.Clone(p.untested)
	if p.found.Thinks == Yes { // no stop is sent to such a model, and hardly one gives logprobs
		all = slices.DeleteFunc(all, func(f field) bool { return f.name == "stop" || f.name == "logprobs" })
	}
	if p.halve {
		all = all[:(len(all)+1)/2]
	}
	return all
}

// structure makes a call ask for a structured answer, with room for thoughts.
func (p *probe) structure(c *call) {
	c.Schema, c.Form = schema, p.form
	if c.MaxTokens > 0 && p.found.Thinks != No {
		c.MaxTokens = manyTokens
	}
}

// probeEffort is an effort of thinking that every model has which has any.
const probeEffort = "low"

// tries reports whether an effort of thinking is to be tried.
func (p *probe) tries() bool {
	return p.found.Thinks == Yes && p.found.Effort == "" && p.sends(field{add: func(r *dialect.Request) { r.Effort = probeEffort }})
}

// Run probes a model: it returns what at most MaxCalls calls show of it. After each, found
// is given what is known so far, and which requests that is enough for. An error is that of
// a call, where no call before was answered: the server is down, denies, or refuses whatever
// it is asked.
func (t Target) Run(ctx context.Context, found func(Profile, Enough)) (Profile, error) {
	p := &probe{Target: t, found: Profile{Probed: time.Now().UTC().Truncate(time.Second)}, structured: t.Completion, choices: max(2, t.Choices)}
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
	for i := range MaxCalls {
		p.last = i == MaxCalls-1
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
	without := p.request(shortText)
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
	before := p.found
	var learned bool
	p.found, learned = p.found.Refused(c.Request, api.Refusal(r))
	p.untested = slices.DeleteFunc(p.untested, func(f field) bool { return *f.of(&p.found) == No })
	if len(c.fields) > 0 {
		p.cautious = !p.structured && p.found.Streaming != Yes
	}
	if p.found.Choices != before.Choices { // the number was refused, and no field
		p.choices, p.fewer, p.cautious = p.found.Choices, true, false
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
	p.choices = 2 // more may be what was refused
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
			if p.found.N = finding(len(reply.Choices) > 1); len(reply.Choices) < c.N {
				p.found = p.found.atMost(len(reply.Choices))
			}
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
