package governor

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/cache"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestModes(t *testing.T) {
	dir := t.TempDir()
	control := func(mode Mode) *Governor {
		kept := must.Get(cache.Open(dir, slog.New(slog.DiscardHandler)))(t)
		t.Cleanup(func() {
			if err := kept.Close(); err != nil {
				t.Error(err)
			}
		})
		c, _ := newControl(Options{Cache: kept, Mode: mode})
		return c
	}
	key := sdk.KeyOf("what", "is", "asked")
	recall := func(h sdk.Host, want string) {
		t.Helper()
		values, err := h.CacheGet(t.Context(), []sdk.Key{sdk.KeyOf("else"), key})
		if err != nil || len(values) != 2 || values[0] != nil || (values[1] != nil) != (want != "-") || values[1] != nil && string(values[1]) != want {
			t.Errorf("recalled %q, %v, want %q", values, err, want)
		}
	}
	keep := func(h sdk.Host, value string) {
		t.Helper()
		if err := h.CachePut(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	openai := Stage{Name: "sample.llm", Kind: sdk.KindSample, Use: "openai"}

	c, beside := control(Normal), control(Normal)
	h := c.Stage(openai)
	recall(h, "-")
	keep(h, "1")
	recall(h, "1")
	keep(beside.Stage(openai), "of a run that asked at the same time")
	recall(beside.Stage(openai), "1")
	recall(c.Stage(Stage{Name: "sample.other", Kind: sdk.KindSample, Use: "openai"}), "1")
	recall(c.Stage(Stage{Name: "sample.third", Kind: sdk.KindSample, Use: "acme/openai"}), "-")
	recall(c.Stage(Stage{Name: "embed.k", Kind: sdk.KindEmbed, Use: "openai"}), "-")
	must.Equal(t, "counts", Counts{CacheHits: 2, CachePuts: 1}, c.Snapshot().Total)

	refresh := control(Refresh).Stage(openai)
	recall(refresh, "-")
	keep(refresh, "2")
	recall(refresh, "2")

	offline := control(Offline).Stage(openai)
	recall(offline, "2")
	_, err := offline.Acquire(t.Context(), sdk.Call{Endpoint: "api"})
	if sdk.CodeOf(err) != sdk.CodeUnavailable || !strings.Contains(err.Error(), "not in the cache and the run is offline") {
		t.Errorf("a call of a run that is offline: %v", err)
	}
	enricher := control(Offline).Stage(Stage{Name: "enrich.k", Kind: sdk.KindEnrich, Use: "context"})
	if _, err := enricher.Acquire(t.Context(), sdk.Call{Endpoint: "api"}); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("a passage of a build that is offline: %v", err)
	}

	nothing, _ := newControl(Options{})
	h = nothing.Stage(openai)
	keep(h, "3")
	recall(h, "-")
	if s, err := cache.ReadStats(dir); err != nil || len(s.About) != 1 || s.About[0].About != "sample.openai" {
		t.Errorf("in the cache: %+v, %v", s, err)
	}
}

func TestCounts(t *testing.T) {
	c, _ := newControl(Options{})
	price := &pipeline.Price{Input: 3, Cached: 1, Output: 10}
	for _, call := range []struct {
		stage   Stage
		outcome sdk.Result
	}{
		{Stage{Name: "sample.b", Price: price}, sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: 1000, CachedTokens: 600, OutputTokens: 50}}},
		{Stage{Name: "sample.b", Price: price}, sdk.Result{Status: sdk.StatusBusy, RetryAfter: time.Nanosecond}},
		{Stage{Name: "embed.a"}, sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: 7}}},
		{Stage{Name: "embed.a", Price: price}, sdk.Result{Status: sdk.StatusDown}},
	} {
		release := must.Get(c.Stage(call.stage).Acquire(t.Context(), sdk.Call{Endpoint: "api"}))(t)
		release(call.outcome)
	}
	const cost = (400*3 + 600*1 + 50*10) / 1e6
	want := Snapshot{
		Stages: []StageCounts{
			{"embed.a", Counts{Calls: 2, Failed: 1, InputTokens: 7}},
			{"sample.b", Counts{Calls: 2, Failed: 1, InputTokens: 1000, CachedTokens: 600, OutputTokens: 50, Cost: cost}},
		},
		Total: Counts{Calls: 4, Failed: 2, InputTokens: 1007, CachedTokens: 600, OutputTokens: 50, Cost: cost},
	}
	must.Equal(t, "counts", want, c.Snapshot())
	before := c.Snapshot()
	release := must.Get(c.Stage(Stage{Name: "embed.a"}).Acquire(t.Context(), sdk.Call{Endpoint: "api"}))(t)
	release(sdk.Result{Status: sdk.StatusOK, Usage: sdk.Usage{InputTokens: 5, OutputTokens: 1}})
	want = Snapshot{
		Stages: []StageCounts{{"embed.a", Counts{Calls: 1, InputTokens: 5, OutputTokens: 1}}, {"sample.b", Counts{}}},
		Total:  Counts{Calls: 1, InputTokens: 5, OutputTokens: 1},
	}
	must.Equal(t, "since then", want, c.Snapshot().Since(before))
	must.Equal(t, "a snapshot has changed", before.Stages[0].Counts, Counts{Calls: 2, Failed: 1, InputTokens: 7})
}
