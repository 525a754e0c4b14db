package keywords

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// TestForecast compares what is said of passages with what the server then counts, alone and
// several in a request.
func TestForecast(t *testing.T) {
	for arguments, requests := range map[string]int{``: 5, `, "pack": 3`: 2} {
		t.Run(arguments, func(t *testing.T) {
			f := opened(t, modelserver.Options{}, arguments)
			if err := f.host.KeepProfile(t.Context(), f.server.URL, "tiny", json.RawMessage(`{"thinking": "no"}`)); err != nil {
				t.Fatal(err)
			}
			d := &sdk.Document{ID: "guide"}
			var passages []sdk.Passage
			for i := range 6 {
				text := fmt.Sprintf("word%d %s\n", i%5, strings.Repeat("says what follows. ", 60)) // the last is the first again
				passages = append(passages, sdk.Passage{Document: d, Chunk: sdk.Chunk{Start: len(d.Text), End: len(d.Text) + len(text)}})
				d.Text += text
			}
			forecast := f.Enricher.(sdk.EnrichForecaster).ForecastPassages
			said, err := forecast(passages)
			if err != nil || f.server.Calls() > 0 || said.Requests != requests || said.Answers != 5 || said.Unknown != "" {
				t.Fatalf("%+v, error %v, %d calls", said, err, f.server.Calls())
			}
			if _, err := f.Enrich(t.Context(), passages); err != nil || f.server.Calls() != requests {
				t.Fatalf("%d calls, error %v", f.server.Calls(), err)
			}
			took := f.host.Spent(t)
			if in := said.Likely.InputTokens; 4*in < 3*took.InputTokens || 4*in > 5*took.InputTokens || took.InputTokens > said.Most.InputTokens || took.OutputTokens > said.Most.OutputTokens {
				t.Errorf("%+v; took %+v", said, took)
			}
			if again, err := forecast(passages); err != nil || again != (sdk.Forecast{Cached: 5}) {
				t.Errorf("%+v is said of what is cached, error %v", again, err)
			}
		})
	}
}
