package chatmodel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"reflect"
	"slices"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/sdk"
)

// BatchArgument is the argument by which a stage asks in batches. Its results may then be sdk.Pending, for
// sdk.PendsIf.
const BatchArgument = "batch"

// Later does a stage's work on rows, in batches of the service if the config says so. In batches its error may be
// *sdk.Pending. handle comes from an earlier Pending; empty: there was none. Later first finds out which model the
// server serves, since keys depend on it.
func Later[R any](ctx context.Context, m *Model, handle string, work func(context.Context) (R, error)) (R, error) {
	m.recognise(ctx)
	if m.jobs == nil {
		return work(ctx)
	}
	return DoJob(ctx, m.jobs, handle, work)
}

// batches returns the jobs of the model's service; nil: the config asks for none.
func (m *Model) batches(c Config, setup sdk.Setup) *Jobs {
	if !c.Batch {
		return nil
	}
	if c.API == apiAnthropic {
		return NewJobs(Anthropic{Client: m.Client}, m.Client, setup)
	}
	return NewJobs(OpenAI{Client: m.Client}, m.Client, setup)
}

// Forecast estimates the cost of a number of answers to a request, from the model's profile. It sends nothing.
// choices is the most answers of one request. written is the expected number of tokens of an answer if no request of
// its kind was seen.
func (m *Model) Forecast(r dialect.Request, answers, choices int, written func(profile.Profile) int) (f sdk.Forecast, err error) {
	if answers == 0 {
		return f, nil
	}
	p, _, err := m.keeper.Kept(context.Background())
	if err != nil {
		return f, err
	}
	r.N = min(answers, choices)
	sent := p.Apply(r)
	size := max(1, sent.N)
	sent.N = 1
	body, err := m.dialect.Body(sent)
	if err != nil {
		return f, sdk.Invalid(err)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return f, sdk.Invalid(err)
	}
	f.Answers, f.MostRequests, f.Requests = answers, answers, (answers+size-1)/size
	in, out := uint64(f.Requests)*p.Estimate(sent), p.Output(sent, written(p))
	if limit := float64(sent.MaxTokens); limit > 0 {
		out.Mean, out.Low = min(out.Mean, limit), min(out.Low, limit)
		if p.Unbounded(sent) == "" { // otherwise the limit may grow once the model is known
			out.High = min(out.High, limit)
		}
	}
	all := func(each float64) uint64 { return uint64(math.Round(float64(answers) * each)) }
	f.Likely = sdk.Usage{InputTokens: in, CachedTokens: uint64(float64(in) * p.Cached(sent)), OutputTokens: all(out.Mean)}
	f.Low, f.High = all(out.Low), all(out.High)
	alone := sdk.Usage{InputTokens: p.MostInput(sent, len(text)), OutputTokens: uint64(sent.MaxTokens)}
	switch {
	case p.Unbounded(sent) != "":
		f.Unknown = p.Unbounded(sent)
	case !m.Plain():
		f.Unknown = "body in its config may let a request take more"
	case !alone.Plausible():
		f.Unknown = "its max_tokens is beyond what any answer has"
	default:
		f.Most = sdk.Usage{InputTokens: uint64(answers) * alone.InputTokens, OutputTokens: uint64(answers) * alone.OutputTokens}
	}
	return f, nil
}

// OnReply reads the answers to a request and caches them. The reply has at least one choice; sent is the request in
// the form in which it was sent.
type OnReply func(reply dialect.Reply, sent dialect.Request) error

// maxTries bounds how often a request is sent because the model refuses parts of it.
const maxTries = 12

// Send sends a request, changed by the model's profile. If the model refuses a field, or its thoughts leave no room
// for an answer, Send asks again at once with a changed request. It calls onReply before the call is released, and
// returns onReply's error. The usage of the reply covers all calls.
func (m *Model) Send(ctx context.Context, r dialect.Request, onReply OnReply) error {
	a := &asking{Model: m, want: r, onReply: onReply}
	var err error
	for range maxTries {
		sent, found := m.Applied(ctx, a.want)
		if found != nil {
			return found
		}
		if err = a.post(ctx, sent); err == nil {
			return nil
		}
		if again, found := a.again(ctx, sent, err); !again {
			return found
		}
	}
	return err
}

// Applied returns the request as the model accepts it, as far as that is known.
func (m *Model) Applied(ctx context.Context, r dialect.Request) (dialect.Request, error) {
	p, err := m.keeper.Get(ctx)
	return p.Apply(r), err
}

// Gives records how many choices the model gives to one request, after it refused more without giving the reason.
func (m *Model) Gives(ctx context.Context, choices int) { m.keeper.Gives(ctx, choices) }

