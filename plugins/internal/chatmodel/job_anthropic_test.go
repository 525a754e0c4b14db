package chatmodel_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/plugins/internal/dialect"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// messages asks Anthropic's API about texts, one answer each.
type messages struct {
	client *api.Client
	jobs   *chatmodel.Jobs
}

func openMessages(t *testing.T, url, dir string, host sdk.Host) messages {
	c := api.New(api.Config{BaseURL: url, Service: api.Service{APIKey: "k", Timeout: time.Minute}, Key: dialect.Anthropic{}.Header, Host: host})
	t.Cleanup(func() { _ = c.Close() })
	return messages{c, chatmodel.NewJobs(chatmodel.Anthropic{Client: c}, c, sdk.Setup{Host: host, StateDir: dir})}
}

func (m messages) row(ctx context.Context, text string) (answer string, err error) {
	found, err := m.client.CacheGet(ctx, []sdk.Key{key(text, 0)})
	if err != nil || found[0] != nil {
		return string(found[0]), err
	}
	asked := dialect.Request{Model: "m", MaxTokens: 9, Messages: []sdk.Message{{Role: "user", Text: text}}}
	body, err := dialect.Anthropic{}.Body(asked)
	if err != nil {
		return "", err
	}
	r := &api.Request{Client: m.client, Tokens: 9, Bounded: true}
	r.Read = func(reply []byte) (sdk.Usage, error) {
		read, err := dialect.Anthropic{}.Read(reply, asked)
		if err == nil && len(read.Choices) > 0 {
			answer = read.Choices[0].Text
		}
		return read.Usage, err
	}
	r.OnReply = func() error {
		m.client.CachePut(ctx, []sdk.Key{key(text, 0)}, [][]byte{[]byte(answer)})
		return nil
	}
	return answer, r.Post(api.For(ctx, key(text, 0)), "/messages", body, nil)
}

// do asks or collects once; finish repeats this until nothing is pending.
func (m messages) do(ctx context.Context, handle string, texts ...string) ([]string, *sdk.Pending) {
	got, err := chatmodel.DoJob(ctx, m.jobs, handle, func(ctx context.Context) ([]string, error) { return api.Rows(ctx, texts, m.row) })
	var later *sdk.Pending
	if errors.As(err, &later) {
		return nil, later
	}
	var rows sdk.RowErrors
	if !errors.As(err, &rows) && err != nil {
		got = []string{err.Error()}
	}
	for i, err := range rows {
		got[i] = err.Error()
	}
	return got, nil
}

func (m messages) finish(t *testing.T, handle string, texts ...string) []string {
	t.Helper()
	for range 100 {
		answers, later := m.do(t.Context(), handle, texts...)
		if later == nil {
			return answers
		}
		handle = later.Handle
	}
	t.Fatalf("it is pending for ever: %s", handle)
	return nil
}

func TestMessageBatch(t *testing.T) {
	once := func(a modelserver.Ask) bool { return a.Text() == "flaky" && a.Batch == "msgbatch_0" }
	tests := []struct {
		name    string
		options modelserver.Options
		batches int
		want    []string
	}{
		{"all is well", modelserver.Options{Batches: modelserver.Batches{Polls: 2}}, 1, []string{"a0", "flaky0"}},
		{"an error that passes", modelserver.Options{Faults: []modelserver.Fault{{Kind: modelserver.Status, Status: 529, If: once}}}, 2, []string{"a0", "flaky0"}},
		{"no time", modelserver.Options{Batches: modelserver.Batches{Expires: func(batch, request int) bool { return batch == 0 && request == 0 }}}, 2, []string{"a0", "flaky0"}},
		{
			"an error that does not", modelserver.Options{Refuse: func(a modelserver.Ask) bool { return a.Text() == "flaky" }}, 1,
			[]string{"a0", "the server answered 400: refused, as the test says"},
		},
		{"a batch that somebody cancelled", modelserver.Options{Batches: modelserver.Batches{Fails: "x"}}, 1, []string{"the batch msgbatch_0 was cancelled", "the batch msgbatch_0 was cancelled"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.options.Answer, test.options.Key = echo, "k"
			server, host := modelserver.Serve(t, test.options), &apitest.Host{}
			m := openMessages(t, server.URL, t.TempDir(), host)
			_, later := m.do(t.Context(), "", "a", "flaky")
			if later == nil || !strings.Contains(later.Note, "batch of 2 requests, 0 done, at most 24 h") {
				t.Fatalf("pending: %+v", later)
			}
			if calls := host.Calls(); len(calls) != 1 || !calls[0].Batch || calls[0].Most.OutputTokens != 18 {
				t.Errorf("reserved %+v", calls)
			}
			wants(t, m.finish(t, later.Handle, "a", "flaky"), test.want...)
			if spent := host.Spent(t); server.Batches() != test.batches || server.Doubled(1) != 0 || test.batches == 2 && spent.OutputTokens != 3 {
				t.Errorf("%d batches, %d answers too many, spent %+v", server.Batches(), server.Doubled(1), spent)
			}
			for _, a := range server.Asks() {
				if a.Batch == "" {
					t.Errorf("%s was asked alone", a.Text())
				}
			}
		})
	}
}

