package profile

import (
	"encoding/json"
	"slices"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

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
func (p *probe) request(text string, most int) dialect.Request {
	r := dialect.Request{Model: p.Model, MaxTokens: most, MaxTokensField: string(p.found.Limit), Stream: p.found.Streaming == Yes}
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

// next is the call that tells most now; false: none tells anything more.
func (p *probe) next() (call, bool) {
	c := call{text: shortText, Request: p.request(shortText, fewTokens)}
	switch fields := p.remaining(); {
	case p.bare:
		if !p.answered {
			c.MaxTokens = 0
		}
		return c, !p.answered || p.found.Limit == ""
	case len(fields) > 0 && !p.cautious:
		c.fields = fields
		for _, f := range fields {
			f.add(&c.Request)
		}
		if p.form != dialect.FormSchema && !p.structured {
			p.structure(&c)
		}
	case !p.structured:
		p.structure(&c)
	case p.found.Usage == Yes && p.long == 0, p.tries():
		c.text, c.Request = longText, p.request(longText, fewTokens)
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
