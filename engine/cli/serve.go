package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/serve"
	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/internal/show/telemetry"
	"github.com/racflow/racflow/engine/internal/workspace"
)

// tokensVariable is the environment variable for tokens.
const tokensVariable = "RACFLOW_SERVE_TOKENS"

// serving holds the flags of serve, except those of the files.
type serving struct {
	network serve.Network
	tokens  string
	body    string
	queue   int
	watch   bool
	stdio   bool // the Model Context Protocol instead of HTTP
	child   bool // serves the program that has started it
	trace   telemetry.Options
	options serve.Options
}

var serveLong = `    curl -H 'Content-Type: application/json' -d '{"text": "where is my parcel?"}' http://127.0.0.1:8470/v1/pipelines/intent/answer

GET /docs shows the interface in a browser, and GET /openapi.json describes it for programs:

  POST /v1/pipelines/NAME/answer     an item: text, perhaps id, label and meta; as application/x-ndjson a batch
                                     of any length, as text/event-stream stage by stage
  POST /v1/pipelines/NAME/retrieve   what is found for an item
  POST /v1/pipelines/NAME/rebuild    brings its knowledge up to date; GET /v1/pipelines lists all
  /v1/chat/completions, /v1/models   OpenAI's form: a pipeline is a model, citations are annotations
  /v1/systemone, /v1/decisions       typed questions about a text, as clients of Jev and of OpenAI's decisions ask them
  /mcp                               a tool for each pipeline; --mcp speaks it on standard input and output
  /healthz, /readyz, /metrics        the process answers; the pipelines do; metrics for Prometheus

When a file, row or document changes, the knowledge is built anew in the background and takes over once it
is complete; a mistake leaves what there was.

It listens on the loopback address. Another one needs --tls-cert, --tls-key and tokens, one a line, in --tokens or
` + tokensVariable + `; callers send Authorization: Bearer TOKEN. --insecure does without, behind something that has
both. After SIGTERM /readyz fails for --drain, then requests have --grace to end.

--child is for a program that starts racflow and asks it, as the Python package does. It listens on a unix socket in a
new folder that only its user may enter, and when the pipelines answer it prints a line of JSON, {"socket": PATH,
"pipelines": [NAME, ...]}. When standard input ends, as it does with the program, it cuts requests off and ends.

Exit code 0: it was ended; 1: it could not start or go on, or requests were cut off at the end.`

func newServe() *cobra.Command {
	var flags fileFlags
	var s serving
	c := &cobra.Command{
		Use:   "serve [FILE...]",
		Short: "Keep pipelines open and answer requests over HTTP",
		Long:  serveLong,
		Example: `  racflow serve pipelines/intent.hcl pipelines/contextual.hcl
  racflow serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem --tokens tokens.txt pipeline.hcl
  racflow serve --mcp pipelines/contextual.hcl`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return takeFile(c)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return s.run(c, &flags, args) },
	}
	flags.register(c)
	flags.registerCalls(c)
	f, o, g := c.Flags(), &s.options, &s.options.Guard
	f.StringVar(&s.network.Address, "listen", "127.0.0.1:8470", "`ADDRESS` to listen on; port 0 is a free one")
	f.StringVar(&s.tokens, "tokens", "", "`FILE` with the tokens that callers may show, one a line")
	f.StringVar(&s.network.Cert, "tls-cert", "", "`FILE` with the certificate for TLS, in PEM")
	f.StringVar(&s.network.Key, "tls-key", "", "`FILE` with its key")
	f.BoolVar(&s.network.Insecure, "insecure", false, "listen without TLS or tokens where other machines can call")
	f.StringArrayVar(&g.Hosts, "host", nil, "answer to this `NAME` as the Host (may be repeated)")
	f.StringArrayVar(&g.Origins, "cors", nil, "let web pages of this `ORIGIN` call, such as https://example.com (may be repeated)")
	f.StringToStringVar(&o.Aliases, "alias", nil, "answer to another name of a model: `NAME=PIPELINE`, such as jev-latest=intent (may be repeated)")
	f.StringVar(&s.body, "body", "4MiB", "refuse bodies that are longer than `SIZE`, unless they are batches")
	f.IntVar(&g.Concurrency, "concurrency", 1024, "refuse requests while `N` are under way")
	f.IntVar(&s.queue, "queue", 4096, "refuse items while `N` wait for a pipeline")
	f.IntVar(&s.network.Connections, "connections", 16384, "take no more than `N` connections at a time")
	f.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "give up an answer after this")
	f.DurationVar(&o.Drain, "drain", 0, "take connections for so long after SIGTERM, while /readyz says that the server ends")
	f.DurationVar(&o.Grace, "grace", 30*time.Second, "cut requests off that have not ended so long after that")
	f.BoolVar(&s.stdio, "mcp", false, "speak the Model Context Protocol on standard input and output, once the pipelines are ready, in place of HTTP")
	f.StringVar(&flags.more.Cache, "cache", "", "keep vectors and answers of models in `DIR`, which several may share, in place of --state")
	f.BoolVar(&s.child, "child", false, "serve the program that starts it: on a private unix socket, as long as standard input is open")
	f.BoolVar(&s.watch, "watch", true, "rebuild the knowledge when a file that it is made from changes")
	registerTraces(c, &s.trace)
	return c
}

