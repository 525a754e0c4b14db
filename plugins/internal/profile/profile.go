package profile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

// Profile describes what a model accepts. Its JSON form is stored, and people may edit it.
type Profile struct {
	Probed time.Time `json:"probed,omitzero"` // zero: the profile comes from other calls
	Served Served    `json:"served,omitzero"`

	Temperature Finding   `json:"temperature"`
	TopP        Finding   `json:"top_p"`
	Stop        Finding   `json:"stop"`
	N           Finding   `json:"n"`       // several answers to one request
	Choices     int       `json:"choices"` // the most answers in one request; 0: no limit is known
	Seed        Finding   `json:"seed"`
	Logprobs    Finding   `json:"logprobs"`
	Limit       Limit     `json:"max_tokens_field"`
	Structured  Structure `json:"structured"`
	Streaming   Finding   `json:"streaming_only"` // it answers only with a stream of events

	Thinks   Finding `json:"thinking"`
	Effort   Finding `json:"effort"`         // it accepts an effort of thinking
	Thoughts int     `json:"thoughts"`       // the most thought tokens of one answer
	Room     int     `json:"thought_tokens"` // added to the limit of an answer for thoughts; 0: LeastRoom, if it thinks

	Usage          Finding `json:"usage"`           // replies report their tokens
	CachedUsage    Finding `json:"cached_usage"`    // replies report how many of them were cached
	BytesPerToken  float64 `json:"bytes_per_token"` // of English text; 0: unknown
	TemplateTokens int     `json:"template_tokens"` // tokens of a chat of one message beside its text
	SchemaCounted  Finding `json:"schema_counted"`  // the tokens of a JSON schema count as input
	// Asked holds the statistics of real requests, by kind.
	Asked map[string]Seen `json:"asked,omitempty"`
}

// Served describes the model that a server serves, as the server reports it. The zero Served is unknown.
type Served struct {
	Model   string `json:"model"`             // its id, and what distinguishes it from other models of the same name
	Context int    `json:"context,omitempty"` // tokens of a prompt with its answer; 0: unknown
}

// Apply returns the request in the form that the model accepts. Unknown properties change nothing. Apply also keeps
// the fields that the request sets itself: Form, MaxTokensField and Stream.
func (p Profile) Apply(r dialect.Request) dialect.Request {
	for _, f := range fields {
		if *f.of(&p) == No {
			f.remove(&r)
		}
	}
	if p.Choices > 0 {
		r.N = min(r.N, p.Choices)
	}
	if p.Temperature == No && p.TopP != Yes { // models that refuse one of them also refuse the other
		r.TopP = nil
	}
	if p.Thinks == Yes {
		r.Stop = nil // it might end the thoughts
	}
	switch {
	case r.MaxTokensField != "" || p.Limit == "":
	case p.Limit == LimitNone:
		r.MaxTokens = 0
	default:
		r.MaxTokensField = string(p.Limit)
	}
	if r.MaxTokens > 0 { // also a person's limit, which means the answer: no model can think in the ten tokens of a label
		r.MaxTokens += p.thoughtTokens()
	}
	if r.Schema != nil && r.Form == dialect.FormSchema {
		r.Form = p.Structured.form()
	}
	if p.Structured == StructureText {
		r.Grammar = ""
	}
	if p.Streaming == Yes {
		r.Stream = true
	}
	return r
}

// field is a request field that a model may refuse. Its member has the same name in Profile and dialect.Request.
type field struct {
	name   string   // its name in refusals
	others []string // other names in refusals
	member string
	value  any // to probe with; nil: not probed
}

// probeStop ends an answer to a probe. Most stages use the same stop text.
const probeStop = "\n"

var fields = []field{
	{name: "temperature", member: "Temperature", value: new(0.5)},  // some servers refuse 0 beside n
	{name: "n", others: []string{"n_cmpl"}, member: "N", value: 2}, // a probe may ask for more; n_cmpl is llama.cpp's
	{name: "seed", member: "Seed", value: new(1)},
	{name: "stop", member: "Stop", value: []string{probeStop}},
	{name: "logprobs", others: []string{"top_logprobs"}, member: "Logprobs", value: true},
	{name: "top_p", member: "TopP"},
	{name: "reasoning_effort", member: "Effort"},
}

