package chatmodel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// stage asks about texts, with two choices for each, which are cached separately.
type stage struct {
	client *api.Client
	jobs   *chatmodel.Jobs
}

// open opens the stage as a new process does.
func open(t *testing.T, url, dir string, host sdk.Host) *stage {
	c := api.New(api.Config{BaseURL: url, Service: api.Service{Timeout: time.Minute}, Host: host})
	t.Cleanup(func() { _ = c.Close() })
	return &stage{c, chatmodel.NewJobs(chatmodel.OpenAI{Client: c}, c, sdk.Setup{Host: host, StateDir: dir})}
}

func key(text string, n int) sdk.Key { return sdk.KeyOf("answer", text, fmt.Sprint(n)) }

// row does the stage's work for one text.
func (s *stage) row(ctx context.Context, text string) (string, error) {
	keys := []sdk.Key{key(text, 0), key(text, 1)}
	found, err := s.client.CacheGet(ctx, keys)
	if err != nil {
		return "", err
	}
	for {
		var missing []int
		for i := range found {
			if found[i] == nil {
				missing = append(missing, i)
			}
		}
		if len(missing) == 0 {
			return fmt.Sprintf("%s %s", found[0], found[1]), nil
		}
		var reply struct {
			Choices []struct{ Message struct{ Content string } }
		}
		r := &api.Request{Client: s.client, Tokens: 9 * len(missing), Bounded: true}
		r.OnReply = func() error {
			if len(reply.Choices) == 0 {
				return api.NoAnswer("no choices")
			}
			for i, n := range missing[:min(len(missing), len(reply.Choices))] {
				found[n] = []byte(reply.Choices[i].Message.Content)
				s.client.CachePut(ctx, keys[n:n+1], found[n:n+1])
			}
			return nil
		}
		body := map[string]any{"model": "m", "n": len(missing), "max_tokens": 9, "messages": []any{map[string]string{"role": "user", "content": text}}}
		if err := r.Post(api.For(ctx, keys[missing[0]]), "/chat/completions", body, &reply); err != nil {
			return "", err
		}
	}
}

// do requests or collects once. It returns the answers, or the errors of rows, or that they come
// later.
func (s *stage) do(ctx context.Context, handle string, texts ...string) (answers []string, later *sdk.Pending) {
	got, err := chatmodel.DoJob(ctx, s.jobs, handle, func(ctx context.Context) ([]string, error) { return api.Rows(ctx, texts, s.row) })
	if errors.As(err, &later) {
		return nil, later
	}
	answers = make([]string, len(texts))
	var rows sdk.RowErrors
	if errors.As(err, &rows) {
		err = nil
	}
	for i := range texts {
		switch {
		case err != nil:
			answers[i] = "all: " + err.Error()
		case rows[i] != nil:
			answers[i] = rows[i].Error()
		default:
			answers[i] = got[i]
		}
	}
	return answers, nil
}

// finish acts like the engine: it collects until nothing is pending.
func (s *stage) finish(t *testing.T, handle string, texts ...string) (answers, notes []string) {
	t.Helper()
	for range 100 {
		answers, later := s.do(t.Context(), handle, texts...)
		if later == nil {
			return answers, notes
		}
		handle, notes = later.Handle, append(notes, later.Note)
	}
	t.Fatalf("it is pending for ever: %s", handle)
	return nil, nil
}

// echo answers with the question and the number of the choice.
func echo(a modelserver.Ask, choice int) string { return fmt.Sprint(a.Text(), choice) }

func wants(t *testing.T, got []string, want ...string) {
	t.Helper()
	must.Equal(t, "texts", want, got)
}

