package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/racflow/racflow/sdk"
)

// Service is embedded in the configs of stages that call a service, beside its
// address.
type Service struct {
	APIKey  string            `config:"api_key,secret" doc:"Key for the service; leave it out where none is needed."`
	Headers map[string]string `config:"headers,secret" doc:"Further headers of every request."`
	Body    string            `config:"body" example:"{\"user\": \"me\"}" doc:"A JSON object of further fields of every request."`
	Timeout time.Duration     `config:"timeout" affects_output:"false" default:"60s" above:"0s" doc:"Longest time of one request, from sending it to the end of the reply."`
}

// Errors collects what is wrong with a config: sdk.ArgumentErrors.
type Errors []error

// Require adds an error of an argument unless ok.
func (e *Errors) Require(ok bool, argument, text string) {
	if !ok {
		*e = append(*e, &sdk.ArgumentError{Argument: argument, Err: errors.New(text)})
	}
}

// Err joins all errors; nil where there are none.
func (e Errors) Err() error { return errors.Join(e...) }

// Check reports errors of base_url, api_key, headers and body that tags cannot find.
func (c Config) Check() error {
	var errs Errors
	u, err := url.Parse(c.BaseURL)
	errs.Require(err == nil && u.Host != "", "base_url", "it must be an address such as http://127.0.0.1:8080/v1")
	errs.Require(err != nil || u.User == nil && u.RawQuery == "" && u.Fragment == "",
		"base_url", "it must hold no name, password or question mark: they would be shown; write a key as api_key or headers")
	errs.Require(printable(strings.TrimSpace(c.APIKey), false), "api_key", "it holds a character that no key has; was it copied whole?")
	for name, value := range c.Headers {
		errs.Require(httpguts.ValidHeaderFieldName(name), "headers", fmt.Sprintf("%q is not the name of a header", name))
		errs.Require(printable(value, true), "headers", fmt.Sprintf("the value of %q holds a character that no header has", name))
		errs.Require(!slices.Contains([]string{"content-length", "host", "transfer-encoding"}, strings.ToLower(name)),
			"headers", fmt.Sprintf("%q is not for you to set", name))
	}
	fields, err := c.fields()
	errs.Require(err == nil, "body", `it must be a JSON object such as jsonencode({ user = "me" })`)
	for _, name := range c.Reserved {
		errs.Require(fields[name] == nil, "body", fmt.Sprintf("%q is set by the stage itself", name))
	}
	return errs.Err()
}

func printable(text string, spaces bool) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || r == ' ' && !spaces })
}

// fields are those of Body.
func (c Config) fields() (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if strings.TrimSpace(c.Body) == "" {
		return fields, nil
	}
	if err := json.Unmarshal([]byte(c.Body), &fields); err != nil || fields == nil {
		return nil, errors.New("the body is not a JSON object")
	}
	return fields, nil
}

// Essential is a config without its secrets and the arguments that do not change results.
// A request made from it holds what the reply depends on, so it can be the reply's cache key.
func Essential[C any](config C) C {
	v := reflect.ValueOf(&config).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		_, flags, _ := strings.Cut(f.Tag.Get("config"), ",")
		if f.Tag.Get("affects_output") == "false" || slices.Contains(strings.Split(flags, ","), "secret") {
			v.FieldByIndex(f.Index).SetZero()
		}
	}
	return config
}