// of returns the finding about the field.
func (f field) of(p *Profile) *Finding {
	return reflect.ValueOf(p).Elem().FieldByName(f.member).Addr().Interface().(*Finding)
}

func (f field) in(r *dialect.Request) reflect.Value {
	return reflect.ValueOf(r).Elem().FieldByName(f.member)
}

// has reports whether a request has the field. A request for one answer does not need n.
func (f field) has(r dialect.Request) bool { return !f.in(&r).IsZero() && (f.name != "n" || r.N > 1) }

func (f field) add(r *dialect.Request) { f.in(r).Set(reflect.ValueOf(f.value)) }

func (f field) remove(r *dialect.Request) {
	if f.name == "n" {
		r.N = min(r.N, 1)
		return
	}
	f.in(r).SetZero()
}

// Given is the profile block of a stage's config: what a person says about a model. It overrides what was found.
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

// leastBudget is the smallest budget of thinking tokens that Anthropic's API accepts.
const leastBudget = 1024

// over returns the profile with the given values instead of the found ones.
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
	if budget, err := strconv.Atoi(g.Effort); err == nil { // a limit must have room for it
		p.Room = max(budget, leastBudget)
	}
	if g.Room != nil {
		p.Room = *g.Room
	}
	if g.BytesPerToken != nil {
		p.BytesPerToken, p.Asked = *g.BytesPerToken, maps.Clone(p.Asked)
		for kind, s := range p.Asked {
			s.Bytes, s.Tokens = 0, 0
			p.Asked[kind] = s
		}
	}
	if g.TemplateTokens != nil {
		p.TemplateTokens = *g.TemplateTokens
	}
	return p
}

// Ask adds the settings of a person to a request.
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

// Finding says whether a model has a property.
type Finding string

// The findings. The zero Finding is Unknown as well.
const (
	Unknown Finding = "unknown"
	Yes     Finding = "yes"
	No      Finding = "no"
)

// MarshalText implements encoding.TextMarshaler.
func (f Finding) MarshalText() ([]byte, error) { return orUnknown(f) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *Finding) UnmarshalText(text []byte) error {
	return choose(f, text, Unknown, Yes, No)
}

// Limit is the name of the field that limits an answer's tokens.
type Limit string

// Names of the field. The zero Limit is unknown.
const (
	LimitTokens     Limit = "max_tokens"
	LimitCompletion Limit = "max_completion_tokens"
	LimitNone       Limit = "none" // the server accepts neither
)

// MarshalText implements encoding.TextMarshaler.
func (l Limit) MarshalText() ([]byte, error) { return orUnknown(l) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Limit) UnmarshalText(text []byte) error {
	return choose(l, text, "unknown", LimitTokens, LimitCompletion, LimitNone)
}

// Structure is the strictest form of structured answers that a model obeys.
type Structure string

// The forms, the strictest first. The zero Structure is unknown.
const (
	StructureSchema Structure = "json_schema"
	StructureObject Structure = "json_object"
	StructureTool   Structure = "tool"
	StructureText   Structure = "text" // the model obeys no other form
)

// structures has the order of dialect.Forms.
var structures = []Structure{StructureSchema, StructureObject, StructureTool, StructureText}

// MarshalText implements encoding.TextMarshaler.
func (s Structure) MarshalText() ([]byte, error) { return orUnknown(s) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Structure) UnmarshalText(text []byte) error {
	return choose(s, text, append([]Structure{"unknown"}, structures...)...)
}

// form returns the form for requests; if unknown, a schema.
func (s Structure) form() dialect.Form {
	for i, other := range structures {
		if s == other {
			return dialect.Forms[i]
		}
	}
	return dialect.FormSchema
}

// structureOf returns the name of a form.
func structureOf(f dialect.Form) Structure {
	for i, form := range dialect.Forms {
		if f == form {
			return structures[i]
		}
	}
	return ""
}

