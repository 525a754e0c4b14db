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

// BatchArgument is the name of the argument by which a stage asks in batches: its results
// then may be sdk.Pending, for sdk.PendsIf.
const BatchArgument = "batch"

// Later does a stage's work on rows, where the config says so by batches of the service: its error
// is *sdk.Pending then. handle is what that named before; empty: it did not. Before the first work it finds
// out which model the server serves, since keys depend on that.
func Later[R any](ctx context.Context, m *Model, handle string, work func(context.Context) (R, error)) (R, error) {
	m.recognise(ctx)
	if m.jobs == nil {
		return work(ctx)
	}
	return DoJob(ctx, m.jobs, handle, work)
}

// batches are those of the model's service; nil: the config does not ask for any.
func (m *Model) batches(c Config, setup sdk.Setup) *Jobs {
	if !c.Batch {
		return nil
	}
	if c.API == apiAnthropic {
		return NewJobs(Anthropic{Client: m.Client}, m.Client, setup)
	}
	return NewJobs(OpenAI{Client: m.Client}, m.Client, setup)
}

// Forecast is what it costs to get a number of answers to a request, by what is known of the
// model. It asks nobody. Choices is how many a request asks for at most, and written
// how many tokens an answer is expected to have if none to a request of its kind was seen.
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

// OnReply reads the answers to a request and caches them. The reply has at least one
// choice; sent is the request as the model was asked.
type OnReply func(reply dialect.Reply, sent dialect.Request) error

// maxTries bounds how often a request is asked again because of what the model turns out
// to take.
const maxTries = 12

// Send asks a request, changed by what is known of the model. What the model turns out to
// refuse is left out and the rest asked again at once, and so is what a model had no room to
// answer for its thoughts. Send calls onReply before the call is released, and returns
// its error. The usage of the reply is that of all calls.
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

// Applied is a request as the model takes it, as far as that is known.
func (m *Model) Applied(ctx context.Context, r dialect.Request) (dialect.Request, error) {
	p, err := m.keeper.Get(ctx)
	return p.Apply(r), err
}

// Gives says that the model gives so many choices to one request, after it refused more without
// saying that it was for them.
func (m *Model) Gives(ctx context.Context, choices int) { m.keeper.Gives(ctx, choices) }

// asking is one call of Send.
type asking struct {
	*Model
	want    dialect.Request
	onReply OnReply
	spent   sdk.Usage // by replies that were of no use
	refusal error     // of a form of structured answers, which may be for another reason
}

// errSilent is the error of a reply in which nothing is written, though the model may write
// something where it is asked in another way.
var errSilent = sdk.Invalid(errors.New("the model wrote nothing but thoughts"))

func (a *asking) post(ctx context.Context, sent dialect.Request) error {
	return a.call(ctx, sent, nil, func(reply dialect.Reply) error { return a.take(ctx, reply, sent) })
}

// take takes a reply.
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
	// silent is an answer that was ended before anything of it was written.
	silent := func(c dialect.Choice) bool {
		return c.Unusable() == "" && c.Visible() == "" && (c.Cut() || sent.Stop != nil)
	}
	if slices.ContainsFunc(reply.Choices, silent) {
		changed, err := a.changed(ctx, sent)
		if err != nil {
			return err
		}
		if changed { // then these answers can be had
			reply.Choices = slices.DeleteFunc(reply.Choices, silent)
		}
	}
	if len(reply.Choices) == 0 {
		a.spent = reply.Usage
		return errSilent
	}
	return a.onReply(reply, sent)
}

// changed reports whether the request would be sent in another way now.
func (a *asking) changed(ctx context.Context, sent dialect.Request) (bool, error) {
	now, err := a.Applied(ctx, a.want)
	return !reflect.DeepEqual(now, sent), err
}

// again reports whether to ask again after an error, and the error where not.
func (a *asking) again(ctx context.Context, sent dialect.Request, err error) (bool, error) {
	if errors.Is(err, errSilent) {
		return true, nil
	}
	if !api.BadRequest(err) {
		return false, err
	}
	ofText := sdk.CodeOf(err) == sdk.CodeRefused // and not of a field
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

// unlimited is how many tokens an answer without a limit counts with the limits of
// services.
const unlimited = 512

// request is the call for a request as it is sent.
func (m *Model) request(sent dialect.Request) *api.Request {
	most := sent.MaxTokens
	if most == 0 {
		most = unlimited
	}
	return &api.Request{Client: m.Client, Whole: true, Tokens: max(1, sent.N) * most, Bounded: sent.MaxTokens > 0}
}

// call sends a request as it is. The reply's usage is what can be of what the server says.
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

// probe sends a request that is to find out what the model takes.
func (m *Model) probe(ctx context.Context, r dialect.Request) (reply dialect.Reply, err error) {
	r.Extra = m.blank.Extra
	err = m.call(api.Through(ctx, nil), r, http.Header{"User-Agent": {profile.UserAgent}}, func(got dialect.Reply) error {
		reply = got
		return nil
	})
	return reply, err
}
