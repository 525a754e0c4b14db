package profile_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// keeper returns the keeper of a model; ask replaces the calls of its probes.
func keeper(t *testing.T, host sdk.Host, ask profile.Ask, change ...func(*profile.Config)) *profile.Keeper {
	c := profile.Config{
		Target:  profile.Target{Dialect: dialect.OpenAI{}, Model: "some-model", Ask: ask},
		Address: "http://127.0.0.1:1/v1", Host: host, Probe: true,
		Warn: func(topic, message string, args ...any) { t.Log(topic, message, args) },
	}
	for _, f := range change {
		f(&c)
	}
	return profile.NewKeeper(c)
}

// reasoner answers like a model that refuses temperature and thinks.
func reasoner(t *testing.T) profile.Ask {
	return target(t, modelserver.Serve(t, modelserver.Named("refuses-temperature", "thinks-in-a-field")).URL, &apitest.Host{Probes: true}).Ask
}

// Concurrent callers wait for the same probe, and the next process makes none.
func TestOneProbeForAll(t *testing.T) {
	host, calls, ask := &apitest.Host{Probes: true}, atomic.Int32{}, reasoner(t)
	counted := func(ctx context.Context, r dialect.Request) (dialect.Reply, error) {
		calls.Add(1)
		return ask(ctx, r)
	}
	k := keeper(t, host, counted)
	if p, known, err := k.Kept(t.Context()); known || err != nil || p.Thinks != "" || calls.Load() != 0 {
		t.Errorf("before: known %t, %+v, error %v, %d calls", known, p, err, calls.Load())
	}
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			if p, err := k.Get(t.Context()); err != nil || p.Thinks != profile.Yes || p.Temperature != profile.No {
				t.Errorf("%+v, error %v", p, err)
			}
		})
	}
	all.Wait()
	k.Close()
	if n := calls.Load(); n == 0 || n > profile.MaxCalls {
		t.Errorf("%d calls", n)
	}
	calls.Store(0)
	next := keeper(t, host, counted)
	if p, err := next.Get(t.Context()); err != nil || p.Thinks != profile.Yes || calls.Load() != 0 {
		t.Errorf("the next process: %+v, error %v, %d calls", p, err, calls.Load())
	}
	if raw, err := next.Probe(t.Context()); err != nil || calls.Load() == 0 || !strings.Contains(string(raw), `"thinking":"yes"`) {
		t.Errorf("probed anew: %s, error %v, %d calls", raw, err, calls.Load())
	}
}

// If a probe fails because the service is down, its error is the call's error, and the next call probes again.
// Otherwise the call itself shows the reason.
func TestProbeFails(t *testing.T) {
	calls, failure := 0, sdk.Transient(errors.New("down"), 0)
	k := keeper(t, &apitest.Host{Probes: true}, func(context.Context, dialect.Request) (dialect.Reply, error) {
		calls++
		return dialect.Reply{}, failure
	})
	for want := range 2 {
		if _, err := k.Get(t.Context()); sdk.CodeOf(err) != sdk.CodeTransient || calls != want+1 {
			t.Errorf("error %v, %d calls", err, calls)
		}
	}
	failure = sdk.Invalid(errors.New("denied"))
	for range 2 {
		if p, err := k.Get(t.Context()); err != nil || !reflect.DeepEqual(p, profile.Profile{}) || calls != 3 {
			t.Errorf("%+v, error %v, %d calls", p, err, calls)
		}
	}
	if _, err := k.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "denied") {
		t.Errorf("error %v", err)
	}
}

// A probe ends with the call that began it; the next waiting call probes again.
func TestCallerLeaves(t *testing.T) {
	ask, calls, waits := reasoner(t), atomic.Int32{}, make(chan bool)
	k := keeper(t, &apitest.Host{Probes: true}, func(ctx context.Context, r dialect.Request) (dialect.Reply, error) {
		if calls.Add(1) == 1 {
			waits <- true
			<-ctx.Done()
			return dialect.Reply{}, ctx.Err()
		}
		return ask(ctx, r)
	})
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := k.Get(ctx)
		left <- err
	}()
	<-waits
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if p, err := k.Get(t.Context()); err != nil || p.Thinks != profile.Yes {
		t.Errorf("%+v, error %v", p, err)
	}
}

