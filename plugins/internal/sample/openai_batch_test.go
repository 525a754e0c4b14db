package sample

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// outcomes asks about items until nothing is pending, and returns each result.
func outcomes(t *testing.T, url string, host sdk.Host, dir, arguments string, items []sdk.Item) (all []string, rounds int) {
	t.Helper()
	setup := sdk.Setup{Samples: 3, Host: host, StateDir: dir, Log: slog.New(slog.DiscardHandler)}
	opened, err := OpenAI().Open(t.Context(), setup, fmt.Appendf(nil, `{"base_url": %q, "model": "tiny"%s}`, url, arguments))
	must.Do(t, err)
	v := opened.(*openAIVoter)
	defer v.Close() //nolint:errcheck // its connections are idle
	samples, err := v.Sample(t.Context(), sdk.Batch{Items: items})
	for later := new(sdk.Pending); errors.As(err, &later) && rounds < 50; rounds++ {
		samples, err = v.CollectSamples(t.Context(), later.Handle, sdk.Batch{Items: items})
	}
	var rows sdk.RowErrors
	if err != nil && !errors.As(err, &rows) {
		t.Fatal(err)
	}
	for i := range items {
		switch {
		case rows[i] != nil:
			all = append(all, fmt.Sprintf("%d: %v", sdk.CodeOf(rows[i]), rows[i]))
		default:
			all = append(all, strings.Join(labels(samples[i]), " "))
		}
	}
	return all, rounds
}

// given returns how many choices questions got, sorted: which question a server fails on is random.
func given(s *modelserver.Server) []int { return slices.Sorted(maps.Values(s.Given())) }

// TestBatchesGiveTheSame asks servers of all kinds in batches and by single calls. The answers are the same, are
// cached under the same keys, and no question is answered twice. This holds even if something is found out about the
// model while replies are read.
func TestBatchesGiveTheSame(t *testing.T) {
	must.NoRace(t)
	tests := []struct {
		behaviours string
		api        string
		batches    int // at most
	}{
		{"", "", 1},
		{"refuses-temperature", "", 1},
		{"refuses-stop", "", 1},
		{"refuses-namelessly", "", 1},
		{"refuses-max-tokens", "", 1},
		{"refuses-seed", "", 1},
		{"refuses-logprobs", "", 1},
		{"refuses-schema", "", 1},
		{"refuses-n", "", 2},
		{"ignores-n", "", 2},
		{"thinks-in-tags", "", 1},
		{"thinks-in-a-field", "", 1},
		{"thinks-silently", "", 1},
		{"stops-in-thoughts", "", 1},
		{"reasons-like-openai", "", 3},
		{"fails-at-first", "", 2},
		{"breaks-off", "", 2},
		{"sends-broken-json", "", 2},
		{"filters-prompts", "", 1},
		{"limits-prompts", "", 1},
		{"", "anthropic", 1},
		{"fails-at-first", "anthropic", 2},
	}
	items := []sdk.Item{texts("one"), texts("two"), texts("one"), texts("a " + modelserver.Harmful + " one"), texts("an " + modelserver.Endless + " one")}
	for i := range 20 {
		items = append(items, texts(fmt.Sprint("text ", i)))
	}
	for _, test := range tests {
		t.Run(test.behaviours+test.api, func(t *testing.T) {
			arguments := `, "seed": 7, "logprobs": true, "structured": "json_schema"`
			if test.api != "" {
				arguments = fmt.Sprintf(`, "api": %q`, test.api)
			}
			o := modelserver.Named(strings.Fields(test.behaviours)...)
			o.Answer = func(a modelserver.Ask, _ int) string { return fmt.Sprintf("label-%x", a.Text()) }
			single, batched := modelserver.Serve(t, o), modelserver.Serve(t, o)
			first, second := &apitest.Host{}, &apitest.Host{Probes: true}
			want, _ := outcomes(t, single.URL, first, "", arguments, items)
			for range 3 { // the engine repeats failures that may pass
				want, _ = outcomes(t, single.URL, first, "", arguments, items)
			}
			dir := t.TempDir()
			got, _ := outcomes(t, batched.URL, second, dir, arguments+`, "batch": true`, items)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("outcomes (-single +batched):\n%s", d)
			}
			if batched.Batches() > test.batches {
				t.Errorf("%d batches, want %d at most", batched.Batches(), test.batches)
			}
			for _, a := range batched.Asks() {
				if a.Batch == "" {
					t.Fatalf("it was asked alone: %s", a.Body)
				}
			}
			if d := cmp.Diff(given(single), given(batched)); d != "" {
				t.Errorf("choices that were given (-single +batched):\n%s", d)
			}
			// The addresses of the servers are part of the keys, so the next stage shows whether these
			// are the same.
			again, rounds := outcomes(t, batched.URL, second, dir, arguments, items)
			if d := cmp.Diff(got, again); d != "" || rounds > 0 {
				t.Errorf("by single calls afterwards, %d rounds (-batched +single):\n%s", rounds, d)
			}
			alone := slices.DeleteFunc(batched.Asks(), func(a modelserver.Ask) bool { return a.Batch != "" })
			if len(alone) > 1 || len(alone) == 1 && !strings.HasPrefix(test.behaviours, "filters") && !strings.HasPrefix(test.behaviours, "limits") {
				t.Errorf("%d were asked again", len(alone))
			}
			if len(slices.Collect(maps.Keys(second.Cached()))) == 0 {
				t.Error("nothing is cached")
			}
		})
	}
}
