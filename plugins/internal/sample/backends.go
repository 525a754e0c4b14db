package sample

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync/atomic"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/sdk"
)

// This file lets one voter ask several services: other keys, addresses, APIs or models. The stage's own arguments
// describe the first service, called main.
//
// Each answer is assigned to one service (Choose): to main, or, if the file gives shares, to the service that a
// weighted rendezvous hash of the question picks. So a resumed run and a replay pick the same service, and a new
// service takes only its own share from the others. If the chosen service is down, wants a pause, denies the voter or
// is out of quota, Do asks the others in the order of the file. A service that has denied several requests in a row
// is skipped for the rest of the run. If no service answers, the rows wait as they do for a single service.
//
// Each service has its own limits and circuit breakers, by its address. If several have the same address, the name
// counts, too.
//
// This file does not know what is asked. The voter decides what is cached, and under which model.

// Backend is one of the services of a voter.
type Backend struct {
	*chatmodel.Model
	Index int // among all
	Same  int // index of the first backend with the same model

	name   string
	share  float64
	denied atomic.Int32 // requests in a row
}

// Backends are the services of a voter. Its methods may be called by several goroutines.
type Backends struct {
	All []*Backend // main first

}

// NewBackends returns the services of valid configs (Check).
func NewBackends(main chatmodel.Config, c BackendArguments, setup sdk.Setup) *Backends {
	s := &Backends{}
	for i, config := range c.all(main) {
		name := MainBackend
		if i > 0 {
			name = c.Backends[i-1]
		}
		b := &Backend{Model: chatmodel.New(config, setup), Index: i, name: name, share: c.Shares[name]}
		b.Same = slices.IndexFunc(s.All, func(other *Backend) bool { return other.Name() == b.Name() })
		if b.Same < 0 {
			b.Same = i
		}
		s.All = append(s.All, b)
	}
	if c.Shares == nil {
		s.All[0].share = 1
	}
	return s
}

// Models implements sdk.Prober.
func (s *Backends) Models() []sdk.Model {
	var all []sdk.Model
	for _, b := range s.All {
		all = append(all, b.Models()...)
	}
	return all
}

// Close closes idle connections.
func (s *Backends) Close() error {
	for _, b := range s.All {
		_ = b.Close() // it returns no error
	}
	return nil
}

