package context

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// TestForecast compares what is said of passages with what the server then counts.
func TestForecast(t *testing.T) {
	f := opened(t, modelserver.Options{Answer: func(modelserver.Ask, int) string { return strings.Repeat("It is about that. ", 15) }}, "")
	if err := f.host.KeepProfile(t.Context(), f.Address(), "tiny", json.RawMessage(`{"thinking": "no"}`)); err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("A lost card is blocked, and a new one comes by mail. ", 20)
	passages := slices.Concat(document("guide", line+"1", line+"2", line+"3", " "), document("news", "We moved.", line))
	said, err := f.ForecastPassages(passages)
	if err != nil || f.server.Calls() > 0 || said.Requests != 5 || said.Answers != 5 || said.MostRequests != 5 || said.Unknown != "" {
		t.Fatalf("%+v, error %v, %d calls", said, err, f.server.Calls())
	}
	if _, err := f.Enrich(t.Context(), passages); err != nil || f.server.Calls() != said.Requests {
		t.Fatalf("%d calls, error %v", f.server.Calls(), err)
	}
	took := f.host.Spent(t)
	off := float64(said.Likely.InputTokens+said.Likely.OutputTokens)/float64(took.InputTokens+took.OutputTokens) - 1
	if math.Abs(off) > 0.25 || took.InputTokens > said.Most.InputTokens || took.OutputTokens > said.Most.OutputTokens {
		t.Errorf("%+v, %.2f off; took %+v", said, off, took)
	}
	if again, err := f.ForecastPassages(passages); err != nil || again != (sdk.Forecast{Cached: 5}) {
		t.Errorf("%+v is said of what is cached, error %v", again, err)
	}
}