func TestBatch(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{Answer: echo, Batches: modelserver.Batches{Polls: 2, PollAfter: 70 * time.Millisecond}})
	host := &apitest.Host{}
	s := open(t, server.URL, t.TempDir(), host)
	_, later := s.do(t.Context(), "", "a", "b", "b")
	if later == nil || later.PollAfter != 70*time.Millisecond || strings.Contains(later.Handle, "content") {
		t.Fatalf("pending: %+v", later)
	}
	calls := host.Calls()
	must.Equal(t, "number of calls", 1, len(calls))
	must.Equal(t, "endpoint, batch, most output, most input of at least 100", []any{server.URL, true, uint64(36), true}, []any{calls[0].Endpoint, calls[0].Batch, calls[0].Most.OutputTokens, calls[0].Most.InputTokens >= 100})
	answers, notes := s.finish(t, later.Handle, "a", "b", "b")
	wants(t, answers, "a0 a1", "b0 b1", "b0 b1")
	wants(t, append([]string{later.Note}, notes...), "batch of 2 requests, 0 done, at most 24 h", "batch of 2 requests, 0 done, at most 24 h", "batch of 2 requests, 1 done, at most 24 h")
	if spent := host.Spent(t); server.Batches() != 1 || server.Doubled(2) != 0 || spent.InputTokens != 2*2 || spent.OutputTokens != 4 {
		t.Errorf("%d batches, %d answers too many, spent %+v", server.Batches(), server.Doubled(2), spent)
	}
	// All answers are cached: nothing is sent.
	answers, notes = s.finish(t, "", "b", "a")
	wants(t, answers, "b0 b1", "a0 a1")
	// A part is cached: the rest is requested.
	host.Forget(key("a", 1))
	answers, _ = s.finish(t, "", "a", "b")
	wants(t, answers, "a0 a0", "b0 b1") // from a request for one choice
	if len(notes) != 0 || server.Batches() != 2 {
		t.Errorf("%d batches", server.Batches())
	}
}

// A final failure affects only its row. Temporary failures go into another batch.
func TestFurtherTries(t *testing.T) {
	once := func(a modelserver.Ask) bool { return a.Text() == "flaky" && a.Batch == "batch_0" }
	tests := []struct {
		name    string
		options modelserver.Options
		batches int
		want    []string
	}{
		{"an error that passes", modelserver.Options{Faults: []modelserver.Fault{{Kind: modelserver.Status, Status: 500, If: once}}}, 2, []string{"a0 a1", "flaky0 flaky1"}},
		{"a lost connection", modelserver.Options{Faults: []modelserver.Fault{{Kind: modelserver.Drop, If: once}}}, 2, []string{"a0 a1", "flaky0 flaky1"}},
		{"a reply without choices", modelserver.Options{Faults: []modelserver.Fault{{Kind: modelserver.Error200, If: once}}}, 2, []string{"a0 a1", "flaky0 flaky1"}},
		{"no time", modelserver.Options{Batches: modelserver.Batches{Expires: func(batch, _ int) bool { return batch == 0 }}}, 2, []string{"a0 a1", "flaky0 flaky1"}},
		{"fewer choices", modelserver.Options{IgnoreN: true}, 2, []string{"a0 a0", "flaky0 flaky0"}},
		{
			"an error that does not", modelserver.Options{Refuse: func(a modelserver.Ask) bool { return a.Text() == "flaky" }}, 1,
			[]string{"a0 a1", "the server answered 400: refused, as the test says"},
		},
		{
			"an error that never passes", modelserver.Options{Faults: []modelserver.Fault{{Kind: modelserver.Status, Status: 500, If: func(a modelserver.Ask) bool { return a.Text() == "flaky" }}}}, 5,
			[]string{"a0 a1", "the server answered 500: status 500, as the test says; so it was in 5 batches"},
		},
		{"a batch that is refused", modelserver.Options{Batches: modelserver.Batches{Fails: "the queue is full"}}, 1, []string{
			"the service refused the batch batch_0: the queue is full", "the service refused the batch batch_0: the queue is full",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.options.Answer = echo
			server, host := modelserver.Serve(t, test.options), &apitest.Host{}
			answers, _ := open(t, server.URL, t.TempDir(), host).finish(t, "", "a", "flaky")
			wants(t, answers, test.want...)
			if server.Batches() != test.batches || server.Doubled(2) != 0 || len(host.Results(t)) != test.batches {
				t.Errorf("%d batches, %d answers too many, %d results", server.Batches(), server.Doubled(2), len(host.Results(t)))
			}
			for _, a := range server.Asks() {
				if a.Batch == "" {
					t.Errorf("%s was asked alone", a.Text())
				}
			}
		})
	}
}

