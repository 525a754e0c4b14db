package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	protocol "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/live"
	"github.com/racflow/racflow/engine/serve"
)

// Mount adds the protocol to a server, under /protocol.
func Mount(s *serve.Server, log *slog.Logger) {
	f := face{s.Pipelines(), s.Timeout(), log}
	s.Mount("/mcp", protocol.NewStreamableHTTPHandler(func(*http.Request) *protocol.Server { return f.server() }, &protocol.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, Logger: log,
		DisableLocalhostProtection:   true, // the guard has its own, which knows the names of the server
		MaxRequestBodyBytes:          -1,   // the guard bounds bodies
		PropagateRequestCancellation: true,
	}))
}

// Stdio speaks the protocol on standard input and output until ctx ends or the input does.
func Stdio(ctx context.Context, pipelines serve.Pipelines, timeout time.Duration, log *slog.Logger) error {
	return face{pipelines, timeout, log}.server().Run(ctx, &protocol.StdioTransport{})
}

type face struct {
	pipelines serve.Pipelines
	timeout   time.Duration // of an answer
	log       *slog.Logger
}

// server offers the pipelines as they are now.
func (f face) server() *protocol.Server {
	s := protocol.NewServer(&protocol.Implementation{Name: "racflow", Version: engine.Version()}, &protocol.ServerOptions{
		Logger: f.log, Capabilities: &protocol.ServerCapabilities{},
		Instructions: "Each tool takes a text through a racflow pipeline and returns what it answers with.",
	})
	for _, p := range f.pipelines() {
		protocol.AddTool(s, &protocol.Tool{
			Name: p.Name(), Description: describe(p.Definition(), p.Status()),
			Annotations: &protocol.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true},
		}, func(ctx context.Context, r *protocol.CallToolRequest, in question) (*protocol.CallToolResult, any, error) {
			return f.call(ctx, r, p, in)
		})
	}
	return s
}

// question is what a tool takes.
type question struct {
	Text string `json:"text" jsonschema:"The text to classify, or the question to answer"`
}

// call takes a text through a pipeline.
func (f face) call(ctx context.Context, r *protocol.CallToolRequest, p serve.Pipeline, in question) (*protocol.CallToolResult, any, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	result, err := p.Follow(ctx, engine.Item{Text: in.Text}, f.progress(ctx, r))
	if problem := serve.ProblemOf(ctx, result, err); problem != nil {
		return nil, nil, problem // which the library makes a result with isError
	}
	return &protocol.CallToolResult{Content: []protocol.Content{&protocol.TextContent{Text: text(result)}}}, result, nil
}

// progress tells a client what stages did, where it asks for that.
func (f face) progress(ctx context.Context, r *protocol.CallToolRequest) func(live.Event) {
	token := r.Params.GetProgressToken()
	done := 0.0
	return func(e live.Event) {
		if token == nil {
			return
		}
		done++
		if err := r.Session.NotifyProgress(ctx, &protocol.ProgressNotificationParams{ProgressToken: token, Progress: done, Message: e.Stage}); err != nil {
			f.log.Debug("a client was not told of progress", "error", err)
		}
	}
}
