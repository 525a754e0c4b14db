package serve

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	protocol "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

var quiet = slog.New(slog.DiscardHandler)

func pipelines() []Pipeline {
	return []Pipeline{
		&fakePipeline{Label: "intent", State: live.Status{Answers: journal.LabelAnswers, Labels: []string{"card_lost", "refund"}}, To: func(_ context.Context, i workspace.Item) (workspace.Result, error) {
			if i.Text == "fails" {
				return workspace.Result{Error: &result.Failure{Stage: "sample.llm", Message: "it was refused"}}, nil
			}
			return workspace.Result{Answer: "refund", Text: i.Text, Verdict: result.Verdict{Flagged: true}, Votes: []result.Vote{}}, nil
		}},
		&fakePipeline{Label: "docs", State: live.Status{Answers: journal.TextAnswers}, To: func(context.Context, workspace.Item) (workspace.Result, error) {
			return workspace.Result{Answer: "It opens at nine [1].", Citations: []result.Citation{{Number: 1, ID: "x", Path: "hours.md"}}}, nil
		}},
		&fakePipeline{Label: "find", State: live.Status{Answers: journal.PassageAnswers}, To: func(context.Context, workspace.Item) (workspace.Result, error) {
			return workspace.Result{Candidates: []workspace.Candidate{{ID: "a", Label: "l", Text: "first"}}}, nil
		}},
		&fakePipeline{Label: "unready", To: func(context.Context, workspace.Item) (workspace.Result, error) {
			return workspace.Result{}, live.ErrStarting
		}},
	}
}

// clients returns clients connected to the pipelines in both ways.
func clients(t *testing.T, heard func(string)) map[string]*protocol.ClientSession {
	s, err := New(pipelines, Options{})
	if err != nil {
		t.Fatal(err)
	}
	MountMCP(s, quiet)
	server := httptest.NewServer(s.guard)
	t.Cleanup(server.Close)
	here, there := protocol.NewInMemoryTransports()
	f := mcpFace{pipelines, time.Minute, quiet}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- f.server().Run(ctx, there) }()
	all := map[string]*protocol.ClientSession{}
	for name, transport := range map[string]protocol.Transport{"a pipe": here, "HTTP": &protocol.StreamableClientTransport{Endpoint: server.URL + "/mcp", DisableStandaloneSSE: true}} {
		client := protocol.NewClient(&protocol.Implementation{Name: "test", Version: "1"}, &protocol.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *protocol.ProgressNotificationClientRequest) { heard(r.Params.Message) },
		})
		session, err := client.Connect(t.Context(), transport, nil)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = session
	}
	t.Cleanup(func() {
		for _, s := range all {
			s.Close() //nolint:errcheck // the server ends, too
		}
		cancel()
		<-ended
	})
	return all
}

func TestTools(t *testing.T) {
	heard := make(chan string, 10)
	sessions := clients(t, func(stage string) { heard <- stage })
	for name, s := range sessions {
		t.Run(name, func(t *testing.T) {
			list, err := s.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			about := map[string]string{}
			for _, tool := range list.Tools {
				about[tool.Name] = tool.Description
			}
			for tool, want := range map[string]string{
				"intent": "Sorts a text into one of 2 labels from the knowledge k: card_lost, refund.", "docs": "cites the passages", "find": "Finds the passages", "unready": "Takes a text through the pipeline unready.",
			} {
				if !strings.Contains(about[tool], want) {
					t.Errorf("%s: %q", tool, about[tool])
				}
			}
			for _, test := range []struct {
				tool, text, want string
				failed           bool
			}{
				{"intent", "money back", "refund\n(The voters disagree", false},
				{"docs", "hours?", "It opens at nine [1].\n[1] hours.md", false},
				{"find", "x", "[1] a (l)\nfirst", false},
				{"intent", "fails", "sample.llm: it was refused", true},
				{"unready", "x", "the pipeline is starting", true},
			} {
				got, err := s.CallTool(t.Context(), &protocol.CallToolParams{Name: test.tool, Arguments: map[string]any{"text": test.text}})
				if err != nil {
					t.Fatal(err)
				}
				text := got.Content[0].(*protocol.TextContent).Text
				if got.IsError != test.failed || !strings.Contains(text, test.want) {
					t.Errorf("%s of %q: %v %q", test.tool, test.text, got.IsError, text)
				}
				data, err := json.Marshal(got.StructuredContent)
				if err != nil || !test.failed && !strings.Contains(string(data), `"agreement"`) {
					t.Errorf("%s: %s, %v", test.tool, data, err)
				}
			}
			if got, err := s.CallTool(t.Context(), &protocol.CallToolParams{Name: "intent", Arguments: map[string]any{"txt": "x"}}); err == nil && !got.IsError {
				t.Error("it takes arguments that it does not know")
			}
		})
	}
	params := &protocol.CallToolParams{Name: "docs", Arguments: map[string]any{"text": "x"}}
	params.SetProgressToken("p")
	if _, err := sessions["a pipe"].CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	if got := []string{<-heard, <-heard, <-heard}; !slices.Equal(got, []string{"retrieve.near", "sample.vote", "sample.other"}) {
		t.Errorf("progress: %q", got)
	}
}

// TestToolOfSets: a model gets the format of an answer, and the confidence of each label; the
// result has the labels as data.
func TestToolOfSets(t *testing.T) {
	of := func(form sdk.LabelForm) string {
		k := &pipeline.Knowledge{Name: "k", Sources: []pipeline.Source{{Labels: source.Labels{LabelForm: form}}}}
		p := &pipeline.Pipeline{Name: "p", Stages: []*pipeline.Stage{{Enabled: true, Retrieve: &pipeline.Retrieve{From: k}}}}
		return describeTool(p, live.Status{Answers: journal.LabelAnswers, Labels: []string{"a/x", "b"}})
	}
	for want, form := range map[string]sdk.LabelForm{
		`Sorts a text into one or more, separated by "; ", of 2 labels from the knowledge k: a/x, b.`:                                     {Many: true},
		`Sorts a text into one, or a node above it (what precedes a "/") where it is not sure, of 2 labels from the knowledge k: a/x, b.`: {Levels: "/"},
	} {
		if got := of(form); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	set := workspace.Result{Answer: "a; b", Verdict: result.Verdict{Labels: []sdk.LabelConfidence{{Label: "a", Confidence: .9}, {Label: "b", Confidence: .6}}}, Votes: []result.Vote{}}
	if got := text(set); got != "a; b\n(Confidences: a (0.900); b (0.600))" {
		t.Errorf("a model reads %q", got)
	}
	s, err := New(func() []Pipeline {
		return []Pipeline{&fakePipeline{Label: "p", To: func(context.Context, workspace.Item) (workspace.Result, error) { return set, nil }}}
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1/v1/pipelines/p/answer", strings.NewReader(`{"text": "x"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.guard.ServeHTTP(w, r)
	if got := w.Body.String(); !strings.Contains(got, `"labels":[{"label":"a","confidence":0.9},{"label":"b","confidence":0.6}]`) {
		t.Errorf("the server sends %s", got)
	}
}
