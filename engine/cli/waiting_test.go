//go:build linux

package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/process/governor"
	"github.com/racflow/racflow/engine/internal/run/retry"
	"github.com/racflow/racflow/engine/internal/show/terminal"

	"github.com/racflow/racflow/sdk"
)

// network is one on which a single service can be reached, with clocks that a test
// moves: no byte of it leaves the process.
type network struct {
	from  time.Time // before that nobody listens; zero: nobody ever does
	conns chan net.Conn
	once  sync.Once
	end   chan struct{}
}

func (w *network) dial(context.Context, string, string) (net.Conn, error) {
	if w.from.IsZero() || time.Now().Before(w.from) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	select {
	case w.conns <- far:
		return near, nil
	case <-w.end:
		return nil, net.ErrClosed
	}
}

func (w *network) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.end:
		return nil, net.ErrClosed
	}
}

func (w *network) Close() error   { w.once.Do(func() { close(w.end) }); return nil }
func (w *network) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlowToStart takes items to a model behind a service that is not there at first,
// is loading its model or fails, or is not there at all.
func TestSlowToStart(t *testing.T) {
	const loading = `{"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}`
	const failing = `{"error": {"message": "it went wrong", "type": "server_error"}}`
	tests := map[string]struct {
		items   int
		silent  time.Duration // until somebody listens; -1: nobody does
		loading time.Duration // until it answers
		least   time.Duration
		most    time.Duration
		reports []string // when, in seconds by fives, and of what
		stopped string
	}{
		"three seconds":             {40, 3 * time.Second, 0, 3 * time.Second, 8 * time.Second, nil, ""},
		"three seconds, for one":    {1, 3 * time.Second, 0, 3 * time.Second, 8 * time.Second, nil, ""},
		"a minute":                  {40, time.Minute, 0, time.Minute, 2*time.Minute + time.Second, []string{"5 connection refused", "35 connection refused", "65 connection refused"}, ""},
		"a minute, for one":         {1, time.Minute, 0, time.Minute, 2*time.Minute + time.Second, []string{"5 connection refused", "35 connection refused", "65 connection refused"}, ""},
		"a model that is loaded":    {40, 0, 12 * time.Second, 12 * time.Second, 20 * time.Second, []string{"5 Loading model"}, ""},
		"a model, for one":          {1, 0, 12 * time.Second, 12 * time.Second, 20 * time.Second, []string{"5 Loading model"}, ""},
		"a wrong port":              {40, -1, 0, 2 * time.Minute, 2*time.Minute + 10*time.Second, []string{"5 connection refused", "35 connection refused", "65 connection refused", "95 connection refused"}, "http://model.example/v1 has never answered, in 2m"},
		"a wrong port, for one":     {1, -1, 0, 2 * time.Minute, 2*time.Minute + 10*time.Second, []string{"5 connection refused", "35 connection refused", "65 connection refused", "95 connection refused"}, "http://model.example/v1 has never answered, in 2m"},
		"it fails at first":         {40, 0, 12 * time.Second, 12 * time.Second, 20 * time.Second, []string{"5 it went wrong"}, ""},
		"it fails, for one":         {1, 0, 12 * time.Second, 12 * time.Second, 20 * time.Second, []string{"5 it went wrong"}, ""},
		"it fails for a minute":     {40, 0, time.Minute, time.Minute, 2*time.Minute + time.Second, []string{"5 it went wrong", "35 it went wrong", "65 it went wrong"}, ""},
		"it always fails":           {40, 0, time.Hour, 2 * time.Minute, 2*time.Minute + 10*time.Second, []string{"5 it went wrong", "35 it went wrong", "65 it went wrong", "95 it went wrong"}, "http://model.example/v1 has never answered, in 2m0s (the server answered 500: it went wrong)"},
		"a service that is there":   {40, 0, 0, 0, time.Second, nil, ""},
		"just before nobody waits":  {40, 2*time.Minute - time.Second, 0, 2*time.Minute - time.Second, 2*time.Minute + time.Second, []string{"5 connection refused", "35 connection refused", "65 connection refused", "95 connection refused"}, ""},
		"once more for one, likely": {1, 2*time.Minute - time.Second, 0, 2*time.Minute - time.Second, 2*time.Minute + time.Second, []string{"5 connection refused", "35 connection refused", "65 connection refused", "95 connection refused"}, ""},
	}
	transport := http.DefaultTransport
	defer func() { http.DefaultTransport = transport }()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				w := &network{conns: make(chan net.Conn), end: make(chan struct{})}
				if test.silent >= 0 {
					w.from = start.Add(test.silent)
				}
				http.DefaultTransport = &http.Transport{DialContext: w.dial}
				server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if time.Since(start) < test.loading {
						status, body := http.StatusServiceUnavailable, loading
						if strings.HasPrefix(name, "it ") {
							status, body = http.StatusInternalServerError, failing
						}
						rw.WriteHeader(status)
						_, _ = io.WriteString(rw, body)
						return
					}
					_, _ = io.WriteString(rw, `{"choices": [{"message": {"content": "a"}}], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}`)
				})}
				go func() { _ = server.Serve(w) }()
				var reports []string
				log := slog.New(slog.DiscardHandler)
				reporter := terminal.NewWaitReporter(func(wait terminal.LongWait) {
					// The first call probes the model, and the others wait for it.
					if text := wait.String(); wait.Calls < 1 || wait.Calls > test.items || !strings.HasPrefix(text, "waiting for sample.llm: ") || !strings.Contains(text, "model.example") {
						t.Error(text)
					}
					reason := regexp.MustCompile(`connection refused|Loading model|it went wrong`).FindString(wait.Why)
					reports = append(reports, fmt.Sprintf("%d %s", time.Since(start).Truncate(5*time.Second)/time.Second, reason))
				})
				defer reporter.Close()
				control := governor.New(t.Context(), governor.Options{Log: log, Waiting: reporter})
				reporter.Watch(control.Waits)
				host := control.Stage(governor.Stage{Name: "sample.llm", Required: true})
				opened, err := ours(sdk.KindSample, "openai").Open(t.Context(), sdk.Setup{Samples: 1, Host: host, Log: log}, []byte(`{"base_url": "http://model.example/v1", "model": "m"}`))
				if err != nil {
					t.Fatal(err)
				}
				work := retry.Work{Retries: 5, Stage: "sample.llm", Waits: reporter}
				errs := make([]error, test.items)
				var all sync.WaitGroup
				for i := range errs {
					all.Go(func() {
						work := work
						work.Call = func(ctx context.Context, _ []int) error {
							_, err := opened.(sdk.Sampler).Sample(ctx, sdk.Batch{Items: []sdk.Item{{Prompts: []sdk.Prompt{{Text: fmt.Sprint(i)}}}}})
							return err
						}
						errs[i] = work.Do(t.Context(), 1)[0]
					})
				}
				all.Wait()
				took := time.Since(start)
				opened.(interface{ Close() error }).Close()
				_ = server.Close()
				for i, err := range errs {
					if (err == nil) != (test.stopped == "") || err != nil && (sdk.CodeOf(err) != sdk.CodeStopped || !strings.Contains(err.Error(), test.stopped)) {
						t.Errorf("item %d: %v", i, err)
						break
					}
				}
				if took < test.least || took > test.most {
					t.Errorf("it took %s", took)
				}
				if !slices.Equal(reports, test.reports) {
					t.Errorf("reported %q, want %q", reports, test.reports)
				}
			})
		})
	}
}
