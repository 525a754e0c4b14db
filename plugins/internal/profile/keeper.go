package profile

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"sync"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

// Keeper holds the profile of one model and updates it from what calls show. Its methods may be called by several
// goroutines.
type Keeper struct {
	config Config
	turn   chan struct{} // holds an element during a probe
	store  sync.Mutex    // held while the profile is stored with the Host

	mu     sync.Mutex
	looked bool            // the Host was asked
	probed bool            // a probe has run, with or without a result
	seen   map[string]Seen // by kind, from replies so far; the profile gets a copy when due
	known  *Profile        // nil: no profile yet
	served Served          // as the server reported
}

// Estimate returns about how many tokens the prompt of a request has. Apply must have changed the request.
func (p Profile) Estimate(r dialect.Request) uint64 {
	return uint64(math.Round(p.tokens(r.About, asked(r)+string(p.schema(r))))) + uint64(p.template(r))
}

// Tokens returns about how many tokens a text has.
func (p Profile) Tokens(text string) int { return int(math.Ceil(p.tokens("", text))) }

// MostInput returns the greatest possible number of prompt tokens of a request, which Apply has changed. body is the
// size of its body in bytes. No token is shorter than a byte, and the frame of the body has more bytes than a
// template adds tokens.
func (Profile) MostInput(r dialect.Request, body int) uint64 {
	if r.Schema != nil && r.Form == dialect.FormTool {
		body += preamble
	}
	return uint64(body)
}

const (
	// frame is about how many tokens a chat template adds to each message.
	frame = 4
	// preamble is more than the tokens by which services explain tools to a model.
	preamble = 512
)

// template returns about how many tokens a request has beside its texts.
func (p Profile) template(r dialect.Request) int {
	switch {
	case r.Messages == nil:
		return 0
	case p.TemplateTokens == 0:
		return frame * len(r.Messages)
	}
	return p.TemplateTokens + frame*(len(r.Messages)-1)
}

// schema returns the schema if it counts as input beside the texts; nil: none does.
func (p Profile) schema(r dialect.Request) []byte {
	switch r.Form {
	case dialect.FormObject, dialect.FormText: // the texts contain it
		return nil
	case dialect.FormSchema:
		if p.SchemaCounted == No {
			return nil
		}
	}
	return r.Schema
}

// Unbounded says why there is no upper bound for the tokens of an answer, and what to do about that. Apply must have
// changed the request. Empty: MaxTokens is the bound, including thoughts. If thoughts leave no room for an answer,
// the request is sent again with a higher limit.
func (p Profile) Unbounded(r dialect.Request) string {
	switch {
	case r.MaxTokens == 0:
		return "its answers have no limit; max_tokens in its config sets one"
	case p.Thinks == "" || p.Thinks == Unknown:
		return "it is not known whether the model thinks before it answers, which would take more; racflow model probe finds out, or thinking in the profile block of its config says it"
	}
	return ""
}

// asked returns the texts of a request, as they are sent.
func asked(r dialect.Request) string {
	if r.Schema != nil && (r.Form == dialect.FormObject || r.Form == dialect.FormText) {
		r = dialect.Instruct(r)
	}
	text := r.Prompt
	for _, m := range r.Messages {
		text += m.Text
	}
	return text
}

// Config is what a Keeper needs.
type Config struct {
	Target
	Address string   // of the service
	Host    sdk.Host // stores the profile
	Given   Given
	Probe   bool // probe the model if nothing is known of it
	// Warn logs a warning once for each topic.
	Warn func(topic, message string, args ...any)
}

// NewKeeper returns a keeper without a profile.
func NewKeeper(c Config) *Keeper {
	return &Keeper{config: c, turn: make(chan struct{}, 1), seen: map[string]Seen{}}
}

// Endpoint is the service's name under which the profile is stored: its address, and the path of completions, which
// may accept other fields than chats.
func (k *Keeper) Endpoint() string {
	if k.config.Completion {
		return k.config.Address + "/completions"
	}
	return k.config.Address
}