// If a process ends at any step, the next one finds what was sent.
func TestNothingIsLost(t *testing.T) {
	for _, at := range []modelserver.BatchStep{
		modelserver.BatchUploading, modelserver.BatchUploaded, modelserver.BatchCreated, modelserver.BatchPolled, modelserver.BatchSending, modelserver.BatchSent,
	} {
		for _, cached := range []bool{false, true} {
			t.Run(fmt.Sprint(at, " ", cached), func(t *testing.T) {
				killed := false
				var kill context.CancelFunc
				server := modelserver.Serve(t, modelserver.Options{Answer: echo, Batches: modelserver.Batches{Polls: 1, On: func(step modelserver.BatchStep) {
					if step == at && !killed {
						killed = true
						kill()
					}
				}}})
				dir, host := t.TempDir(), &apitest.Host{}
				if cached {
					if err := host.CachePut(t.Context(), key("a", 0), []byte("a0")); err != nil {
						t.Fatal(err)
					}
				}
				handle := ""
				for range 20 {
					ctx, cancel := context.WithCancel(t.Context())
					kill = cancel
					process := open(t, server.URL, dir, host)
					answers, later := process.do(ctx, handle, "a", "b")
					cancel()
					switch {
					case ctx.Err() != nil && later == nil && answers[0] != "a0 a1" && answers[0] != "a0 a0":
						continue // it was killed, and nobody received its result
					case later != nil:
						handle = later.Handle
						continue
					}
					if cached {
						wants(t, answers, "a0 a0", "b0 b1")
					} else {
						wants(t, answers, "a0 a1", "b0 b1")
					}
					break
				}
				if !killed || server.Batches() != 1 || server.Doubled(2) != 0 {
					t.Errorf("killed: %t, %d batches, %d answers too many", killed, server.Batches(), server.Doubled(2))
				}
			})
		}
	}
}

// half stores half of the values, like a host whose process ends meanwhile.
type half struct {
	apitest.Host
	left atomic.Int32
}

func (h *half) CachePut(ctx context.Context, key sdk.Key, value []byte) error {
	if h.left.Add(-1) < 0 {
		return errors.New("the process has ended")
	}
	return h.Host.CachePut(ctx, key, value)
}

// If a process ends while it caches the answers of a request, only some are cached: the next process sends no
// request.
func TestHalfARequestIsCached(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{Answer: echo})
	dir, host := t.TempDir(), &half{}
	host.left.Store(99)
	s := open(t, server.URL, dir, host)
	_, later := s.do(t.Context(), "", "a", "b")
	host.left.Store(3)
	if answers, _ := s.do(t.Context(), later.Handle, "a", "b"); len(host.Cached()) != 3 {
		t.Fatalf("%q, %d are cached", answers, len(host.Cached()))
	}
	host.left.Store(99)
	answers, _ := open(t, server.URL, dir, host).finish(t, later.Handle, "a", "b")
	wants(t, answers, "a0 a1", "b0 b1")
	if server.Batches() != 1 || server.Doubled(2) != 0 {
		t.Errorf("%d batches", server.Batches())
	}
}

// A run that wants fresh answers gets them: batches that ended earlier do not count.
func TestRefreshed(t *testing.T) {
	server, dir := modelserver.Serve(t, modelserver.Options{Answer: echo}), t.TempDir()
	for range 2 {
		open(t, server.URL, dir, &apitest.Host{}).finish(t, "", "a")
	}
	if server.Batches() != 2 {
		t.Errorf("%d batches", server.Batches())
	}
}

