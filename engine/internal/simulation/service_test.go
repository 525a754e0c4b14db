package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/plugins"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// secret begins the keys for the service, which nobody but it may see.
const secret = "sk-hush-hush-"

var (
	stages  []sdk.Stage // of all histories
	builtin engine.Builtin
	asked   atomic.Pointer[service] // that of the history under way
)

func TestMain(m *testing.M) {
	all := enginetest.Catalog(plugins.All())
	local, _ := all.Stage(sdk.KindStore, "local")
	model, _ := all.Stage(sdk.KindSample, "openai")
	stages = append(enginetest.Stages(), local, model, question())
	builtin = engine.Serve(stages)
	to := http.DefaultTransport.(*http.Transport)
	to.DisableKeepAlives, to.Proxy = true, nil
	to.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return asked.Load().dial(ctx) }
	os.Exit(m.Run())
}

// service is a model that several machines ask. Each key names the machine that uses it.
type service struct {
	*world
	conns    chan net.Conn
	machines map[string]*machine

	limit  int                             // calls at a time
	budget int                             // tokens in all; 0: no end
	price  int                             // tokens of a call
	takes  func(what string) time.Duration // how long a call lasts; nil: no time
	mood   func() int                      // the status of a reply; 0: the connection breaks
	paid   map[string]int                  // replies by what was asked
	flight map[string]int                  // replies that their machine never read
	calls  int                             // under way
	tokens int                             // of all calls that began
}

func (w *world) service() *service {
	s := &service{world: w, conns: make(chan net.Conn), machines: map[string]*machine{}, price: 20, mood: func() int { return http.StatusOK }, paid: map[string]int{}, flight: map[string]int{}}
	asked.Store(s)
	server := &http.Server{Handler: s}
	go server.Serve(s)
	w.Cleanup(func() { server.Close() })
	return s
}

func (s *service) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case s.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.over:
		return nil, errAway
	}
}

// Accept, Close and Addr make a net.Listener of the service.
func (s *service) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.over:
		return nil, net.ErrClosed
	}
}

func (*service) Close() error   { return nil }
func (*service) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// says is the model's answer to a text, which only the two decide.
func says(model, text string, labels []string) string {
	h := fnv.New32a()
	fmt.Fprint(h, model, " ", text)
	return labels[int(h.Sum32()%uint32(len(labels)))]
}

// ServeHTTP answers a request to complete a chat.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model    string
		Messages []struct{ Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) == 0 {
		http.Error(w, "what?", http.StatusBadRequest)
		return
	}
	text := body.Messages[len(body.Messages)-1].Content
	what := body.Model + " about " + text
	s.mu.Lock()
	m := s.machines[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "+secret)]
	s.calls++
	s.tokens += s.price
	if s.limit > 0 && s.calls > s.limit {
		s.Errorf("%d calls at a time, and %d are allowed", s.calls, s.limit)
	}
	if s.budget > 0 && s.tokens > s.budget {
		s.Errorf("%d tokens are spent, and %d are allowed", s.tokens, s.budget)
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.calls--
		s.mu.Unlock()
	}()
	if m == nil {
		s.Errorf("nobody has the key %q", r.Header.Get("Authorization"))
		return
	}
	if s.takes != nil && support.SleepFor(r.Context(), s.takes(what)) != nil {
		panic(http.ErrAbortHandler) // who asked has gone
	}
	status := s.mood()
	if m.turn("service "+what) != nil || status == 0 {
		panic(http.ErrAbortHandler)
	}
	if status != http.StatusOK {
		s.fault("service", "%d for %s", status, what)
		w.Header().Set("Retry-After", "1")
		http.Error(w, `{"error": {"message": "not now"}}`, status)
		return
	}
	s.mu.Lock()
	s.paid[what]++
	s.mu.Unlock()
	answer := says(body.Model, text, labels)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"1","object":"chat.completion","created":%d,"model":%q,"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%q}}],`+
		`"usage":{"prompt_tokens":%d,"completion_tokens":5,"total_tokens":%d}}`, time.Now().Unix(), body.Model, answer, s.price-5, s.price)
}
