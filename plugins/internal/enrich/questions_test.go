package enrich

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/apitest"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

func TestQuestions(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{Answer: func(a modelserver.Ask, _ int) string {
		if strings.Contains(a.Text(), "<chunk 1>") {
			return `{"1": ["How is a lost card blocked?", "Who blocks it?"], "2": ["What does it cost, and when?"]}`
		}
		return "Here you are:\n1. How is a lost card blocked?\n2. Who blocks it, and when?\n3. Who blocks it, and when?"
	}})
	d := &sdk.Document{ID: "d", Text: "A lost card is blocked.\nIt is free."}
	passages := []sdk.Passage{{Document: d, Chunk: sdk.Chunk{End: 23}}, {Document: d, Chunk: sdk.Chunk{Start: 24, End: len(d.Text)}}}
	for arguments, want := range map[string][]sdk.Addition{
		"": {
			{Terms: []string{"How is a lost card blocked?", "Who blocks it, and when?"}},
			{Terms: []string{"How is a lost card blocked?", "Who blocks it, and when?"}},
		},
		`, "pack": 2, "n": 1`: {{Terms: []string{"How is a lost card blocked?"}}, {Terms: []string{"What does it cost, and when?"}}},
	} {
		config := fmt.Sprintf(`{"base_url": %q, "model": "tiny"%s}`, server.URL, arguments)
		stage, err := Questions().Open(t.Context(), sdk.Setup{Host: &apitest.Host{}}, []byte(config))
		if err != nil {
			t.Fatal(err)
		}
		got, err := stage.(sdk.Enricher).Enrich(t.Context(), passages)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("error %v (-want +got):\n%s", err, diff)
		}
	}
	for _, a := range server.Asks() {
		if text := a.Text(); !strings.Contains(text, "questions") || strings.Contains(text, "<title>") {
			t.Errorf("asked %s", text)
		}
	}
}

func TestQuestionsConformance(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{Answer: func(modelserver.Ask, int) string { return "Is it free?" }})
	sdktest.Stage(t, Questions(), fmt.Sprintf(`{"base_url": %q, "model": "tiny"}`, server.URL))
}

func TestQuestionsGolden(t *testing.T) { apitest.Asking(t, Questions(), "1 2a90a0f5f06225ba") }
