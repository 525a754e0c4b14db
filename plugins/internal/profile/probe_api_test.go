package profile_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/dialect"

	"github.com/racflow/racflow/plugins/internal/profile"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// target is a model at an address, asked as by chatmodel.
func target(t *testing.T, address string, host sdk.Host) profile.Target {
	return targetOf(t, dialect.OpenAI{}, address, host)
}

func targetOf(t *testing.T, d dialect.Dialect, address string, host sdk.Host) profile.Target {
	t.Helper()
	c := api.New(api.Config{BaseURL: address, Key: d.Header, Host: host, Service: api.Service{Timeout: 10 * time.Second}})
	t.Cleanup(func() { _ = c.Close() })
	return profile.Target{Dialect: d, Model: "some-model", Ask: func(ctx context.Context, r dialect.Request) (reply dialect.Reply, err error) {
		body, err := d.Body(r)
		if err != nil {
			return reply, err
		}
		request := &api.Request{Client: c, Header: http.Header{"User-Agent": {profile.UserAgent}}, Join: dialect.OpenAI{}.Join, Read: func(text []byte) (u sdk.Usage, err error) {
			reply, err = d.Read(text, r)
			return reply.Usage, err
		}}
		return reply, request.Post(ctx, d.Path(r), body, nil)
	}}
}

// good is the profile of a server that accepts everything.
func good() profile.Profile {
	return profile.Profile{
		Temperature: profile.Yes, Stop: profile.Yes, N: profile.Yes, Seed: profile.Yes, Logprobs: profile.Yes,
		Limit: profile.LimitTokens, Structured: profile.StructureSchema, Streaming: profile.No, Thinks: profile.No,
		Usage: profile.Yes, BytesPerToken: 3.94, SchemaCounted: profile.Yes,
	}
}

