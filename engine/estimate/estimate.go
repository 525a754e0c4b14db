package estimate

import (
	"context"
	"encoding/json"
	"sync"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
)

// Most tokens that an answer is taken to have where the config has no
// max_tokens.
const (
	LabelAnswer = 32
	JSONAnswer  = 512
	CitedAnswer = 1024 // a text that cites passages
	Addition    = 150  // of an enricher
)

// Instructions is what a request for an addition is taken to hold beside the
// passage and its document, in tokens.
const Instructions = 300

// Rehearsal looks at what the voters of a pipeline would ask.
type Rehearsal struct {
	mu     sync.Mutex
	voters map[string]*Voter
}

// New begins a rehearsal.
func New() *Rehearsal { return &Rehearsal{voters: map[string]*Voter{}} }

// Voter is what one voter was asked in a rehearsal.
type Voter struct {
	Items   int         // that went to it
	Prompts int         // that it would send: one per item, or one per sample where each has its own
	Answers int         // that it would get
	Input   int         // tokens in
	Output  int         // tokens out, at most
	Assumed bool        // that its answers have at most so many tokens: its config does not say
	Shown   *sdk.Prompt // one of the prompts; nil: none was read

	shownOf string // the item of Shown
}

// Voter returns what a voter was asked so far.
func (r *Rehearsal) Voter(name string) Voter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.voters[name]; v != nil {
		return *v
	}
	return Voter{}
}

// Sampler returns what stands in for a voter. It abstains from every vote.
func (r *Rehearsal) Sampler(s *pipeline.Stage) sdk.Sampler { return stand{r, s} }

type stand struct {
	rehearsal *Rehearsal
	stage     *pipeline.Stage
}

func (s stand) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	r := s.rehearsal
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.voters[s.stage.Name]
	if v == nil {
		v = &Voter{}
		r.voters[s.stage.Name] = v
	}
	for i := range b.Items {
		v.add(&b.Items[i], s.stage)
	}
	return make([][]sdk.Sample, len(b.Items)), nil
}

func (v *Voter) add(item *sdk.Item, s *pipeline.Stage) {
	samples := max(s.N, 1)
	prompts := item.Prompts
	if len(prompts) == 0 { // a voter that writes its own
		prompts = []sdk.Prompt{{Text: item.Text}}
	} else if v.Shown == nil || before(item.ID, v.shownOf) {
		shown := prompts[0]
		v.Shown, v.shownOf = &shown, item.ID
	}
	prompts = prompts[:min(len(prompts), samples)]
	v.Items++
	v.Prompts += len(prompts)
	v.Answers += samples
	for _, p := range prompts {
		v.Input += Tokens(p)
	}
	most := maxTokens(s)
	if v.Assumed = most == 0; v.Assumed {
		switch {
		case prompts[0].Passages != nil:
			most = CitedAnswer
		case len(prompts[0].Fields) > 0:
			most = JSONAnswer
		default:
			most = LabelAnswer
		}
	}
	v.Output += samples * most
}

// before orders items as they are numbered, so that the same prompt is shown
// whatever the order in which they come.
func before(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// Tokens is roughly how many tokens a prompt has.
func Tokens(p sdk.Prompt) int {
	n := utf8.RuneCountInString(p.Text)
	for _, m := range p.Messages {
		n += utf8.RuneCountInString(m.Text)
	}
	return TokensOf(n)
}

// TokensOf is roughly how many tokens so many characters have.
func TokensOf(characters int) int { return (characters + 3) / 4 }

// maxTokens is what the config of a stage says about its answers; 0: nothing.
func maxTokens(s *pipeline.Stage) int {
	var config struct {
		MaxTokens int `json:"max_tokens"`
	}
	if json.Unmarshal(s.Config.Public, &config) != nil {
		return 0 // it is of another type there
	}
	return max(config.MaxTokens, 0)
}

// Enrichment is what an enrich stage takes at most that is asked for so many
// passages, with so many characters of passages and their documents. Assumed says
// that its config does not say how long an addition is.
func Enrichment(s *pipeline.Stage, passages, characters int) (u sdk.Usage, assumed bool) {
	most := maxTokens(s)
	if assumed = most == 0; assumed {
		most = Addition
	}
	return sdk.Usage{InputTokens: uint64(TokensOf(characters) + passages*Instructions), OutputTokens: uint64(passages * most)}, assumed && passages > 0
}