func (s *serving) run(c *cobra.Command, flags *fileFlags, files []string) (err error) {
	d := newDisplay(c)
	o, err := flags.options(nil) // standard input could not be read again for a rebuild
	if err != nil {
		return err
	}
	if o.Log, err = newLog(c); err != nil {
		return err
	}
	if s.options.Guard.Body, err = parseSize(s.body); err != nil {
		return fmt.Errorf("--body %s: %w", s.body, err)
	}
	if err := s.check(); err != nil {
		return err
	}
	s.options.Log, s.network.Log = o.Log, o.Log
	tokens, err := serve.NewTokens(os.Getenv(tokensVariable), s.tokens, o.Log)
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	s.options.Guard.Tokens, s.options.Guard.Local = tokens, s.child || serve.Loopback(s.network.Address)
	if s.child {
		s.options.Guard.Tokens, s.options.Grace = nil, time.Millisecond // nobody waits for the answers
	}
	// Serving goes on after the signal that ends the server, until all requests have ended.
	life, end := context.WithCancel(context.WithoutCancel(c.Context()))
	defer end()
	s.trace.Version, s.trace.Log = workspace.Version(), o.Log
	if s.options.Telemetry, err = telemetry.New(life, s.trace); err != nil {
		return err
	}
	defer endTelemetry(life, s.options.Telemetry, o.Log)
	o.Observe = s.options.Telemetry
	o.Events = d.events()
	set, err := live.Open(life, files, live.Options{Engine: o, Watch: s.watch, Queue: s.queue, Log: o.Log})
	if err != nil {
		return err
	}
	flags.trust.silent.Store(true) // nobody may be there when a file changes
	defer d.progress.Clear()
	defer set.Close()
	if s.stdio {
		err := set.Start(c.Context())
		if err == nil {
			d.progress.Clear()
			err = serve.MCP(c.Context(), serve.Of(set), s.options.Timeout, o.Log)
		}
		if c.Context().Err() != nil {
			err = nil // it was ended
		}
		return err
	}
	for alias, name := range s.options.Aliases {
		if !slices.Contains(set.Names(), name) || slices.Contains(set.Names(), alias) {
			return fmt.Errorf("--alias %s=%s: it is another name of a pipeline, and those that are served are %s", alias, name, strings.Join(set.Names(), ", "))
		}
	}
	server, err := serve.New(serve.Of(set), s.options)
	if err != nil {
		return err
	}
	serve.MountChat(server)
	serve.MountDecisions(server)
	serve.MountMCP(server, o.Log)
	if s.child {
		return serveChild(c, set, server)
	}
	l, err := serve.Listen(s.network, tokens)
	if err != nil {
		return err
	}
	return s.until(c.Context(), d, set, server, l)
}

// check refuses limits that would let no request through.
func (s *serving) check() error {
	for flag, n := range map[string]int{"concurrency": s.options.Guard.Concurrency, "queue": s.queue, "connections": s.network.Connections} {
		if n < 1 {
			return fmt.Errorf("--%s %d: it is at least 1", flag, n)
		}
	}
	for flag, d := range map[string]time.Duration{"timeout": s.options.Timeout, "grace": s.options.Grace} {
		if d <= 0 {
			return fmt.Errorf("--%s %s: it is more than 0", flag, d)
		}
	}
	return nil
}

// until serves until ctx ends or the pipelines cannot be started.
func (s *serving) until(ctx context.Context, d *display, set *live.Set, server *serve.Server, l net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.announce(d, set, l.Addr().String())
	started := make(chan error, 1)
	go func() {
		err := set.Start(ctx)
		switch {
		case err == nil:
			d.note("ready")
		case ctx.Err() != nil:
			err = nil // the server was ended before
		default:
			stop()
		}
		started <- err
	}()
	err := server.Serve(ctx, l)
	stop()
	return errors.Join(<-started, err)
}

func (s *serving) announce(d *display, set *live.Set, address string) {
	scheme := "http"
	if s.network.Cert != "" {
		scheme = "https"
	}
	d.note("serving %s on %s://%s", strings.Join(set.Names(), ", "), scheme, address)
	if !serve.Loopback(address) && s.network.Insecure {
		for what, missing := range map[string]bool{"without TLS: others may read requests and answers": s.network.Cert == "", "without tokens: everybody may call": s.options.Guard.Tokens == nil} {
			if missing {
				d.print("warning: --insecure: %s", what)
			}
		}
	}
	s.options.Log.Info("serving", slog.String("address", address))
}