// Get returns the profile to use before a request. If none is stored, it probes the model, once for all concurrent
// callers. If the service is down, or the run must end, it returns the probe's error. If the probe fails otherwise,
// it returns the profile that the file gives: the request itself will fail with the reason.
func (k *Keeper) Get(ctx context.Context) (Profile, error) {
	p, known, err := k.Kept(ctx)
	if known || err != nil || !k.config.Probe {
		return p, err
	}
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return Profile{}, ctx.Err()
	}
	if err := k.probe(ctx); err != nil {
		return Profile{}, err
	}
	p, _, err = k.Kept(ctx)
	return p, err
}

// Kept returns the stored profile and whether there is one. It makes no call.
func (k *Keeper) Kept(ctx context.Context) (p Profile, known bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.askHost(ctx); err != nil {
		return p, false, err
	}
	if k.known != nil {
		p = *k.known
	}
	p.Served = cmp.Or(k.served, p.Served)
	return k.config.Given.over(p), k.known != nil, nil
}

// Serves records which model the server serves. If it is another model than before, the old profile is dropped.
func (k *Keeper) Serves(ctx context.Context, now Served) {
	p, known, err := k.Kept(ctx)
	if err != nil || now.Model == "" {
		return
	}
	before := p.Served.Model
	k.mu.Lock()
	k.served = now
	if before != "" && before != now.Model {
		k.known, known = nil, false
	}
	k.mu.Unlock()
	switch {
	case known:
		k.keep(ctx, false, func(p Profile) Profile { return p })
	case before != "" && before != now.Model:
		k.config.Warn("served", "the server serves another model than before: it is asked anew, and the earlier answers stay those of the other one", "before", before, "now", now.Model)
	}
}

// Served returns the model that the server reported last.
func (k *Keeper) Served() Served {
	p, _, err := k.Kept(context.Background())
	if err != nil {
		return Served{}
	}
	return p.Served
}

// askHost loads the profile from the Host, once. The caller holds mu.
func (k *Keeper) askHost(ctx context.Context) error {
	if k.looked {
		return nil
	}
	raw, err := k.config.Host.Profile(ctx, k.Endpoint(), k.config.Model)
	if err != nil {
		return err
	}
	if raw != nil {
		var p Profile
		if err := json.Unmarshal(raw, &p); err != nil {
			return sdk.Invalid(fmt.Errorf("the profile of %s that is kept cannot be read: %w; racflow model profiles names its file: mend or remove that", k.config.Model, err))
		}
		k.known = &p
	}
	k.looked = true
	return nil
}

