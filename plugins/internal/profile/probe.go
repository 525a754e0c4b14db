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

// MaxCalls is the most calls of a probe.
const MaxCalls = 4

// Ask sends a request without changes, with UserAgent, under the limits and the budget of a stage.
type Ask func(ctx context.Context, r dialect.Request) (dialect.Reply, error)

// UserAgent marks the calls of a probe, for services and tests.
const UserAgent = "racflow (probe)"

// Target describes the model to probe.
type Target struct {
	Dialect    dialect.Dialect
	Model      string
	Completion bool // probe with texts to continue; forms of structured answers are not probed
	Choices    int  // the most answers in a request of a stage; a probe asks for as many, at least two
	Ask        Ask
}

// probe is the state of a probe.
type probe struct {
	Target
	found    Profile
	fields   []field // fields that the dialect sends
	calls    int
	sent     dialect.Request // the last request
	answered bool            // a call was answered
	tested   bool            // a call with all fields was answered
	formed   bool            // the form of structured answers is known
	named    bool            // the server named what it refused last
	plain    uint64          // input tokens of a call without a schema; 0: unknown
	withForm uint64          // input tokens of a call with a schema and the same text
}

// Limits of answers to a probe, in tokens: of one or two words, and of an answer with thoughts.
const (
	fewTokens  = 64
	manyTokens = 2048
)

// text is long enough to measure bytes per token, and resembles the texts of stages.
const text = `Here are some messages that customers have sent, each with the name of what it is about.

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

Is ice cold? Answer with yes or no.`

// schema is the schema of a structured answer.
var schema = json.RawMessage(`{"type":"object","properties":{"label":{"type":"string","enum":["yes","no"]}},"required":["label"],"additionalProperties":false}`)

// request asks for an answer to the text. It leaves room for thoughts if the model may think.
func (p *probe) request(structured bool) dialect.Request {
	r := dialect.Request{Model: p.Model, MaxTokens: fewTokens, MaxTokensField: string(p.found.Limit), Stream: p.found.Streaming == Yes}
	if structured {
		r.Schema, r.Form = schema, p.found.Structured.form()
	}
	switch {
	case p.found.Limit == LimitNone:
		r.MaxTokens, r.MaxTokensField = 0, ""
	case p.found.Thinks == Yes || structured && p.found.Thinks != No:
		r.MaxTokens = manyTokens
	}
	if p.Completion {
		r.Prompt = text
	} else {
		r.Messages = []sdk.Message{{Role: sdk.MessageUser, Text: text}}
	}
	return r
}

// Run probes a model with at most MaxCalls calls and returns its profile. It returns the error of a call if no call
// was answered: the server is down, denies, or refuses every request.
func (t Target) Run(ctx context.Context) (Profile, error) {
	p := &probe{Target: t, formed: t.Completion, found: Profile{Probed: time.Now().UTC().Truncate(time.Second)}}
	for _, f := range fields {
		switch {
		case f.value == nil:
		case p.sends(f):
			p.fields = append(p.fields, f)
		case f.name == "stop": // the dialect leaves out this text, but may send others
		default:
			*f.of(&p.found) = No
		}
	}
	var err error
	for more := true; more && p.calls < MaxCalls && !(p.tested && p.formed); {
		// If a model refuses one field after the other, ask for a structured answer without them meanwhile, so that
		// the probe learns something in any case.
		if !p.formed && (p.tested || p.named && !p.answered) {
			err = p.askStructured(ctx)
		} else {
			err = p.askText(ctx)
		}
		more = err == nil || p.refused(err)
	}
	if err != nil && (!p.answered || ctx.Err() != nil) {
		return p.found, err
	}
	if p.plain > 0 && p.withForm > 0 && p.found.Structured == StructureSchema {
		p.found.SchemaCounted = finding(p.withForm >= p.plain+leastSchema)
	}
	if p.found.Thinks == Yes {
		p.found.Room = max(p.found.Room, LeastRoom, roomier*p.found.Thoughts)
	}
	return p.found, nil
}

// askText asks for a text, with all fields that the model may accept.
func (p *probe) askText(ctx context.Context) error {
	r := p.request(false)
	var asked []field
	last := p.calls == MaxCalls-1 && !p.answered // another refusal would leave the profile empty
	for _, f := range p.fields {
		// A model that thinks gets no stop texts, and hardly any such model gives logprobs.
		useless := p.found.Thinks == Yes && (f.name == "stop" || f.name == "logprobs")
		if !useless && !last && *f.of(&p.found) != No {
			asked = append(asked, f)
			f.add(&r)
		}
	}
	if r.N > 1 {
		r.N = max(2, p.Choices)
	}
	if p.found.Choices > 0 {
		r.N = min(r.N, p.found.Choices)
	}
	reply, err := p.ask(ctx, r)
	if err == nil {
		p.tested = true
		p.readFields(asked, reply)
	}
	return err
}

