package backends

import (
	"fmt"
	"maps"
	"slices"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/sdk"
)

// Main is the name of the service that the stage's own arguments describe.
const Main = "main"

// Arguments is embedded in the configs of voters, beside that of the main service.
type Arguments struct {
	Backends []string           `config:"backends" pattern:"^[a-z][a-z0-9_-]*$" example:"azure" doc:"Names of further services that answer for this voter, in the order in which they are asked where those before are down, busy, deny it or are out of quota; base_url, api_key and model describe the first one, main."`
	URLs     map[string]string  `config:"backend_urls" requires:"backends" pattern:"^https?://[^\\s/]+" example:"http://127.0.0.1:8081/v1" doc:"Their addresses by name; base_url for those left out, or with another api that of its own service."`
	Keys     map[string]string  `config:"backend_keys,secret" requires:"backends" doc:"Their keys by name; for those left out api_key, where the address is base_url."`
	Models   map[string]string  `config:"backend_models" requires:"backends" pattern:"." doc:"Their models by name; model for those left out."`
	APIs     map[string]string  `config:"backend_apis" requires:"backends" one_of:"openai,anthropic" doc:"Their APIs by name; api for those left out."`
	Shares   map[string]float64 `config:"shares" requires:"backends" min:"0" doc:"Which shares of the answers the services give, by name, main among them; those left out give none unless others fail. Without shares main gives all."`
}

// all are the configs of all services, main first.
func (c Arguments) all(main chatmodel.Config) []chatmodel.Config {
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
			b.Model, b.Profile = model, profile.Given{} // which is about main's
		}
		if b.Address() != main.Address() { // secrets go to whom they were given
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

// Check reports the errors that tags cannot find, also those of main: sdk.ArgumentErrors.
func (c Arguments) Check(main chatmodel.Config) error {
	errs := api.Errors{main.Check()}
	fail := func(argument, element, text string) {
		errs = append(errs, &sdk.ArgumentError{Argument: argument, Path: []string{element}, Err: fmt.Errorf("%s", text)})
	}
	known := map[string]bool{}
	for i, name := range c.Backends {
		switch {
		case name == Main:
			fail("backends", fmt.Sprint(i), "main is the service that base_url, api_key and model describe")
		case known[name]:
			fail("backends", fmt.Sprint(i), fmt.Sprintf("%q stands in the list already", name))
		}
		known[name] = true
	}
	for argument, names := range map[string][]string{
		"backend_urls": keys(c.URLs), "backend_keys": keys(c.Keys), "backend_models": keys(c.Models), "backend_apis": keys(c.APIs),
	} {
		for _, name := range names {
			if !known[name] {
				fail(argument, name, fmt.Sprintf("%q is not in backends", name))
			}
		}
	}
	known[Main] = true
	sum := 0.0
	for _, name := range keys(c.Shares) {
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

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