// probe probes the model, unless that was done. The caller holds turn.
func (k *Keeper) probe(ctx context.Context) error {
	k.mu.Lock()
	done := k.probed
	k.mu.Unlock()
	if done {
		return nil
	}
	p, err := k.config.Run(ctx)
	if ctx.Err() != nil || sdk.CodeOf(err) == sdk.CodeTransient || api.Over(err) {
		return cmp.Or(ctx.Err(), err)
	}
	if err == nil {
		k.keep(ctx, true, func(Profile) Profile { return p })
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.probed = true
	return nil
}

// Close stores everything that was seen.
func (k *Keeper) Close() {
	k.keep(context.Background(), false, func(p Profile) Profile {
		p.Asked = with(p.Asked, k.seen)
		return p
	})
}

// keep changes the profile. It stores the profile with the Host if the change made a difference, or if anyway is set.
func (k *Keeper) keep(ctx context.Context, anyway bool, change func(Profile) Profile) {
	k.store.Lock()
	defer k.store.Unlock()
	k.mu.Lock()
	var before Profile
	if k.known != nil {
		before = *k.known
	}
	p := change(before)
	p.Served = cmp.Or(k.served, before.Served)
	changed := !reflect.DeepEqual(p, before)
	if changed || anyway {
		k.known = &p
	}
	k.mu.Unlock()
	if !changed && !anyway {
		return
	}
	if !anyway {
		k.join(ctx, &p)
	}
	raw, err := json.Marshal(p)
	if err == nil {
		err = k.config.Host.KeepProfile(context.WithoutCancel(ctx), k.Endpoint(), k.config.Model, raw)
	}
	if err != nil && ctx.Err() == nil {
		k.config.Warn("profile", "what was found out about the model cannot be kept, and will be found out again", "model", k.config.Model, "error", err)
	}
}

// join adds what other stages with the same model have seen meanwhile.
func (k *Keeper) join(ctx context.Context, p *Profile) {
	var kept Profile
	raw, err := k.config.Host.Profile(context.WithoutCancel(ctx), k.Endpoint(), k.config.Model)
	if err != nil || json.Unmarshal(raw, &kept) != nil || kept.Served.Model != p.Served.Model {
		return // nothing is kept of this model, or look has said what is wrong
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p.Asked = with(with(p.Asked, kept.Asked), k.seen)
}

// Refused learns from an error.
func (k *Keeper) Refused(ctx context.Context, sent dialect.Request, err error) {
	said, is := api.RefusalOf(err)
	if !is || !api.BadRequest(err) {
		return
	}
	k.keep(ctx, false, func(p Profile) Profile {
		after, _ := p.refused(sent, said)
		k.warn(p, after)
		return after
	})
}

// If a prompt has more than cutTokens, and the server reports fewer than one token in cutTimes, the prompt was
// truncated: estimates of whole prompts are more accurate than that.
const cutTokens, cutTimes = 1000, 2.5

// Saw learns from a reply.
func (k *Keeper) Saw(ctx context.Context, sent dialect.Request, reply dialect.Reply) {
	k.keep(ctx, false, func(p Profile) Profile {
		if read, about := float64(reply.Usage.InputTokens), p.tokens("", asked(sent)); reply.Usage.Plausible() && read > 0 && about > cutTokens && read*cutTimes < about {
			k.config.Warn("cut", "the server says that it read far fewer tokens than the prompt has: it may cut prompts, which its context length decides", "read", read, "prompt", math.Round(about), "model", k.config.Model)
		}
		after := p.saw(sent, reply)
		s, ok := k.seen[sent.About]
		if !ok {
			s = p.Asked[sent.About]
		}
		if s = s.add(p, sent, reply); s.Requests > 0 {
			k.seen[sent.About] = s
		}
		if s.due() {
			after.Asked = with(p.Asked, k.seen)
		}
		return after
	})
}

// Gives records how many choices a model gives to one request, after it refused more without giving the reason.
func (k *Keeper) Gives(ctx context.Context, choices int) {
	k.keep(ctx, false, func(p Profile) Profile {
		after := p.atMost(choices)
		k.warn(p, after)
		return after
	})
}

// Obeyed records a form in which a model gives structured answers, after it refused stricter forms without giving the
// reason.
func (k *Keeper) Obeyed(ctx context.Context, form dialect.Form) {
	k.keep(ctx, false, func(p Profile) Profile {
		after := p
		after.Structured = structureOf(form)
		k.warn(p, after)
		return after
	})
}

// warn logs what the model has refused.
func (k *Keeper) warn(before, after Profile) {
	for _, f := range fields {
		if *f.of(&before) != No && *f.of(&after) == No {
			k.config.Warn("refused "+f.name, "the model refuses a field of the request: it is asked without", "field", f.name, "model", k.config.Model)
		}
	}
	if after.Choices > 0 && before.Choices != after.Choices {
		k.config.Warn("refused n", "the server refuses n choices in one request: it is asked for fewer", "now", after.Choices, "model", k.config.Model)
	}
	if before.Structured != after.Structured {
		k.config.Warn("refused "+string(before.Structured), "the model refuses this form of structured answers: it is asked in another way", "now", after.Structured, "model", k.config.Model)
	}
}

// Probe implements sdk.Model. Its error comes from a call.
func (k *Keeper) Probe(ctx context.Context) (json.RawMessage, error) {
	p, err := k.config.Run(ctx)
	if err != nil {
		return nil, err
	}
	k.keep(ctx, true, func(Profile) Profile { return p })
	return json.Marshal(p)
}

// Profile implements sdk.Model.
func (k *Keeper) Profile(ctx context.Context) (json.RawMessage, error) {
	p, known, err := k.Kept(ctx)
	if !known || err != nil {
		return nil, err
	}
	return json.Marshal(p)
}

// Name implements sdk.Model.
func (k *Keeper) Name() string { return k.config.Model }

var _ sdk.Model = (*Keeper)(nil)
