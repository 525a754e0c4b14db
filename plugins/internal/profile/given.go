package profile

import (
	"strconv"

	"github.com/racflow/racflow/plugins/internal/dialect"
)

// Given is the profile block of a stage's config: what a person knows of a model. It goes
// before what is found out.
type Given struct {
	Temperature    *bool    `config:"temperature" doc:"The model takes temperature."`
	TopP           *bool    `config:"top_p" doc:"It takes top_p."`
	Stop           *bool    `config:"stop" doc:"It takes stop."`
	N              *bool    `config:"n" doc:"It gives several answers to one request."`
	Seed           *bool    `config:"seed" doc:"It takes seed."`
	Logprobs       *bool    `config:"logprobs" doc:"It gives the probabilities of tokens."`
	Structured     string   `config:"structured" one_of:"json_schema,json_object,tool,text" doc:"The strictest form of structured answers that it obeys."`
	Streaming      *bool    `config:"streaming_only" doc:"It answers by a stream of events alone."`
	Thinks         *bool    `config:"thinking" doc:"It thinks before it answers."`
	Effort         string   `config:"effort" example:"low" pattern:"^([a-z]+|[1-9][0-9]*)$" doc:"How long it is to think, as the service says it: low, medium or high; none, where it knows that; for Anthropic's API also a number of tokens."`
	Room           *int     `config:"thought_tokens" min:"1" doc:"Tokens that are added to max_tokens for thoughts."`
	BytesPerToken  *float64 `config:"bytes_per_token" above:"0" doc:"Bytes of text in a token, for estimates."`
	TemplateTokens *int     `config:"template_tokens" min:"0" doc:"Tokens that a chat of one message has beside its text, for estimates."`
}

// LeastBudget is the smallest budget of thinking tokens that Anthropic's API takes.
const LeastBudget = 1024

// over returns a profile with what is given in the place of what was found.
func (g Given) over(p Profile) Profile {
	for _, f := range []struct {
		given *bool
		found *Finding
	}{
		{g.Temperature, &p.Temperature}, {g.TopP, &p.TopP}, {g.Stop, &p.Stop}, {g.N, &p.N}, {g.Seed, &p.Seed},
		{g.Logprobs, &p.Logprobs}, {g.Streaming, &p.Streaming}, {g.Thinks, &p.Thinks},
	} {
		if f.given != nil {
			*f.found = finding(*f.given)
		}
	}
	if g.Structured != "" {
		p.Structured = Structure(g.Structured)
	}
	if g.Effort != "" {
		p.Effort = Yes
	}
	if g.Effort != "" && g.Effort != "none" && g.Thinks == nil {
		p.Thinks = Yes
	}
	if budget, err := strconv.Atoi(g.Effort); err == nil { // what a limit has to have room for
		p.Room = max(budget, LeastBudget)
	}
	if g.Room != nil {
		p.Room = *g.Room
	}
	if g.BytesPerToken != nil {
		p.BytesPerToken, p.Seen.Bytes, p.Seen.Tokens = *g.BytesPerToken, 0, 0
	}
	if g.TemplateTokens != nil {
		p.TemplateTokens = *g.TemplateTokens
	}
	return p
}

// Ask adds to a request what a person decides about it.
func (g Given) Ask(r dialect.Request) dialect.Request {
	r.Effort = g.Effort
	return r
}

func finding(yes bool) Finding {
	if yes {
		return Yes
	}
	return No
}
