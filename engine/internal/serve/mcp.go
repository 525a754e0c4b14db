package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	protocol "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/output"
	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/internal/source/rows"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
)

// This file offers pipelines to language models and agents, as tools of the Model Context Protocol:
// over streamable HTTP behind a server's guard, or on standard input and output.
//
// Each pipeline is a tool that takes a text and returns the result twice: as text for a model, and
// as data (structuredContent). The tool's description says what kind of answers the pipeline gives.
// An item that fails yields a result with isError, so that a model can continue. Clients that ask
// for progress get the steps of the stages.
//
// There are no sessions: requests are independent, so that idle clients cost nothing.

// MountMCP adds the protocol to a server, under /mcp.
func MountMCP(s *Server, log *slog.Logger) {
	f := mcpFace{s.pipelines, s.options.Timeout, log}
	speak := protocol.NewStreamableHTTPHandler(func(*http.Request) *protocol.Server { return f.server() }, &protocol.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, Logger: log,
		DisableLocalhostProtection:   true, // the guard has its own protection, which knows the server's names
		MaxRequestBodyBytes:          -1,   // the guard limits bodies
		PropagateRequestCancellation: true,
	})
	message := as("application/json", schema[rpcMessage](s))
	s.handle(huma.Operation{
		OperationID: "callProtocol", Method: http.MethodPost, Path: "/mcp", Summary: "Speak the Model Context Protocol", Tags: []string{"agents"},
		Description: "Streamable HTTP without sessions. Each pipeline is a tool that takes a text. A request has to accept application/json and text/event-stream.",
		RequestBody: &huma.RequestBody{Required: true, Content: message},
		Responses:   responses{}.and(message, http.StatusOK, http.StatusBadRequest).and(nil, http.StatusAccepted).and(asText("text/plain"), http.StatusBadRequest, http.StatusUnsupportedMediaType),
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, p := readJSON(r); p != nil {
			p.ServeHTTP(w, r)
			return
		}
		speak.ServeHTTP(w, r)
	}))
}

// rpcMessage is a message of the protocol, in JSON-RPC 2.0.
type rpcMessage struct {
	Version string         `json:"jsonrpc" enum:"2.0"`
	ID      any            `json:"id,omitempty" doc:"A number or a text, which the response repeats; a notification has none"`
	Method  string         `json:"method,omitempty" doc:"Of a request: such as initialize, tools/list or tools/call"`
	Params  map[string]any `json:"params,omitempty" doc:"Of a request: such as the name of a tool and its arguments"`
	Result  map[string]any `json:"result,omitempty" doc:"Of a response"`
	Error   map[string]any `json:"error,omitempty" doc:"Of a response, in place of a result"`
}

// MCP speaks the protocol on standard input and output until ctx or the input ends.
func MCP(ctx context.Context, pipelines Pipelines, timeout time.Duration, log *slog.Logger) error {
	in := struct {
		io.Reader
		io.Closer
	}{rows.UTF8(os.Stdin), os.Stdin}
	out := struct {
		io.Writer
		io.Closer
	}{os.Stdout, io.NopCloser(nil)} // stdout stays open, because others may still write to it
	return mcpFace{pipelines, timeout, log}.server().Run(ctx, &protocol.IOTransport{Reader: in, Writer: out})
}

type mcpFace struct {
	pipelines Pipelines
	timeout   time.Duration // time limit for an answer
	log       *slog.Logger
}

// server offers the present pipelines.
func (f mcpFace) server() *protocol.Server {
	s := protocol.NewServer(&protocol.Implementation{Name: "racflow", Version: workspace.Version()}, &protocol.ServerOptions{
		Logger: f.log, Capabilities: &protocol.ServerCapabilities{},
		Instructions: "Each tool takes a text through a racflow pipeline and returns what it answers with.",
	})
	for _, p := range f.pipelines() {
		protocol.AddTool(s, &protocol.Tool{
			Name: p.Name(), Description: describeTool(p.Definition(), p.Status()),
			Annotations: &protocol.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true},
		}, func(ctx context.Context, r *protocol.CallToolRequest, in question) (*protocol.CallToolResult, any, error) {
			return f.call(ctx, r, p, in)
		})
	}
	return s
}

