// Package library holds the dialect anthropic, and the scripted server of the tests, against
// Anthropic's own Go library, which is too large to be part of racflow: what the dialect sends
// the library knows, and what the server sends the library reads.
package library

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

var schema = json.RawMessage(`{"type": "object", "properties": {"label": {"type": "string", "enum": ["a", "b"]}}, "required": ["label"], "additionalProperties": false}`)

var half = .5

var requests = map[string]dialect.Request{
	"a chat": {
		Model: "m", MaxTokens: 9, Temperature: &half, TopP: &half, Stop: []string{"END"}, CacheMarks: true,
		Messages: []sdk.Message{{Role: "system", Text: "s", Shared: true}, {Role: "user", Text: "q"}, {Role: "assistant", Text: "a", Shared: true}, {Role: "user", Text: "r"}},
	},
	"a schema":    {Model: "m", Messages: []sdk.Message{{Role: "user", Text: "q"}}, Schema: schema},
	"a tool":      {Model: "m", Messages: []sdk.Message{{Role: "user", Text: "q"}}, Schema: schema, Form: dialect.FormTool},
	"a budget":    {Model: "m", Messages: []sdk.Message{{Role: "user", Text: "q"}}, Schema: schema, Form: dialect.FormTool, Effort: "2000"},
	"an effort":   {Model: "m", Messages: []sdk.Message{{Role: "user", Text: "q"}}, Schema: schema, Effort: "low"},
	"no thoughts": {Model: "m", Messages: []sdk.Message{{Role: "user", Text: "q"}}, Effort: "none"},
}

// Every field of a body is one of the library's: none is lost on the way through its types.
func TestBody(t *testing.T) {
	for name, r := range requests {
		body, err := dialect.Anthropic{}.Body(r)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		var read anthropic.MessageNewParams
		if err := json.Unmarshal(sent, &read); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := json.Marshal(read)
		var want, got any
		if err != nil || json.Unmarshal(sent, &want) != nil || json.Unmarshal(again, &got) != nil {
			t.Fatalf("%s: %s, %v", name, again, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-sent +through the library):\n%s", name, diff)
		}
	}
}

func client(t *testing.T, o modelserver.Options) anthropic.Client {
	o.Key = "k"
	s := modelserver.Serve(t, o)
	return anthropic.NewClient(option.WithBaseURL(s.URL[:len(s.URL)-len("/v1")]), option.WithAPIKey("k"), option.WithMaxRetries(0))
}

// params are those of a request, as the library reads them.
func params(t *testing.T, r dialect.Request) anthropic.MessageNewParams {
	t.Helper()
	body, err := dialect.Anthropic{}.Body(r)
	if err != nil {
		t.Fatal(err)
	}
	sent, _ := json.Marshal(body)
	var p anthropic.MessageNewParams
	if err := json.Unmarshal(sent, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// What the scripted server sends, the library and the dialect read alike.
func TestServer(t *testing.T) {
	for name, r := range requests {
		c := client(t, modelserver.Options{})
		whole, err := c.Messages.New(t.Context(), params(t, r))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		read, err := dialect.Anthropic{}.Read([]byte(whole.RawJSON()), r)
		if err != nil || len(read.Choices) != 1 {
			t.Fatalf("%s: %+v, %v", name, read, err)
		}
		text, thoughts := "", ""
		for _, block := range whole.Content {
			text += block.Text
			thoughts += block.Thinking
			if block.Type == "tool_use" {
				text += string(block.Input)
			}
		}
		got, u := read.Choices[0], whole.Usage
		text, got.Text = strings.ReplaceAll(text, " ", ""), strings.ReplaceAll(got.Text, " ", "") // spaces of JSON
		if text != got.Text || text == "" || thoughts != got.Thoughts || (thoughts != "") != (r.Effort != "" && r.Effort != "none") {
			t.Errorf("%s: %q after %q, want %+v", name, text, thoughts, got)
		}
		if in := u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens; uint64(in) != read.Usage.InputTokens || uint64(u.OutputTokens) != read.Usage.OutputTokens {
			t.Errorf("%s: usage %s, want %+v", name, u.RawJSON(), read.Usage)
		}
		if whole.StopReason != anthropic.StopReasonEndTurn && whole.StopReason != anthropic.StopReasonToolUse {
			t.Errorf("%s: it stopped for %q", name, whole.StopReason)
		}
	}
}

func TestErrors(t *testing.T) {
	c := client(t, modelserver.Options{Faults: []modelserver.Fault{{Kind: modelserver.Status, Status: 529, First: 1}}})
	_, err := c.Messages.New(t.Context(), params(t, requests["a chat"]))
	if e := new(anthropic.Error); !errors.As(err, &e) || e.StatusCode != 529 || e.Type() != "overloaded_error" {
		t.Errorf("error %v", err)
	}
}

func TestBatches(t *testing.T) {
	refuses := func(a modelserver.Ask) bool { return a.Text() == "r" }
	c := client(t, modelserver.Options{Refuse: refuses, Batches: modelserver.Batches{Polls: 1}})
	chat := params(t, requests["a budget"])
	batch, err := c.Messages.Batches.New(t.Context(), anthropic.MessageBatchNewParams{Requests: []anthropic.MessageBatchNewParamsRequest{
		{CustomID: "x-1", Params: anthropic.MessageBatchNewParamsRequestParams{Model: chat.Model, MaxTokens: chat.MaxTokens, Messages: chat.Messages}},
		{CustomID: "x-2", Params: anthropic.MessageBatchNewParamsRequestParams{Model: chat.Model, MaxTokens: chat.MaxTokens, Messages: []anthropic.MessageParam{
			anthropic.NewUserMessage(anthropic.NewTextBlock("r")),
		}}},
	}})
	if err != nil || batch.RequestCounts.Processing != 2 || batch.ProcessingStatus != anthropic.MessageBatchProcessingStatusInProgress {
		t.Fatalf("%+v, %v", batch, err)
	}
	for range 2 {
		if batch, err = c.Messages.Batches.Get(t.Context(), batch.ID, anthropic.MessageBatchGetParams{}); err != nil {
			t.Fatal(err)
		}
	}
	if batch.ProcessingStatus != anthropic.MessageBatchProcessingStatusEnded || batch.RequestCounts.Succeeded != 1 || batch.RequestCounts.Errored != 1 || !batch.ExpiresAt.After(batch.CreatedAt) {
		t.Errorf("%s", batch.RawJSON())
	}
	page, err := c.Messages.Batches.List(t.Context(), anthropic.MessageBatchListParams{})
	if err != nil || len(page.Data) != 1 || page.Data[0].ID != batch.ID {
		t.Errorf("%+v, %v", page, err)
	}
	results := c.Messages.Batches.ResultsStreaming(t.Context(), batch.ID, anthropic.MessageBatchResultsParams{})
	got := map[string]string{}
	for results.Next() {
		one := results.Current()
		got[one.CustomID] = one.Result.Type + one.Result.Message.ID + one.Result.Error.Error.Type
	}
	if diff := cmp.Diff(map[string]string{"x-1": "succeededmsg_1", "x-2": "erroredinvalid_request_error"}, got); diff != "" || results.Err() != nil {
		t.Errorf("results %v (-want +got)\n%s", results.Err(), diff)
	}
}