func TestProbe(t *testing.T) {
	no := func(of ...func(*profile.Profile) *profile.Finding) func(*profile.Profile) {
		return func(p *profile.Profile) {
			for _, f := range of {
				*f(p) = profile.No
			}
		}
	}
	var (
		temperature = func(p *profile.Profile) *profile.Finding { return &p.Temperature }
		stop        = func(p *profile.Profile) *profile.Finding { return &p.Stop }
		n           = func(p *profile.Profile) *profile.Finding { return &p.N }
		seed        = func(p *profile.Profile) *profile.Finding { return &p.Seed }
		logprobs    = func(p *profile.Profile) *profile.Finding { return &p.Logprobs }
	)
	structured := func(s profile.Structure) func(*profile.Profile) {
		return func(p *profile.Profile) { p.Structured = s }
	}
	thinks := func(p *profile.Profile) {
		p.Thinks, p.Thoughts, p.Room = profile.Yes, 100, profile.LeastRoom
		p.Logprobs = "" // of an answer that was not reached
	}
	thinksAloud := func(p *profile.Profile) {
		thinks(p)
		p.Logprobs = profile.Yes
	}
	uncounted := func(p *profile.Profile) {
		p.Usage, p.BytesPerToken = profile.No, 0
	}
	tests := []struct {
		behaviours string
		want       func(*profile.Profile) // changes good
		calls      int
	}{
		{"", func(*profile.Profile) {}, 2},
		{"refuses-temperature", no(temperature), 3},
		{"refuses-namelessly", no(temperature), 3},
		{"refuses-stop", no(stop), 3},
		{"refuses-n", no(n), 3},
		{"refuses-seed", no(seed), 3},
		{"refuses-logprobs", no(logprobs), 3},
		{"refuses-max-tokens", func(p *profile.Profile) { p.Limit = profile.LimitCompletion }, 3},
		{"refuses-max-completion-tokens", func(*profile.Profile) {}, 2},
		// Of fields that are refused one after the other, four calls find three.
		{"refuses-temperature refuses-stop refuses-n refuses-seed refuses-max-tokens refuses-logprobs", func(p *profile.Profile) {
			no(temperature, stop)(p)
			p.N, p.Seed, p.Logprobs, p.Limit, p.BytesPerToken = "", "", "", profile.LimitCompletion, 0
		}, 4},
		{"reasons-like-openai", func(p *profile.Profile) {
			thinks(p)
			no(temperature, n)(p)
			p.Stop, p.Seed, p.Logprobs, p.Limit, p.BytesPerToken = "", "", "", profile.LimitCompletion, 0
		}, 4},
		{"ignores-n", no(n), 2},
		{"refuses-schema", structured(profile.StructureObject), 3},
		{"refuses-schema refuses-object", structured(profile.StructureTool), 4},
		{"refuses-schema refuses-object refuses-tools", structured(profile.StructureText), 4},
		{"ignores-formats", structured(profile.StructureTool), 4},
		{"ignores-formats refuses-tools", structured(profile.StructureText), 4},
		{"refuses-temperature refuses-schema", func(p *profile.Profile) {
			no(temperature)(p)
			structured(profile.StructureObject)(p)
		}, 4},
		{"answers-in-a-fence", no(stop), 2}, // the answers have several lines
		{"answers-in-parts", func(*profile.Profile) {}, 2},
		{"answers-by-tool-call", no(logprobs), 2},
		{"thinks-in-a-field", thinks, 2},
		{"thinks-in-tags", thinksAloud, 2},
		{"thinks-in-other-tags", thinksAloud, 2},
		{"thinks-in-channels", thinksAloud, 2},
		{"thinks-silently", thinks, 2},
		{"stops-in-thoughts", thinksAloud, 2},
		{"streams-only", func(p *profile.Profile) { p.Streaming = profile.Yes }, 3},
		{"streams-only thinks-silently", func(p *profile.Profile) {
			thinks(p)
			p.Streaming, p.Stop = profile.Yes, "" // which is not sent to a model that thinks
		}, 3},
		{"counts-nothing", uncounted, 2},
		{"counts-nonsense", uncounted, 2},
		{"counts-nothing thinks-in-a-field", func(p *profile.Profile) {
			thinks(p)
			uncounted(p)
		}, 2},
	}
	for _, test := range tests {
		t.Run(test.behaviours, func(t *testing.T) {
			server, host := modelserver.Serve(t, modelserver.Named(strings.Fields(test.behaviours)...)), &apitest.Host{}
			got, err := target(t, server.URL, host).Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want := good()
			test.want(&want)
			if want.Structured != profile.StructureSchema || want.BytesPerToken == 0 { // the tokens of calls with a schema and without tell
				want.SchemaCounted = ""
			}
			if got.Probed.IsZero() {
				t.Error("the date is missing")
			}
			got.Probed = time.Time{}
			if got.Thoughts > 90 && got.Thoughts < 130 { // of about 100
				got.Thoughts = 100
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := len(server.Probes()); n != test.calls || n != len(host.Calls()) || server.Calls() != 0 {
				t.Errorf("%d calls, want %d", n, test.calls)
			}
		})
	}
}

// Fields that a provider's requests lack count as refused.
func TestProbeAnthropic(t *testing.T) {
	for behaviours, want := range map[string]profile.Profile{
		"": {
			Temperature: profile.Yes, N: profile.No, Seed: profile.No, Logprobs: profile.No, Limit: profile.LimitTokens, Structured: profile.StructureSchema,
			Streaming: profile.No, Thinks: profile.No, Usage: profile.Yes, BytesPerToken: 3.94, SchemaCounted: profile.Yes,
		},
		"refuses-temperature": {
			Temperature: profile.No, N: profile.No, Seed: profile.No, Logprobs: profile.No, Limit: profile.LimitTokens, Structured: profile.StructureSchema,
			Streaming: profile.No, Thinks: profile.No, Usage: profile.Yes, BytesPerToken: 3.94, SchemaCounted: profile.Yes,
		},
	} {
		server := modelserver.Serve(t, modelserver.Named(strings.Fields(behaviours)...))
		got, err := targetOf(t, dialect.Anthropic{}, server.URL, &apitest.Host{}).Run(t.Context())
		if err != nil {
			t.Errorf("%s: %v", behaviours, err)
		}
		got.Probed = time.Time{}
		if diff := cmp.Diff(want, got); diff != "" || len(server.Probes()) > profile.MaxCalls {
			t.Errorf("%s: %d calls (-want +got):\n%s", behaviours, len(server.Probes()), diff)
		}
	}
}

// If a server does not say what it refuses, fields are left out until it answers.
func TestRefusedWithoutAReason(t *testing.T) {
	none := good()
	none.Temperature, none.N, none.Seed, none.Stop, none.Logprobs = profile.No, profile.No, profile.No, profile.No, profile.No
	plain := none
	none.Limit, none.Structured, none.SchemaCounted = profile.LimitNone, profile.StructureObject, "" // or weaker: that is not known yet
	limited := none
	limited.Limit, limited.Structured, limited.SchemaCounted = profile.LimitTokens, profile.StructureTool, ""
	tests := map[string]struct {
		refused string // with any of these
		want    profile.Profile
	}{
		"temperature":             {`"temperature"`, plain},
		"logprobs":                {`"logprobs"`, plain},
		"all but a limit":         {`"temperature" "stop" "response_format"`, limited},
		"all but the chat itself": {`"temperature" "stop" "response_format" "max_tokens"`, none},
	}
	for name, test := range tests {
		host, server := &apitest.Host{}, modelserver.Serve(t, modelserver.Options{Probes: true, Refuse: func(a modelserver.Ask) bool {
			for _, field := range strings.Fields(test.refused) {
				if strings.Contains(string(a.Body), field) {
					return true
				}
			}
			return false
		}})
		got, err := target(t, server.URL, host).Run(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		tokens := cmpopts.IgnoreFields(profile.Profile{}, "Probed", "BytesPerToken", "CachedUsage")
		if diff := cmp.Diff(test.want, got, tokens); diff != "" || server.Calls() > profile.MaxCalls {
			t.Errorf("%s: %d calls (-want +got):\n%s", name, server.Calls(), diff)
		}
	}
	server := modelserver.Serve(t, modelserver.Options{Probes: true, Refuse: func(modelserver.Ask) bool { return true }})
	if _, err := target(t, server.URL, &apitest.Host{}).Run(t.Context()); !api.BadRequest(err) || server.Calls() > profile.MaxCalls {
		t.Errorf("a server that refuses everything: error %v after %d calls", err, server.Calls())
	}
}

// Texts to continue have no template, and forms of structured answers are not probed.
func TestProbeCompletions(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Named("refuses-seed"))
	to := target(t, server.URL, &apitest.Host{})
	to.Completion = true
	got, err := to.Run(t.Context())
	want := good()
	want.Seed, want.Structured, want.BytesPerToken, want.SchemaCounted = profile.No, "", 3.99, ""
	got.Probed = time.Time{}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(server.Probes()) != 2 {
		t.Errorf("error %v after %d calls (-want +got):\n%s", err, len(server.Probes()), diff)
	}
}

// A probe asks for as many choices as the stage will. If a server gives fewer, it finds out how many. It still finds
// the tokens of texts.
func TestProbeChoices(t *testing.T) {
	cut := modelserver.Fault{Kind: modelserver.Fewer, If: func(a modelserver.Ask) bool { return a.N > 4 }}
	for _, test := range []struct {
		asks, slots int // 0 slots: any
		server      modelserver.Options
		n           profile.Finding
		choices     int
	}{
		{asks: 6, n: profile.Yes},
		{asks: 1, slots: 4, n: profile.Yes},
		{asks: 6, slots: 4, n: profile.Yes, choices: 4},
		{asks: 6, slots: 3, n: profile.Yes, choices: 2},
		{asks: 6, slots: 2, n: profile.Yes, choices: 2},
		{asks: 6, slots: 1, n: profile.No},
		{asks: 16, slots: 4, n: profile.Yes, choices: 4},
		{asks: 128, slots: 4, choices: 16}, // four calls are too few
		{asks: 6, server: modelserver.Options{IgnoreN: true}, n: profile.No},
		{asks: 5, server: modelserver.Options{Probes: true, Faults: []modelserver.Fault{cut}}, n: profile.Yes, choices: 4},
		{asks: 6, slots: 4, server: modelserver.Named("refuses-temperature"), n: profile.Yes, choices: 4},
	} {
		test.server.MaxN = test.slots
		server, host := modelserver.Serve(t, test.server), &apitest.Host{}
		to := target(t, server.URL, host)
		to.Choices = test.asks
		got, err := to.Run(t.Context())
		if err != nil || got.N != test.n || got.Choices != test.choices || len(host.Calls()) > profile.MaxCalls {
			t.Errorf("%d of %d: n %q, choices %d, %d calls, error %v", test.asks, test.slots, got.N, got.Choices, len(host.Calls()), err)
		}
		if test.slots != 1 && test.slots != 4 && got.BytesPerToken != 3.94 {
			t.Errorf("%d of %d: %v bytes per token", test.asks, test.slots, got.BytesPerToken)
		}
	}
}
