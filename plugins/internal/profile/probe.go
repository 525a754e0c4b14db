package profile

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/dialect"
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

// Run probes a model: it returns what at most MaxCalls calls tell of it. After each, found
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
		refused, told := api.RefusalOf(err)
		switch {
		case err == nil:
			p.read(c, reply)
		case told && api.BadRequest(err) && !p.refused(c, refusal(refused)):
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