// The file overrides what was found, and a person's changes in the stored profile count.
func TestGiven(t *testing.T) {
	host, ask := &apitest.Host{Probes: true}, reasoner(t)
	given := func(c *profile.Config) {
		c.Given = profile.Given{Temperature: new(true), Thinks: new(false), Structured: "tool", Room: new(100), BytesPerToken: new(2.5), TemplateTokens: new(0), Effort: "high"}
	}
	k := keeper(t, host, ask, given)
	p := must.Get(k.Get(t.Context()))(t)
	must.Equal(t, "temperature, thinks, structured, room, bytes per token, tokens of the template, seed", []any{profile.Yes, profile.No, profile.StructureTool, 100, 2.5, 0, profile.Yes},
		[]any{p.Temperature, p.Thinks, p.Structured, p.Room, p.BytesPerToken, p.TemplateTokens, p.Seed})
	k.Close()
	raw, err := host.Profile(t.Context(), k.Endpoint(), "some-model")
	if err != nil || !strings.Contains(string(raw), `"temperature":"no"`) {
		t.Errorf("what is given was kept as found: %s, error %v", raw, err)
	}
	edited := strings.Replace(string(raw), `"seed":"yes"`, `"seed":"no"`, 1)
	if err := host.KeepProfile(t.Context(), k.Endpoint(), "some-model", json.RawMessage(edited)); err != nil {
		t.Fatal(err)
	}
	if p, err := keeper(t, host, nil).Get(t.Context()); err != nil || p.Seed != profile.No || p.Temperature != profile.No {
		t.Errorf("edited: %+v, error %v", p, err)
	}
	wrong := strings.Replace(edited, `"seed":"no"`, `"seed":"maybe"`, 1)
	if err := host.KeepProfile(t.Context(), k.Endpoint(), "some-model", json.RawMessage(wrong)); err != nil {
		t.Fatal(err)
	}
	if _, err := keeper(t, host, nil).Get(t.Context()); sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), `"maybe" is none of`) {
		t.Errorf("error %v", err)
	}
}

func TestNoProbe(t *testing.T) {
	k := keeper(t, &apitest.Host{Probes: true}, nil, func(c *profile.Config) { c.Probe, c.Completion = false, true })
	if p, err := k.Get(t.Context()); err != nil || !reflect.DeepEqual(p, profile.Profile{}) {
		t.Errorf("%+v, error %v", p, err)
	}
	if k.Endpoint() != "http://127.0.0.1:1/v1/completions" || k.Name() != "some-model" {
		t.Errorf("kept as %s of %s", k.Name(), k.Endpoint())
	}
	if raw, err := k.Profile(t.Context()); raw != nil || err != nil {
		t.Errorf("profile %s, error %v", raw, err)
	}
}

// Two stages with the same model store what each has seen, and a probe clears it.
func TestStagesShareWhatTheySaw(t *testing.T) {
	host := &apitest.Host{}
	saw := func(about string, n int) *profile.Keeper {
		k := keeper(t, host, reasoner(t))
		for range n {
			k.Saw(t.Context(), dialect.Request{Prompt: "text", About: about}, dialect.Reply{
				Choices: []dialect.Choice{{Text: "label"}}, Usage: sdk.Usage{InputTokens: 9, OutputTokens: 3},
			})
		}
		return k
	}
	first, second := saw("one", 17), saw("two", 19)
	second.Close()
	first.Close()
	k := keeper(t, host, reasoner(t))
	if p, _, err := k.Kept(t.Context()); err != nil || p.Asked["one"].Requests != 17 || p.Asked["two"].Requests != 19 {
		t.Errorf("%+v, error %v", p.Asked, err)
	}
	if _, err := k.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, _, err := keeper(t, host, nil).Kept(t.Context()); err != nil || p.Asked != nil || p.Thinks != profile.Yes {
		t.Errorf("after a probe: %+v, error %v", p, err)
	}
}

// Statistics of real requests to another model do not count for the model that is served now.
func TestServesAnother(t *testing.T) {
	host := &apitest.Host{}
	k := keeper(t, host, nil, func(c *profile.Config) { c.Probe = false })
	must.Do(t, host.KeepProfile(t.Context(), k.Endpoint(), k.Name(), json.RawMessage(`{"served": {"model": "a"}, "thinking": "yes", "asked": {"before": {"requests": 5, "answers": 5}}}`)))
	k.Serves(t.Context(), profile.Served{Model: "b", Context: 99})
	k.Saw(t.Context(), dialect.Request{Prompt: "p", About: "now"}, dialect.Reply{Choices: []dialect.Choice{{Text: "yes"}}})
	k.Close()
	raw := string(must.Get(host.Profile(t.Context(), k.Endpoint(), k.Name()))(t))
	if !strings.Contains(raw, `"served":{"model":"b","context":99}`) || !strings.Contains(raw, `"now"`) || strings.Contains(raw, "before") || strings.Contains(raw, `"thinking":"yes"`) {
		t.Error(raw)
	}
}

// A server that reads only a part of a prompt is reported.
func TestCutPrompts(t *testing.T) {
	for read, want := range map[uint64]string{4000: "", 1000: "cut"} {
		warned := ""
		k := keeper(t, &apitest.Host{}, nil, func(c *profile.Config) { c.Warn = func(topic, _ string, _ ...any) { warned = topic } })
		k.Saw(t.Context(), dialect.Request{Prompt: strings.Repeat("word ", 4000)}, dialect.Reply{Choices: []dialect.Choice{{Text: "yes"}}, Usage: sdk.Usage{InputTokens: read}})
		if warned != want {
			t.Errorf("%d tokens read: warned of %q, want %q", read, warned, want)
		}
	}
}