// question is the input of a tool.
type question struct {
	Text string `json:"text" jsonschema:"The text to classify, or the question to answer"`
}

// call answers a text with a pipeline.
func (f mcpFace) call(ctx context.Context, r *protocol.CallToolRequest, p Pipeline, in question) (*protocol.CallToolResult, any, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	result, err := p.Follow(ctx, workspace.Item{Text: in.Text}, f.progress(ctx, r))
	if problem := problemOf(ctx, result, err); problem != nil {
		return nil, nil, problem // the library converts it to a result with isError
	}
	return &protocol.CallToolResult{Content: []protocol.Content{&protocol.TextContent{Text: text(result)}}}, result, nil
}

// progress sends a client the steps of the stages, if the client asks for progress.
func (f mcpFace) progress(ctx context.Context, r *protocol.CallToolRequest) func(live.Event) {
	token := r.Params.GetProgressToken()
	done := 0.0
	return func(e live.Event) {
		if token == nil {
			return
		}
		done++
		if err := r.Session.NotifyProgress(ctx, &protocol.ProgressNotificationParams{ProgressToken: token, Progress: done, Message: e.Stage}); err != nil {
			f.log.Debug("progress did not reach a client", "error", err)
		}
	}
}

// maxLabels limits how many labels a description names.
const maxLabels = 200

// describeTool describes a pipeline to a model that may call it.
func describeTool(p *pipeline.Pipeline, s live.Status) string {
	var names []string
	for _, k := range p.Knowledge() {
		names = append(names, k.Name)
	}
	of := ""
	if len(names) > 0 {
		of = " from the knowledge " + strings.Join(names, ", ")
	}
	switch s.Answers {
	case journal.PassageAnswers:
		return "Finds the passages that belong to a text" + of + ", best first."
	case journal.TextAnswers:
		return "Answers a question" + of + ", and cites the passages that the answer rests on."
	case journal.LabelAnswers:
		labels := s.Labels
		more := ""
		if len(labels) > maxLabels {
			labels, more = labels[:maxLabels], fmt.Sprintf(", and %d more", len(labels)-maxLabels)
		}
		into, form := "one", p.LabelForm()
		switch {
		case form.Many:
			into = fmt.Sprintf("one or more, separated by %q,", sdk.LabelSeparator)
		case form.Levels != "":
			into = fmt.Sprintf("one, or a node above it (what precedes a %q) where it is not sure,", form.Levels)
		}
		return fmt.Sprintf("Sorts a text into %s of %d labels%s: %s%s.", into, len(s.Labels), of, strings.Join(labels, ", "), more)
	}
	return "Takes a text through the pipeline " + p.Name + "."
}

// text formats a result for a model: the answer, its citations and whether it is in doubt, or the
// passages found.
func text(r workspace.Result) string {
	var b strings.Builder
	switch {
	case r.Answer != "":
		b.WriteString(string(r.Answer))
	case len(r.Candidates) > 0:
		for i, c := range r.Candidates {
			fmt.Fprintf(&b, "[%d] %s", i+1, c.ID)
			if c.Label != "" {
				fmt.Fprintf(&b, " (%s)", c.Label)
			}
			fmt.Fprintf(&b, "\n%s\n\n", c.Text)
		}
	default:
		b.WriteString("There is no answer.")
		if r.Reason != "" {
			fmt.Fprintf(&b, " %s", r.Reason)
		}
	}
	if len(r.Labels) > 0 {
		fmt.Fprintf(&b, "\n(Confidences: %s)", output.LabelsText(r.Labels))
	}
	for _, c := range r.Citations {
		place := c.ID
		if c.Path != nil {
			place = fmt.Sprint(c.Path)
		}
		fmt.Fprintf(&b, "\n[%d] %s", c.Number, place)
	}
	if r.Flagged {
		b.WriteString("\n(The voters disagree: a person should look at this answer.)")
	}
	return strings.TrimSpace(b.String())
}