// Choose returns the service that should give an answer. It uses a weighted rendezvous hash of the question and the
// answer's number (Schindelhauer and Schomaker, Weighted distributed hash tables, 2005).
func (s *Backends) Choose(question sdk.Key, number int) *Backend {
	best, most := s.All[0], math.Inf(-1)
	for _, b := range s.All {
		if b.share == 0 {
			continue
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", question, number, b.name))
		drawn := (float64(binary.BigEndian.Uint64(sum[:])>>11) + .5) / (1 << 53) // between 0 and 1
		if score := b.share / -math.Log(drawn); score > most {
			best, most = b, score
		}
	}
	return best
}

// Has reports whether one of the services has a model.
func (s *Backends) Has(model string) bool {
	return slices.ContainsFunc(s.All, func(b *Backend) bool { return b.Name() == model })
}

// maxDenied is how many requests in a row a service may deny before it is skipped.
const maxDenied = 3

// Do asks the chosen service, and the others if it does not answer. The error is one that every service would give,
// or it says that no service answers now. It is transient if the rows are to wait for a service; the host decides
// that.
func (s *Backends) Do(ctx context.Context, chosen *Backend, ask func(context.Context, *Backend) error) error {
	if len(s.All) == 1 {
		return ask(ctx, chosen)
	}
	order := s.order(chosen)
	var later error
	for _, b := range order {
		err := ask(api.WithAlternative(ctx), b)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !elsewhere(err) {
			b.denied.Store(0)
			return err
		}
		b.WarnOnce("backend", "a service does not serve the voter: the next one is asked", "service", b.name, "address", b.Address(), "error", err)
		switch {
		case sdk.CodeOf(err) == sdk.CodeTransient:
			later = sooner(later, err)
		case api.Denied(err):
			b.denied.Add(1)
		}
	}
	if later != nil { // the failure may pass
		return later
	}
	return ask(ctx, order[0])
}

// order returns the chosen service and then the others, without services that deny every request.
func (s *Backends) order(chosen *Backend) []*Backend {
	order := []*Backend{chosen}
	for _, b := range s.All {
		if b != chosen {
			order = append(order, b)
		}
	}
	serve := slices.DeleteFunc(slices.Clone(order), func(b *Backend) bool { return b.denied.Load() >= maxDenied })
	if len(serve) == 0 {
		return order
	}
	return serve
}

// elsewhere reports whether another service may answer after this error.
func elsewhere(err error) bool {
	code := sdk.CodeOf(err)
	return err != nil && (code == sdk.CodeTransient || code == sdk.CodeUnavailable || api.Denied(err))
}

// sooner returns the error with the shorter time to wait. An error with a time wins over one without, which would
// count as a retry.
func sooner(a, b error) error {
	if a == nil {
		return b
	}
	x, y := new(sdk.Error), new(sdk.Error)
	if errors.As(a, &x) && errors.As(b, &y) && y.RetryAfter > 0 && (x.RetryAfter == 0 || y.RetryAfter < x.RetryAfter) {
		return b
	}
	return a
}

// MainBackend is the name of the service that the stage's own arguments describe.
const MainBackend = "main"

// BackendArguments is embedded in the configs of voters, beside the config of the main service.
type BackendArguments struct {
	Backends []string           `config:"backends" pattern:"^[a-z][a-z0-9_-]*$" example:"azure" doc:"Names of further services that answer for this voter, in the order in which they are asked where those before are down, busy, deny it or are out of quota; base_url, api_key and model describe the first one, main."`
	URLs     map[string]string  `config:"backend_urls" requires:"backends" pattern:"^https?://[^\\s/]+" example:"http://127.0.0.1:8081/v1" doc:"Their addresses by name; base_url for those left out, or with another api that of its own service."`
	Keys     map[string]string  `config:"backend_keys,secret" requires:"backends" doc:"Their keys by name; for those left out api_key, where the address is base_url."`
	Models   map[string]string  `config:"backend_models" requires:"backends" pattern:"." doc:"Their models by name; model for those left out."`
	APIs     map[string]string  `config:"backend_apis" requires:"backends" one_of:"openai,anthropic" doc:"Their APIs by name; api for those left out."`
	Shares   map[string]float64 `config:"shares" requires:"backends" min:"0" doc:"Which shares of the answers the services give, by name, main among them; those left out give none unless others fail. Without shares main gives all."`
}

// all returns the configs of all services, main first.
func (c BackendArguments) all(main chatmodel.Config) []chatmodel.Config {
	configs := []chatmodel.Config{main}
	addresses := map[string]bool{main.Address(): true}
	for _, name := range c.Backends {
		b := main
		if api, ok := c.APIs[name]; ok && api != main.API {
			b.API, b.BaseURL, b.APIVersion = api, main.Default(), ""
		}
		if url, ok := c.URLs[name]; ok {
			b.BaseURL = url
		}
		if model, ok := c.Models[name]; ok && model != main.Model {
			b.Model, b.Profile = model, profile.Given{} // main's profile describes another model
		}
		if b.Address() != main.Address() { // secrets go only to the address that they were given for
			b.APIKey, b.Headers = "", nil
		}
		if key, ok := c.Keys[name]; ok {
			b.APIKey = key
		}
		if addresses[b.Address()] {
			b.Limited = b.Address() + " (" + name + ")"
		}
		addresses[b.Address()] = true
		configs = append(configs, b)
	}
	return configs
}

// addresses implements sdk.Stage.Addresses.
func (c BackendArguments) addresses(main chatmodel.Config) map[string]string {
	all := main.Addresses()
	for i, b := range c.all(main)[1:] {
		all[c.Backends[i]] = b.Address()
	}
	return all
}

// Check reports the errors that tags cannot find, including errors of main, as sdk.ArgumentErrors.
func (c BackendArguments) Check(main chatmodel.Config) error {
	errs := api.Errors{main.Check()}
	fail := func(argument, element, text string) {
		errs = append(errs, &sdk.ArgumentError{Argument: argument, Path: []string{element}, Err: fmt.Errorf("%s", text)})
	}
	known := map[string]bool{}
	for i, name := range c.Backends {
		switch {
		case name == MainBackend:
			fail("backends", fmt.Sprint(i), "main is the service that base_url, api_key and model describe")
		case known[name]:
			fail("backends", fmt.Sprint(i), fmt.Sprintf("%q stands in the list already", name))
		}
		known[name] = true
	}
	for argument, names := range map[string][]string{
		"backend_urls": backendsKeys(c.URLs), "backend_keys": backendsKeys(c.Keys), "backend_models": backendsKeys(c.Models), "backend_apis": backendsKeys(c.APIs),
	} {
		for _, name := range names {
			if !known[name] {
				fail(argument, name, fmt.Sprintf("%q is not in backends", name))
			}
		}
	}
	known[MainBackend] = true
	sum := 0.0
	for _, name := range backendsKeys(c.Shares) {
		if sum += c.Shares[name]; !known[name] {
			fail("shares", name, fmt.Sprintf("%q is neither main nor in backends", name))
		}
	}
	errs.Require(c.Shares == nil || sum > 0, "shares", "at least one share must be more than 0")
	all := c.all(main)
	for i, name := range c.Backends {
		b := all[i+1]
		if b.Address() == main.Address() && b.APIKey == main.APIKey && b.Model == main.Model {
			fail("backends", fmt.Sprint(i), fmt.Sprintf("%q is the main service again: give it an address, a key or a model of its own", name))
		}
		for _, e := range sdk.ArgumentErrors(b.Check()) {
			if argument := map[string]string{"base_url": "backend_urls", "api_key": "backend_keys"}[e.Argument]; argument != "" {
				fail(argument, name, e.Err.Error())
			}
		}
	}
	return errs.Err()
}

func backendsKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
