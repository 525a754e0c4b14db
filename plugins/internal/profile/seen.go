package profile

import (
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

// Seen sums up the replies to real requests of one kind (dialect.Request.About). Forecasts use it: texts in other
// languages than the probe's have other token counts, and other questions have other answers and thoughts.
type Seen struct {
	Requests int     `json:"requests"`
	Bytes    int     `json:"bytes"`  // of their prompts and schemas
	Tokens   int     `json:"tokens"` // of prompts and schemas, without the chat template
	Cached   int     `json:"cached"` // part of Tokens that the service had in its cache
	Answers  int     `json:"answers"`
	Thoughts int     `json:"thoughts"` // tokens of thoughts before the answers
	Written  int     `json:"written"`  // tokens of answers and thoughts, including answers that thoughts left no room for
	Squares  float64 `json:"squares"`  // sum of the squared tokens of each answer, for the spread
}

// enough is the number of requests at which add halves the sums, so that earlier requests count less.
const enough = 1024

// add counts a reply to a request, as the request was sent; p is the model's profile. If the reply does not report
// its usage, the lengths of the texts count.
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

// due reports whether to store the statistics now. They are stored each time the number of requests has grown by an
// eighth or less, so that little is lost if the process dies.
func (s Seen) due() bool { return s.Requests%(1<<max(0, bits.Len(uint(s.Requests))-4)) == 0 }

// with returns the statistics by kind, with later ones in place of earlier ones; nil for none.
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

// seen returns the statistics of a kind of requests. If there are none, it returns those of all kinds, and same is
// false.
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

// Output is the expected number of tokens of an answer, including thoughts: the mean of many answers, and the range
// in which the mean should lie.
type Output struct{ Mean, Low, High float64 }

// Assumptions about the thoughts of a model, for as long as no answer was seen.
const (
	usualThoughts = 600 // tokens, if the probe measured none
	beyondToy     = 1.5 // times the tokens of thoughts in the probe's toy question
	thoughtsRange = 4   // the actual number lies between a quarter of the assumed number and four times that number
)

// Output forecasts the answers to a request. written is the expected number of tokens without thoughts, used if no
// answer to a request of its kind was seen.
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
	case p.Thinks != Yes: // unknown
		return Output{text, text, text + thoughtsRange*think}
	case s.Answers > 0:
		think = float64(s.Thoughts) / float64(s.Answers)
	case p.Thoughts > 0:
		think = beyondToy * float64(p.Thoughts)
	}
	return Output{text + think, text + think/thoughtsRange, text + think*thoughtsRange}
}

// For a thinking model, two imagined requests are added to the seen ones; their answers vary by 60 % of their mean. A
// few similar answers would otherwise make the forecast too sure.
const (
	imagined      = 2
	imaginedShare = 0.6
)

// spread returns the share by which the mean of further answers may differ from the seen mean: twice its standard
// error.
func (s Seen) spread(mean float64, thinks bool) float64 {
	n, variance := float64(s.Requests), max(0, s.Squares/float64(s.Answers)-mean*mean)
	if thinks {
		variance = (n*variance + imagined*imaginedShare*imaginedShare*mean*mean) / (n + imagined)
	}
	return 2 * math.Sqrt(variance/n) / max(mean, 1)
}

// Cached is the expected share of a request's input in the service's cache, from finished requests of its kind.
func (p Profile) Cached(r dialect.Request) float64 {
	s, same := p.seen(r.About)
	if !same || s.Tokens == 0 {
		return 0
	}
	return min(1, float64(s.Cached)/float64(s.Tokens))
}

// tokens returns about how many tokens a text has in a request of a kind.
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