// If a process ends at any step, the next one finds what was sent, even if another program has sent as many requests.
func TestNoMessageIsLost(t *testing.T) {
	for _, at := range []modelserver.BatchStep{modelserver.BatchUploading, modelserver.BatchCreated, modelserver.BatchPolled, modelserver.BatchSending, modelserver.BatchSent} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			var kill context.CancelFunc
			killed, ready := false, false
			created := make(chan struct{}, 9)
			server := modelserver.Serve(t, modelserver.Options{Answer: echo, Batches: modelserver.Batches{On: func(step modelserver.BatchStep) {
				if step == modelserver.BatchCreated {
					created <- struct{}{}
				}
				if step == at && ready && !killed {
					killed = true
					kill()
				}
			}}})
			others := openMessages(t, server.URL, t.TempDir(), &apitest.Host{})
			others.finish(t, "", "c", "d")
			<-created
			dir, host := t.TempDir(), &apitest.Host{}
			handle, before := "", server.Batches()
			ready = true
			for range 20 {
				ctx, cancel := context.WithCancel(t.Context())
				kill = cancel
				answers, later := openMessages(t, server.URL, dir, host).do(ctx, handle, "a", "b")
				ended := ctx.Err() != nil
				cancel()
				if ended && at == modelserver.BatchUploading {
					<-created // the service finishes its step before the next request
				}
				if later != nil && !ended {
					handle = later.Handle
				}
				if later != nil || ended {
					continue
				}
				wants(t, answers, "a0", "b0")
				break
			}
			if !killed || server.Batches() != before+1 || server.Doubled(1) != 0 {
				t.Errorf("killed: %t, %d batches, %d answers too many", killed, server.Batches()-before, server.Doubled(1))
			}
		})
	}
}

// If the newest batch has the same size, the right batch is found by its mark.
func TestFindByMark(t *testing.T) {
	server := modelserver.Serve(t, modelserver.Options{Answer: echo})
	c := api.New(api.Config{BaseURL: server.URL, Key: dialect.Anthropic{}.Header, Service: api.Service{Timeout: time.Minute}})
	service := chatmodel.Anthropic{Client: c}
	send := func(mark string) string {
		job, err := service.Submit(t.Context(), mark, []chatmodel.JobLine{
			{ID: "only", Path: "/messages", Body: []byte(`{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}]}`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if job, err = service.Status(t.Context(), job.ID); err != nil || !job.Ended || job.Requests != 1 || job.Done != 1 {
			t.Fatalf("%+v, %v", job, err)
		}
		return job.ID
	}
	first, second := send("0123456789abcdef0123456789abcdefFIRST"), send("0123456789abcdef0123456789abcdefOTHER")
	for mark, want := range map[string]string{"0123456789abcdef0123456789abcdefFIRST": first, "0123456789abcdef0123456789abcdefOTHER": second, "0123456789abcdef0123456789abcdefNEVER": ""} {
		job, found, err := service.Find(t.Context(), mark, 1)
		if err != nil || job.ID != want || found != (want != "") {
			t.Errorf("%s: %+v, %t, %v", mark, job, found, err)
		}
	}
	if _, found, err := service.Find(t.Context(), "0123456789abcdef0123456789abcdefFIRST", 2); found || err != nil {
		t.Errorf("a batch of another size: %t, %v", found, err)
	}
	if _, err := service.Status(t.Context(), "msgbatch_999"); !api.NotFound(err) {
		t.Errorf("a batch that is not there: %v", err)
	}
	var got []chatmodel.JobReply
	if err := service.Replies(t.Context(), chatmodel.Job{ID: first}, func(r chatmodel.JobReply) { got = append(got, r) }); err != nil || len(got) != 1 || got[0].ID != "only" || got[0].Status != http.StatusOK {
		t.Errorf("replies %+v, %v", got, err)
	}
}