func orUnknown[T ~string](value T) ([]byte, error) {
	if value == "" {
		return []byte(Unknown), nil
	}
	return []byte(value), nil
}

func choose[T ~string](to *T, text []byte, values ...T) error {
	for i, value := range values {
		if string(text) != string(value) {
			continue
		}
		if *to = value; i == 0 {
			*to = ""
		}
		return nil
	}
	return fmt.Errorf("%q is none of %v", text, values)
}

// LeastRoom is the least room for thoughts, in tokens. It is several times what models need at medium effort for one
// label.
const LeastRoom = 4096

// thoughtTokens returns how many tokens are added to the limit of each answer for thoughts; 0 for a model that does
// not think.
func (p Profile) thoughtTokens() int {
	switch {
	case p.Thinks != Yes:
		return 0
	case p.Room > 0:
		return p.Room
	}
	return LeastRoom
}

// roomier is the room for thoughts, divided by the most thoughts that were seen.
const roomier = 4

// mostRoom is the greatest room for thoughts that racflow sets by itself, in tokens.
const mostRoom = 32768

// silence is how many tokens of an answer may have no text: the end of the answer, and names of channels and tools.
const silence = 32

// saw returns the profile after a reply to a request in its sent form.
func (p Profile) saw(sent dialect.Request, reply dialect.Reply) Profile {
	if len(reply.Choices) == 0 {
		return p
	}
	if reply.Usage.Plausible() && reply.Usage.CachedTokens > 0 {
		p.CachedUsage = Yes
	}
	if reply.Streamed { // requested or not; if requested, it reports its tokens
		p.Streaming = Yes
	}
	texts := visible(reply)
	starved := slices.ContainsFunc(reply.Choices, dialect.Choice.Starved)
	switch thoughts, thinks := thoughts(reply, texts); {
	case thinks || starved:
		p.Thinks = Yes
		p.Thoughts = max(p.Thoughts, thoughts)
		if starved && sent.MaxTokens > fewTokens {
			p.Room = min(max(p.Room, 2*sent.MaxTokens, LeastRoom), mostRoom)
		}
		if p.Room > 0 {
			p.Room = min(max(p.Room, 2*p.Thoughts), mostRoom)
		}
	case p.Thinks == "" && !slices.Contains(texts, ""):
		p.Thinks = No
	}
	if size := textBytes(sent); p.BytesPerToken == 0 && p.Usage != No && sent.Schema == nil && size >= leastText && reply.Usage.InputTokens > 0 && reply.Usage.Plausible() {
		p.Usage, p.BytesPerToken = Yes, rounded(float64(size)/float64(reply.Usage.InputTokens))
	}
	return p
}

// leastText is the prompt size in bytes from which the tokens of the chat template hardly matter.
const leastText = 500

// textBytes returns the number of bytes of a prompt.
func textBytes(r dialect.Request) int {
	n := len(r.Prompt)
	for _, m := range r.Messages {
		n += len(m.Text)
	}
	return n
}

// thoughts returns about how many tokens a model thought before one answer, and whether it thought.
func thoughts(reply dialect.Reply, texts []string) (tokens int, thinks bool) {
	written, seen, aloud := 0, 0, 0 // bytes
	for i, c := range reply.Choices {
		written += len(c.Text)
		seen += len(texts[i])
		aloud += len(c.Thoughts) + len(strings.TrimSpace(c.Text)) - len(texts[i])
	}
	n, u := len(reply.Choices), reply.Usage
	if !u.Plausible() {
		u = sdk.Usage{}
	}
	spent := int(u.OutputTokens)
	switch {
	case reply.ThoughtTokens > 0 && reply.ThoughtTokens <= sdk.MaxTokens:
		return int(reply.ThoughtTokens) / n, true
	case aloud > 0 && spent > 0:
		return max(0, spent-sdk.EstimateTokens(seen)) / n, true
	case aloud > 0:
		return sdk.EstimateTokens(aloud) / n, true
	case spent > written+silence*n:
		return (spent - sdk.EstimateTokens(seen)) / n, true
	}
	return 0, false
}