// An error of the service does not lose the handle.
func TestServiceFails(t *testing.T) {
	options := modelserver.Options{Answer: echo, Key: "right"}
	server := modelserver.Serve(t, options)
	dir, host := t.TempDir(), &apitest.Host{}
	with := func(url, key string) *stage {
		c := api.New(api.Config{BaseURL: url, Service: api.Service{APIKey: key, Timeout: time.Minute}, Host: host})
		return &stage{c, chatmodel.NewJobs(chatmodel.OpenAI{Client: c}, c, sdk.Setup{Host: host, StateDir: dir})}
	}
	do := func(s *stage, handle string) error {
		_, err := chatmodel.DoJob(t.Context(), s.jobs, handle, func(ctx context.Context) ([]string, error) { return api.Rows(ctx, []string{"a"}, s.row) })
		return err
	}
	if err := do(with(server.URL, "wrong"), ""); sdk.CodeOf(err) != sdk.CodeStopped || !strings.Contains(err.Error(), "could not be sent") {
		t.Errorf("a wrong key: %v", err)
	}
	var later *sdk.Pending
	if err := do(with(server.URL, "right"), ""); !errors.As(err, &later) {
		t.Fatal(err)
	}
	if err := do(with(server.URL, "wrong"), later.Handle); sdk.CodeOf(err) != sdk.CodeStopped || !strings.Contains(err.Error(), "--resume fetches them") {
		t.Errorf("a wrong key later: %v", err)
	}
	if err := do(with("http://127.0.0.1:1/v1", "right"), later.Handle); !errors.As(err, &later) || !strings.Contains(later.Note, "does not say how far") {
		t.Errorf("nobody answers: %v", err)
	}
	host.Refuse = &sdk.Error{Code: sdk.CodeUnavailable, Err: errors.New("the run is offline")}
	if err := do(with(server.URL, "right"), later.Handle); sdk.CodeOf(err) != sdk.CodeUnavailable || !strings.Contains(err.Error(), "under way") {
		t.Errorf("offline, with a handle: %v", err)
	}
	var rows sdk.RowErrors
	if err := do(with(server.URL, "right"), ""); !errors.As(err, &rows) || sdk.CodeOf(rows[0]) != sdk.CodeUnavailable {
		t.Errorf("offline, without one: %v", err)
	}
	host.Refuse = nil
	unknown := strings.Replace(later.Handle, "batch_0", "batch_9", 1)
	if err := do(with(server.URL, "right"), unknown); sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), "does not know the batch") {
		t.Errorf("a batch that is gone: %v", err)
	}
	if err := do(with(server.URL, "right"), "{"); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("no handle: %v", err)
	}
	if answers, _ := with(server.URL, "right").finish(t, later.Handle, "a"); answers[0] != "a0 a1" || server.Batches() != 1 {
		t.Errorf("%q of %d batches", answers, server.Batches())
	}
}

// A handle contains only names and numbers.
func TestHandle(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{Answer: echo, Key: "a-key-that-is-secret"})
	c := api.New(api.Config{BaseURL: server.URL, Service: api.Service{APIKey: "a-key-that-is-secret", Timeout: time.Minute}})
	s := &stage{c, chatmodel.NewJobs(chatmodel.OpenAI{Client: c}, c, sdk.Setup{})}
	_, later := s.do(t.Context(), "", "a")
	var h map[string]any
	if err := json.Unmarshal([]byte(later.Handle), &h); err != nil || strings.Contains(later.Handle, "secret") || fmt.Sprint(h["jobs"]) != "[batch_0]" {
		t.Errorf("%s, %v", later.Handle, err)
	}
	// Without a cache, the replies of all batches are read again.
	answers, _ := s.finish(t, later.Handle, "a")
	wants(t, answers, "a0 a1")
}
