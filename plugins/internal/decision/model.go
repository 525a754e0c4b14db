package decision

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// Config is embedded in the configs of stages that ask a decision model.
type Config struct {
	API     string `config:"api" default:"systemone" one_of:"systemone,decisions" doc:"The form of requests: systemone, of TypeSafe's Jev and the servers that followed it, or decisions, of OpenAI."`
	BaseURL string `config:"base_url" pattern:"^$|^https?://[^\\s/]+" example:"http://127.0.0.1:8080/v1" doc:"Address of the server, up to and with its version; without a path /v1 is added. Without it that of TypeSafe or OpenAI."`
	Path    string `config:"path" pattern:"^$|^/[^\\s?#]*$" example:"/@cf/cloudflare/clef" doc:"What follows the address, where that is neither /systemone nor /decisions."`
	Model   string `config:"model,required" example:"jev" min_length:"1" doc:"Name of the model, as the server knows it."`
	api.Service
}

// form returns the form of the config.
func (c Config) form() form { return forms[c.API] }

// Address is the address of the service. TypeSafe's own clients take it without a version.
func (c Config) Address() string {
	address := strings.TrimRight(c.BaseURL, "/")
	if address == "" {
		return c.form().address
	}
	if u, err := url.Parse(address); err == nil && u.Path == "" {
		address += "/v1"
	}
	return address
}

// Addresses implements sdk.Stage.Addresses.
func (c Config) Addresses() map[string]string { return map[string]string{"": c.Address()} }

// path is the path after the address.
func (c Config) path() string {
	if c.Path != "" {
		return c.Path
	}
	return c.form().path
}

// Check reports the errors that tags cannot find, as sdk.ArgumentErrors.
func (c Config) Check() error { return c.service(sdk.Setup{}).Check() }

func (c Config) service(setup sdk.Setup) api.Config {
	return api.Config{Service: c.Service, BaseURL: c.Address(), Reserved: []string{"model", "state", "input", "questions"}, Host: setup.Host, Log: setup.Log}
}

// Model is a decision model behind a server. Its methods may be called by several goroutines.
type Model struct {
	*api.Client
	config Config
	named  atomic.Pointer[string] // the name in the last reply
}

// New returns the model of a valid config (Check).
func New(c Config, setup sdk.Setup) *Model {
	return &Model{Client: api.New(c.service(setup)), config: c}
}

// request returns the request for some questions about a state.
func (m *Model) request(s State, all []Question) (body map[string]any, r *api.Request, key sdk.Key) {
	body = m.config.form().body(m.config.Model, s, all)
	// Answers are numbers and free; one token for each option bounds the count of servers.
	options := 0
	for _, q := range all {
		options += 1 + len(q.Options)
	}
	r = &api.Request{Client: m.Client, Tokens: options, Bounded: true}
	return body, r, r.Key(m.config.path(), body, "decision", m.config.API)
}

// Ask answers questions about a state. It asks each question with its options in several orders and averages the
// distributions, since the first option is chosen more often than it is right. The key is that of the first request
// in the response cache. The usage covers all requests, including cached ones.
func (m *Model) Ask(ctx context.Context, s State, questions []Question, orders int) (r Reply, key sdk.Key, err error) {
	for part := range slices.Chunk(inOrders(questions, orders), mostQuestions) {
		one, of, err := m.send(ctx, s, part)
		if err != nil {
			return r, key, err
		}
		if key == (sdk.Key{}) {
			key = of
		}
		r.Answers = append(r.Answers, one.Answers...)
		r.Usage.Add(one.Usage)
	}
	r.Answers = average(questions, r.Answers, orders)
	return r, key, nil
}

// Forecast estimates the tokens and requests of Ask.
func (m *Model) Forecast(s State, questions []Question, orders int) (f sdk.Forecast, err error) {
	f.Answers = 1
	for part := range slices.Chunk(inOrders(questions, orders), mostQuestions) {
		body, r, key := m.request(s, part)
		cached, err := m.CacheGet(context.Background(), []sdk.Key{key})
		if err != nil {
			return f, err
		}
		if cached[0] != nil {
			continue
		}
		text, err := json.Marshal(body)
		if err != nil {
			return f, sdk.Invalid(err)
		}
		f.Requests++
		f.Likely.InputTokens += uint64(sdk.EstimateTokens(len(text)))
		f.Most.Add(sdk.Usage{InputTokens: uint64(len(text)), OutputTokens: uint64(r.Tokens)})
	}
	if f.MostRequests = f.Requests; f.Requests == 0 {
		f.Answers, f.Cached = 0, 1
	}
	if !m.Plain() {
		f.Most, f.Unknown = sdk.Usage{}, "body in its config may let a request take more"
	}
	return f, nil
}

// send asks the questions of one request, or finds the answers in the cache.
func (m *Model) send(ctx context.Context, s State, all []Question) (r Reply, key sdk.Key, err error) {
	body, request, key := m.request(s, all)
	cached, err := m.CacheGet(ctx, []sdk.Key{key})
	if err != nil {
		return r, key, err
	}
	if cached[0] != nil && json.Unmarshal(cached[0], &r) == nil && len(r.Answers) == len(all) {
		m.note(r)
		return r, key, nil
	}
	request.Read = func(reply []byte) (usage sdk.Usage, err error) {
		r, err = m.config.form().read(reply, all)
		return r.Usage, err
	}
	request.OnReply = func() error {
		m.CachePut(ctx, []sdk.Key{key}, [][]byte{api.Value(r)})
		return nil
	}
	if err = request.Post(ctx, m.config.path(), body, nil); err == nil {
		m.note(r)
	}
	return r, key, err
}

// note logs the reply's other information.
func (m *Model) note(r Reply) {
	if r.truncated {
		m.WarnOnce("truncated", "the service has cut what it was asked about: fewer shots or shorter texts fit")
	}
	if r.Model == "" {
		return
	}
	if before := m.named.Swap(&r.Model); before != nil && *before != r.Model {
		m.WarnOnce("moved", "answers come from two models, since the name has moved from one to the other: name the model itself", "name", m.config.Model, "models", []string{*before, r.Model})
	}
}

// inOrders returns each question with its options in several orders. Each further order begins at a later option.
func inOrders(questions []Question, orders int) (all []Question) {
	for _, q := range questions {
		for order := range q.orders(orders) {
			turned := q
			from := q.first(order, orders)
			turned.Options = slices.Concat(q.Options[from:], q.Options[:from])
			all = append(all, turned)
		}
	}
	return all
}

// orders returns the useful number of orders, at most wanted.
func (q Question) orders(wanted int) int { return max(1, min(wanted, len(q.Options))) }

// first returns the option with which an order begins.
func (q Question) first(order, orders int) int { return order * len(q.Options) / q.orders(orders) }

// average returns one answer to each question: the mean of the answers to its orders, without refused ones.
func average(questions []Question, answers []Answer, orders int) (means []Answer) {
	for _, q := range questions {
		n := q.orders(orders)
		mean, given := Answer{P: make([]float64, max(1, len(q.Options)))}, 0.0
		for order, a := range answers[:n] {
			if a.Refused {
				continue
			}
			given++
			for i, p := range a.P {
				mean.P[(i+q.first(order, orders))%len(a.P)] += p
			}
		}
		if answers = answers[n:]; given == 0 {
			mean = Answer{Refused: true}
		}
		for i := range mean.P {
			mean.P[i] /= given
		}
		means = append(means, mean)
	}
	return means
}