// askStructured asks for a structured answer in the strictest form that was not refused yet.
func (p *probe) askStructured(ctx context.Context) error {
	reply, err := p.ask(ctx, p.request(true))
	if err == nil {
		p.readStructured(visible(reply))
	}
	return err
}

// ask makes a call, and reads from the reply what every reply shows.
func (p *probe) ask(ctx context.Context, r dialect.Request) (dialect.Reply, error) {
	p.calls++
	p.sent = r
	reply, err := p.Ask(ctx, r)
	if err != nil {
		return reply, err
	}
	p.answered = true
	p.found = p.found.saw(r, reply)
	if r.MaxTokens > 0 {
		p.found.Limit = limitOf(r)
	}
	p.found.Streaming = finding(r.Stream)
	if p.found.Usage != Yes {
		p.found.Usage = finding(reply.Usage.InputTokens > 0 && reply.Usage.Plausible())
	}
	switch {
	case !reply.Usage.Plausible():
	case r.Schema == nil:
		p.plain = reply.Usage.InputTokens
	case r.Form == dialect.FormSchema:
		p.withForm = reply.Usage.InputTokens
	}
	return reply, nil
}

// leastSchema is fewer tokens than the probe's schema has, but more than a template may add for it.
const leastSchema = 12

// sends reports whether the dialect sends a field.
func (p *probe) sends(f field) bool {
	without := p.request(false)
	with := without
	f.add(&with)
	return !bytes.Equal(p.body(without), p.body(with))
}

func (p *probe) body(r dialect.Request) []byte {
	body, err := p.Dialect.Body(r)
	if err != nil {
		return nil // Ask fails as well, with the reason
	}
	text, _ := json.Marshal(body)
	return text
}

// refused learns from the error of the last call, and reports whether to ask again in another way. If the server does
// not name what it refuses, the next call has none of the possible causes.
func (p *probe) refused(err error) bool {
	said, is := api.RefusalOf(err)
	if !is || !api.BadRequest(err) {
		return false
	}
	if p.found, p.named = p.found.refused(p.sent, said); p.named {
		p.answered = p.answered || unfinished(refusal(said))
		p.formed = p.formed || p.found.Structured == StructureText
		return true
	}
	suspected := false
	for _, f := range fields {
		if f.has(p.sent) {
			*f.of(&p.found), suspected = No, true
		}
	}
	switch {
	case suspected:
	case p.sent.Schema != nil:
		p.weaken()
	case p.sent.MaxTokens > 0:
		p.found.Limit = LimitNone
	default:
		return false
	}
	return true
}

// weaken switches to the next form of structured answers.
func (p *probe) weaken() {
	p.found.Structured = next(structureOf(p.sent.Form))
	p.formed = p.found.Structured == StructureText
}

// readFields finds out which of a call's fields the server obeyed.
func (p *probe) readFields(asked []field, reply dialect.Reply) {
	texts := visible(reply)
	written := slices.ContainsFunc(texts, func(text string) bool { return text != "" })
	for _, f := range asked {
		switch f.name {
		case "n":
			if p.found.N = finding(len(reply.Choices) > 1); len(reply.Choices) < p.sent.N {
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
}

// readStructured finds out whether the model obeyed the form of a structured answer. An empty answer, because
// thoughts left no room, shows that the server accepts the form.
func (p *probe) readStructured(texts []string) {
	if len(texts) > 0 && (texts[0] == "" || isLabelled(texts[0])) {
		p.found.Structured, p.formed = structureOf(p.sent.Form), true
	} else {
		p.weaken()
	}
}

// isLabelled reports whether a text contains a JSON object with a label.
func isLabelled(text string) bool {
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	var object struct{ Label string }
	return from >= 0 && from < to && json.Unmarshal([]byte(text[from:to+1]), &object) == nil && object.Label != ""
}

func rounded(x float64) float64 { return math.Round(100*x) / 100 }

// visible returns the texts of a reply's choices, without thoughts.
func visible(reply dialect.Reply) []string {
	var all []string
	for _, c := range reply.Choices {
		all = append(all, strings.TrimSpace(c.Text[support.Thoughts(c.Text):]))
	}
	return all
}
