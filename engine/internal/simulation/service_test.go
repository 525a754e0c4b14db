package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/plugins"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// secret is the prefix of the keys for the service, which only the service may see.
const secret = "sk-hush-hush-"

var (
	stages  []sdk.Stage // of all histories
	builtin workspace.Builtin
	asked   atomic.Pointer[service] // service of the current history
)

func TestMain(m *testing.M) {
	all := enginetest.Catalog(plugins.All())
	local, _ := all.Stage(sdk.KindStore, "local")
	model, _ := all.Stage(sdk.KindSample, "openai")
	words, _ := all.Stage(sdk.KindEnrich, "keywords")
	stages = append(enginetest.Stages(), enginetest.Alphabet(), local, model, words, laterStage())
	builtin = workspace.Serve(stages)
	to := http.DefaultTransport.(*http.Transport)
	to.DisableKeepAlives, to.Proxy = true, nil
	to.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return asked.Load().dial(ctx) }
	runtime.GOMAXPROCS(1) // otherwise goroutines that wake together would race for the next turn
	os.Exit(m.Run())
}

// service is a model that several machines ask. Each machine has its own key.
type service struct {
	*world
	pipes

	limit  int                             // calls at a time
	budget int                             // tokens per machine; 0: no limit
	price  int                             // tokens per call
	flaky  int                             // one in flaky calls fails; 0: none
	down   int                             // number of next calls that fail
	spell  int                             // value of down when the machine began
	fine   int                             // successful calls since then
	sick   string                          // text on which it cannot work
	sickly map[string]int                  // calls about that text
	paid   map[string]int                  // replies by question
	calls  int                             // in progress
	tokens map[string]int                  // tokens of the replies to a machine
	takes  func(what string) time.Duration // duration of a call; nil: none
	jobs   []*job
}

func (w *world) service() *service {
	s := &service{world: w, pipes: w.pipes(), price: 800, paid: map[string]int{}, tokens: map[string]int{}, sickly: map[string]int{}}
	asked.Store(s)
	server := &http.Server{Handler: s}
	go server.Serve(s.pipes)
	w.Cleanup(func() { server.Close() })
	return s
}

// pipes is a network with one address, which has one listener.
type pipes struct {
	conns chan net.Conn
	over  <-chan struct{}
}

func (w *world) pipes() pipes { return pipes{make(chan net.Conn), w.over} }

func (p pipes) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.over:
		return nil, errAway
	}
}

// Accept, Close and Addr make pipes a net.Listener.
func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (pipes) Close() error   { return nil }
func (pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// says returns the model's answer to a text, which depends only on these two.
func says(model, text string, labels []string) string {
	h := fnv.New32a()
	fmt.Fprint(h, model, " ", text)
	return labels[int(h.Sum32()%uint32(len(labels)))]
}

// ServeHTTP answers a chat completion request.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model    string
		Messages []struct{ Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) == 0 {
		http.Error(w, "what?", http.StatusBadRequest)
		return
	}
	text, _, _ := strings.Cut(body.Messages[len(body.Messages)-1].Content, "\n\nAnswer with")
	what := body.Model + " about " + text
	s.mu.Lock()
	m := s.machines[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "+secret)]
	s.mu.Unlock()
	if m == nil {
		s.Errorf("nobody has the key %q", r.Header.Get("Authorization"))
		return
	}
	done := s.begin()
	stop := context.AfterFunc(r.Context(), done)
	defer func() {
		if stop() {
			done()
		}
	}()
	if m.turn("service "+what) != nil {
		panic(http.ErrAbortHandler)
	}
	s.check(m)
	if s.takes != nil && support.SleepFor(r.Context(), s.takes(what)) != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	switch status := s.status(text, what); {
	case r.Context().Err() != nil, status == 0:
		panic(http.ErrAbortHandler)
	case status == lie:
		fmt.Fprint(w, `{"choices": [{"message": {"content": "fru`)
		return
	case status != http.StatusOK:
		http.Error(w, `{"error": {"message": "not now"}}`, status)
		return
	}
	s.mu.Lock()
	s.paid[what]++
	s.tokens[m.name] += s.price
	s.mu.Unlock()
	done()
	answer := says(body.Model, text, labels)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"1","object":"chat.completion","created":%d,"model":%q,"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%q}}],`+
		`"usage":{"prompt_tokens":%d,"completion_tokens":5,"total_tokens":%d}}`, time.Now().Unix(), body.Model, answer, s.price-5, s.price)
}

func (s *service) begin() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls--
	})
}

// check checks the limits in the file.
func (s *service) check(m *machine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit > 0 && s.calls > s.limit {
		s.Errorf("%d calls at a time, and %d are allowed", s.calls, s.limit)
	}
	if most := s.tokens[m.name] + s.price*s.calls; s.budget > 0 && most > s.budget {
		s.Errorf("%d tokens are spent or under way, and %d are allowed", most, s.budget)
	}
}

// lie is the status of a reply that claims success and is invalid.
const lie = -1

// status returns the status of the reply to a call; 0: the connection breaks.
func (s *service) status(text, what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	bad := []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusTooManyRequests, 0, lie}
	status := http.StatusOK
	switch {
	case s.down > 0:
		s.down--
		status = bad[1]
	case s.sick == text:
		if s.sickly[what]++; s.sickly[what] > 40 {
			s.Errorf("%s is asked for %d times in vain", what, s.sickly[what])
			s.sick = "" // otherwise it would never end
		}
		status = bad[0]
	case s.flaky > 0 && s.random.IntN(s.flaky) == 0:
		status = bad[s.random.IntN(len(bad))]
	}
	if s.fine++; status != http.StatusOK {
		s.fine = 0
		s.lost["service"]++
		s.history = append(s.history, fmt.Sprintf("service: %d for %s", status, what))
	}
	return status
}

// disturb draws the service's troubles for one machine.
func (s *service) disturb(suffers bool, k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flaky, s.down, s.spell, s.fine, s.sick = 0, 0, 0, 0, ""
	clear(s.sickly)
	if !suffers {
		return
	}
	switch s.random.IntN(5) {
	case 0:
		s.flaky = 2 + s.random.IntN(6)
	case 1:
		s.down = 1 + s.random.IntN(9)
		s.spell = s.down
	case 2:
		s.sick = k.item(s.random.IntN(k.items))
	}
}
