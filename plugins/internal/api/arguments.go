package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/sync/errgroup"

	"github.com/racflow/racflow/sdk"
)

// Service is embedded in the configs of stages that call a service, beside the service's address.
type Service struct {
	APIKey  string            `config:"api_key,secret" doc:"Key for the service; leave it out where none is needed."`
	Headers map[string]string `config:"headers,secret" doc:"Further headers of every request."`
	Body    string            `config:"body" example:"{\"user\": \"me\"}" doc:"A JSON object of further fields of every request."`
	Timeout time.Duration     `config:"timeout" affects_output:"false" default:"10m" above:"0s" doc:"Longest time of one request, from sending it to the end of the reply. A model on a slow machine may need minutes. A request that took longer is not sent again in the same run, since the service may still be at work on it."`
}

// Errors collects the errors of a config: sdk.ArgumentErrors.
type Errors []error

// Require adds an error about an argument unless ok.
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

// fields returns the fields of Body.
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

// Essential returns a config without its secrets and without arguments that do not change results. A request made
// from it contains everything that the reply depends on, so it can be the reply's cache key.
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

const (
	maxGets = 512 // keys in one call of the host, which answers with one message: 8 MiB for vectors of 4,096 numbers
	maxPuts = 64  // values in one call
)

// CacheGet returns the value of each key; nil where there is none.
func (c *Client) CacheGet(ctx context.Context, keys []sdk.Key) ([][]byte, error) {
	all := make([][]byte, 0, len(keys))
	for some := range slices.Chunk(keys, maxGets) {
		found, err := c.config.Host.CacheGet(ctx, some)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if by := courierOf(ctx); by != nil {
		for i, key := range keys {
			if all[i] != nil && by.Forgets(key) {
				all[i] = nil
			}
		}
	}
	return all, nil
}

// CachePut stores values under keys and skips nil values. If a value cannot be stored, the answer still counts: a
// warning is logged, once.
func (c *Client) CachePut(ctx context.Context, keys []sdk.Key, values [][]byte) {
	var calls errgroup.Group
	calls.SetLimit(maxPuts)
	for i, value := range values {
		if value != nil {
			calls.Go(func() error { return c.config.Host.CachePut(ctx, keys[i], value) })
		}
	}
	if err := calls.Wait(); err != nil && ctx.Err() == nil {
		c.WarnOnce("cache", "answers cannot be cached and will be asked for again", "error", err)
	}
}

// Value encodes v for CachePut as JSON. v holds texts and finite numbers.
func Value(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// together is how many rows of a batch are processed at a time. The engine sends single rows and sets limits; this
// limit is for other callers.
const together = 64

// Rows processes rows in parallel. An error affects only its row: the results then come with sdk.RowErrors. If ctx
// has ended, its error is returned for all.
func Rows[R, T any](ctx context.Context, rows []R, work func(context.Context, R) (T, error)) ([]T, error) {
	results := make([]T, len(rows))
	var failed Failed
	var calls errgroup.Group
	calls.SetLimit(together)
	for i, row := range rows {
		calls.Go(func() error {
			err := ctx.Err()
			if err == nil {
				results[i], err = work(ctx, row)
			}
			if err != nil {
				failed.Add(err, i)
			}
			return nil
		})
	}
	_ = calls.Wait() // errors belong to single rows
	return Results(ctx, results, &failed)
}

// Results returns the results of rows, some of which may have failed. If ctx has ended, its error is returned for
// all.
func Results[T any](ctx context.Context, results []T, failed *Failed) ([]T, error) {
	switch {
	case len(failed.rows) == 0:
		return results, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return results, failed.rows
}

// Failed holds the errors of rows that are processed in parallel. Its zero value is ready.
type Failed struct {
	mu   sync.Mutex
	rows sdk.RowErrors
	over error
}

// Add sets the error of rows.
func (f *Failed) Add(err error, rows ...int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rows == nil {
		f.rows = sdk.RowErrors{}
	}
	for _, row := range rows {
		f.rows[row] = err
	}
	if f.over == nil && Over(err) {
		f.over = err
	}
}

// Over returns an error after which no other row can succeed; nil: there is none.
func (f *Failed) Over() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over
}

// Over reports whether no further call will be permitted after an error: the service is down, or the run must end.
func Over(err error) bool {
	code := sdk.CodeOf(err)
	return err != nil && (code == sdk.CodeUnavailable || code == sdk.CodeStopped)
}

// Documents returns the range of rows of each document: the first row and the one behind the last.
func Documents(passages []sdk.Passage) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		from := 0
		for to := range passages {
			if passages[to].Document != passages[from].Document {
				if !yield(from, to) {
					return
				}
				from = to
			}
		}
		if from < len(passages) {
			yield(from, len(passages))
		}
	}
}
