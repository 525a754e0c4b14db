package profile

import (
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

// Seen adds up what the replies to real requests of one kind (dialect.Request.About) said. Forecasts
// follow it: texts of other languages than the probe's have other tokens, and other questions other
// answers and thoughts.
type Seen struct {
	Requests int     `json:"requests"`
	Bytes    int     `json:"bytes"`  // of their prompts and schemas
	Tokens   int     `json:"tokens"` // that these had, without what the chat template adds
	Cached   int     `json:"cached"` // of Tokens: those that the service had in its cache
	Answers  int     `json:"answers"`
	Thoughts int     `json:"thoughts"` // tokens that the model thought before these
	Written  int     `json:"written"`  // tokens of these, with thoughts, and of answers that thoughts left no room for
	Squares  float64 `json:"squares"`  // sum over the answers of the squares of their tokens, for the spread
}

// enough is how many requests are counted in full: of more, earlier ones count less.
const enough = 1024

// add counts a reply to a request of a model with a profile, as the request was sent. A reply that
// does not say what it used counts by the length of its texts.
func (s Seen) add(p Profile, sent dialect.Request, reply dialect.Reply) Seen {
	if len(reply.Choices) == 0 {
		return s
	}
	if s.Requests >= enough {
		s = Seen{s.Requests / 2, s.Bytes / 2, s.Tokens / 2, s.Cached / 2, s.Answers / 2, s.Thoughts / 2, s.Written / 2, s.Squares / 2}
	}
	texts := visible(reply)
	tokens, _ := thoughts(reply, texts)
	n, u := len(reply.Choices), reply.Usage
	out := int(u.OutputTokens)
	if in := int(u.InputTokens); u.Plausible() && in > 0 {
		s.Bytes += len(asked(sent)) + len(p.schema(sent))
		s.Tokens += max(0, in-p.template(sent))
		s.Cached += int(min(u.CachedTokens, u.InputTokens))
	} else {
		out = tokens * n
		for _, text := range texts {
			out += p.Tokens(text) + 1 // the end of the answer
		}
	}
	s.Requests++
	for _, c := range reply.Choices {
		if !c.Starved() {
			s.Answers++
			s.Thoughts += tokens
		}
	}
	s.Written += out
	s.Squares += float64(out) * float64(out) / float64(n)
	return s
}

// due reports whether it is time to keep what was seen: whenever there are an eighth more requests, so
// that little is lost with the process.
func (s Seen) due() bool { return s.Requests%(1<<max(0, bits.Len(uint(s.Requests))-4)) == 0 }

// with returns what was seen, by kind, with later counts in the place of others; nil for none.
func with(seen, later map[string]Seen) map[string]Seen {
	if len(later) == 0 {
		return seen
	}
	all := maps.Clone(later)
	for kind, s := range seen {
		if _, ok := all[kind]; !ok {
			all[kind] = s
		}
	}
	return all
}

// seen is what was seen of the requests of a kind or, if there were none, of all.
func (p Profile) seen(kind string) (s Seen, same bool) {
	if s = p.Asked[kind]; s.Answers > 0 {
		return s, true
	}
	for _, kind := range slices.Sorted(maps.Keys(p.Asked)) {
		o := p.Asked[kind]
		s = Seen{s.Requests + o.Requests, s.Bytes + o.Bytes, s.Tokens + o.Tokens, s.Cached + o.Cached, s.Answers + o.Answers, s.Thoughts + o.Thoughts, s.Written + o.Written, s.Squares + o.Squares}
	}
	return s, false
}

// Output is how many tokens an answer is expected to have, thoughts among them: the mean of many,
// and the range in which that should lie.
type Output struct{ Mean, Low, High float64 }

// What is assumed of a model's thoughts if no real request showed them: usualThoughts tokens, or
// more than for the toy question of a probe, and between a quarter and four times as many.
const (
	usualThoughts = 600
	beyondToy     = 1.5
	thoughtsRange = 4
)

// Output forecasts the answers to a request. written is how many tokens they are expected to have
// without thoughts, if no answer to a request of its kind was seen.
func (p Profile) Output(r dialect.Request, written int) Output {
	s, same := p.seen(r.About)
	if same {
		mean := float64(s.Written) / float64(s.Answers)
		by := 1 + s.spread(mean, p.Thinks == Yes)
		return Output{mean, mean / by, mean * by}
	}
	text, think := float64(written), float64(usualThoughts)
	switch {
	case p.Thinks == No:
		return Output{text, text, text}
	case p.Thinks != Yes: // nobody knows
		return Output{text, text, text + thoughtsRange*think}
	case s.Answers > 0:
		think = float64(s.Thoughts) / float64(s.Answers)
	case p.Thoughts > 0:
		think = beyondToy * float64(p.Thoughts)
	}
	return Output{text + think, text + think/thoughtsRange, text + think*thoughtsRange}
}

// Of a thinking model, two more requests are imagined than were seen, whose answers vary by 60 % of
// their mean: few that happen to be alike would promise too much.
const (
	imagined      = 2
	imaginedShare = 0.6
)

// spread is the share by which the mean of further answers may differ from the mean seen: twice its
// standard error.
func (s Seen) spread(mean float64, thinks bool) float64 {
	n, variance := float64(s.Requests), max(0, s.Squares/float64(s.Answers)-mean*mean)
	if thinks {
		variance = (n*variance + imagined*imaginedShare*imaginedShare*mean*mean) / (n + imagined)
	}
	return 2 * math.Sqrt(variance/n) / max(mean, 1)
}

// Cached is the share of the input of a request that the service is expected to have in its cache,
// by what finished requests of its kind were charged for.
func (p Profile) Cached(r dialect.Request) float64 {
	s, same := p.seen(r.About)
	if !same || s.Tokens == 0 {
		return 0
	}
	return min(1, float64(s.Cached)/float64(s.Tokens))
}

// tokens is about how many tokens a text in a request of a kind has.
func (p Profile) tokens(kind, text string) float64 {
	s, _ := p.seen(kind)
	switch {
	case s.Tokens > 0:
		return float64(len(text)) * float64(s.Tokens) / float64(s.Bytes)
	case p.BytesPerToken > 0:
		return float64(len(text)) / p.BytesPerToken
	}
	return float64(len([]rune(text))) / sdk.CharactersPerToken
}