// asking is one call of Send.
type asking struct {
	*Model
	want    dialect.Request
	onReply OnReply
	spent   sdk.Usage // by useless replies
	refusal error     // of a form of structured answers; it may have another reason
}

// errSilent is the error of a reply without text. The model may write text if it is asked in another way.
var errSilent = sdk.Invalid(errors.New("the model wrote nothing but thoughts"))

func (a *asking) post(ctx context.Context, sent dialect.Request) error {
	return a.call(ctx, sent, nil, func(reply dialect.Reply) error { return a.take(ctx, reply, sent) })
}

// take processes a reply.
func (a *asking) take(ctx context.Context, reply dialect.Reply, sent dialect.Request) error {
	if len(reply.Choices) == 0 {
		return api.NoAnswer("the server's reply holds no choices; check base_url and model")
	}
	for _, c := range reply.Choices {
		if err := c.Broken(); err != nil {
			return err
		}
	}
	a.keeper.Saw(ctx, sent, reply)
	if sent.Schema != nil {
		if a.refusal != nil {
			a.keeper.Obeyed(ctx, sent.Form)
		}
		a.obeyed.Store(true)
	}
	reply.Usage.Add(a.spent)
	// silent reports whether an answer was ended before any text.
	silent := func(c dialect.Choice) bool {
		return c.Unusable() == "" && c.Visible() == "" && (c.Cut() || sent.Stop != nil)
	}
	if slices.ContainsFunc(reply.Choices, silent) {
		changed, err := a.changed(ctx, sent)
		if err != nil {
			return err
		}
		if changed { // another request may get these answers
			reply.Choices = slices.DeleteFunc(reply.Choices, silent)
		}
	}
	if len(reply.Choices) == 0 {
		a.spent = reply.Usage
		return errSilent
	}
	return a.onReply(reply, sent)
}

// changed reports whether the request would now be sent in another form.
func (a *asking) changed(ctx context.Context, sent dialect.Request) (bool, error) {
	now, err := a.Applied(ctx, a.want)
	return !reflect.DeepEqual(now, sent), err
}

// again reports whether to ask again after an error, and otherwise returns the error.
func (a *asking) again(ctx context.Context, sent dialect.Request, err error) (bool, error) {
	if errors.Is(err, errSilent) {
		return true, nil
	}
	if !api.BadRequest(err) {
		return false, err
	}
	ofText := sdk.CodeOf(err) == sdk.CodeRefused // the text is refused, not a field
	if ofText && sent.MaxTokens <= a.want.MaxTokens {
		return false, cmp.Or(a.refusal, err)
	}
	a.keeper.Refused(ctx, sent, err)
	if changed, failed := a.changed(ctx, sent); changed || failed != nil {
		return changed, failed
	}
	if ofText || sent.Schema == nil || sent.Form == dialect.FormText || a.obeyed.Load() {
		return false, cmp.Or(a.refusal, err)
	}
	a.refusal = cmp.Or(a.refusal, err)
	a.want.Form = dialect.Forms[slices.Index(dialect.Forms, sent.Form)+1]
	return true, nil
}

// unlimited is how many tokens an answer without a limit counts in the limits of services.
const unlimited = 512

// request returns the call for a request in its final form.
func (m *Model) request(sent dialect.Request) *api.Request {
	most := sent.MaxTokens
	if most == 0 {
		most = unlimited
	}
	return &api.Request{Client: m.Client, Whole: true, Tokens: max(1, sent.N) * most, Bounded: sent.MaxTokens > 0}
}

// call sends a request without changes. The reply's usage contains only plausible numbers of the server.
func (m *Model) call(ctx context.Context, sent dialect.Request, header http.Header, take func(dialect.Reply) error) error {
	body, err := m.dialect.Body(sent)
	if err != nil {
		return sdk.Invalid(err)
	}
	var reply dialect.Reply
	r := m.request(sent)
	r.Header = header
	streamed := false
	if d, ok := m.dialect.(dialect.OpenAI); ok {
		r.Join = func(events []byte) ([]byte, error) {
			streamed = true
			return d.Join(events)
		}
	}
	r.Read = func(text []byte) (usage sdk.Usage, err error) {
		reply, err = m.dialect.Read(text, sent)
		reply.Streamed = streamed
		return reply.Usage, err
	}
	r.OnReply = func() error {
		reply.Usage = r.Usage()
		return take(reply)
	}
	return r.Post(ctx, m.dialect.Path(sent), body, nil)
}

// probe sends a request of a probe.
func (m *Model) probe(ctx context.Context, r dialect.Request) (reply dialect.Reply, err error) {
	r.Extra = m.blank.Extra
	err = m.call(api.Through(ctx, nil), r, http.Header{"User-Agent": {profile.UserAgent}}, func(got dialect.Reply) error {
		reply = got
		return nil
	})
	return reply, err
}
