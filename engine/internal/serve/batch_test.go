package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/racflow/racflow/engine/internal/serve/live"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestBatch: lines are answered in order; an invalid line fails alone.
func TestBatch(t *testing.T) {
	p := newFake("p")
	p.To = func(ctx context.Context, i workspace.Item) (workspace.Result, error) {
		if i.Text == "fails" {
			return workspace.Result{ID: i.ID, Votes: []result.Vote{}, Error: &result.Failure{Line: 1, Stage: "sample.x", Message: "it ended"}}, nil
		}
		return shout(ctx, i)
	}
	_, url := serving(t, Options{}, p)
	body := strings.Join([]string{
		`{"text": "a"}`, ``, `{"id": "x", "text": "b"} `, `{"text": `, `{"text": "c", "more": 1}`, `{"text": "d"} {}`, `[]`,
		`{"text": " "}`, `{"text": "fails"}`, `{"text": "` + strings.Repeat("x", 1<<20) + `"}`, "{\"text\": \"a\xff\"}", `{"text": "last"}`,
	}, "\r\n")
	response, text := post(t, url+"/v1/pipelines/p/answer", "application/jsonl; charset=utf-8", body)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != linesType {
		t.Errorf("%s %s", response.Status, response.Header)
	}
	bad := func(line int, message string) string {
		return fmt.Sprintf(`{"id":"%d","text":"","answer":null,"agreement":0,"flagged":false,"votes":[],"error":{"line":%[1]d,%s}}`, line, message)
	}
	want := []string{
		`{"id":"1","text":"a","answer":"A","agreement":0,"flagged":false,"votes":[]}`,
		`{"id":"x","text":"b","answer":"B","agreement":0,"flagged":false,"votes":[]}`,
		bad(4, `"message":"the line is no item: column 9: unexpected end of JSON input"`),
		strings.Replace(bad(5, `"message":"the line is no item: json: unknown field \"more\""`), `"text":""`, `"text":"c"`, 1),
		strings.Replace(bad(6, `"message":"the line is no item: something follows it; write one JSON object a line"`), `"text":""`, `"text":"d"`, 1),
		bad(7, `"message":"the line is no item: it has array where the item should be"`),
		strings.Replace(bad(8, `"message":"the text is empty"`), `"text":""`, `"text":" "`, 1),
		bad(9, `"stage":"sample.x","message":"it ended"`),
		bad(10, `"message":"it is longer than 1048576 bytes"`),
		bad(11, `"message":"the line is no item: column 12: it is not UTF-8"`),
		`{"id":"12","text":"last","answer":"LAST","agreement":0,"flagged":false,"votes":[]}`, "",
	}
	if got := strings.Split(text, "\n"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", text, strings.Join(want, "\n"))
	}
	_, text = post(t, url+"/v1/pipelines/p/retrieve", linesType, "{\"text\": \"a\"}\n{\"text\": \"\"}\n")
	if want := `{"id":"1","candidates":[{"id":"c1","text":"a","score":1}]}` + "\n" +
		`{"id":"2","candidates":[],"error":{"line":2,"message":"the text is empty"}}` + "\n"; text != want {
		t.Errorf("%s", text)
	}
}

// conversation begins a batch whose lines are written while answers are read.
func conversation(t *testing.T, url string) (io.WriteCloser, *bufio.Reader) {
	t.Helper()
	from, to := io.Pipe()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, url, from))(t)
	r.Header.Set("Content-Type", linesType)
	got := make(chan *http.Response)
	go func() {
		response, err := http.DefaultClient.Do(r) //nolint:bodyclose // the test reads it on, and closes it at its end
		if err != nil {
			t.Error(err)
			close(got)
			return
		}
		got <- response
	}()
	_, _ = io.WriteString(to, "{\"text\": \"first\"}\n")
	response := <-got
	if response == nil {
		t.FailNow()
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return to, bufio.NewReader(response.Body)
}

// TestConversation: answers come one after the other, while the client still sends.
func TestConversation(t *testing.T) {
	_, url := serving(t, Options{}, newFake("p"))
	to, from := conversation(t, url+"/v1/pipelines/p/answer")
	for i := range 100 {
		text, err := from.ReadString('\n')
		if err != nil || i > 0 && !strings.Contains(text, fmt.Sprintf(`"answer":"N%d"`, i)) {
			t.Fatalf("%d: %s, %v", i, text, err)
		}
		_, _ = fmt.Fprintf(to, "{\"text\": \"n%d\"}\n", i+1)
	}
	_ = to.Close()
	if rest, err := io.ReadAll(from); err != nil || strings.Count(string(rest), "\n") != 1 {
		t.Errorf("%s, %v", rest, err)
	}
}

// TestWindow: if a batch is sent faster than it is answered, the window limits the items under way.
func TestWindow(t *testing.T) {
	p := newFake("p")
	var now, most atomic.Int64
	step := make(chan struct{})
	p.To = func(ctx context.Context, i workspace.Item) (workspace.Result, error) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		select {
		case <-step:
		case <-ctx.Done():
		}
		return shout(ctx, i)
	}
	_, url := serving(t, Options{Window: 4}, p)
	go func() {
		for range 200 {
			step <- struct{}{}
		}
	}()
	_, text := post(t, url+"/v1/pipelines/p/answer", linesType, strings.Repeat("{\"text\": \"a\"}\n", 200))
	if n := strings.Count(text, `"answer":"A"`); n != 200 {
		t.Errorf("%d answers", n)
	}
	if n := most.Load(); n > 6 { // the window, the line that is written, and the line that waits to enter
		t.Errorf("%d were under way", n)
	}
}

// TestBusyBatch: a batch waits in a situation where a single request is refused.
func TestBusyBatch(t *testing.T) {
	p := newFake("p")
	var tries atomic.Int64
	p.To = func(ctx context.Context, i workspace.Item) (workspace.Result, error) {
		if tries.Add(1)%3 != 0 {
			return workspace.Result{}, live.ErrBusy
		}
		return shout(ctx, i)
	}
	_, url := serving(t, Options{}, p)
	if _, text := post(t, url+"/v1/pipelines/p/answer", linesType, strings.Repeat("{\"text\": \"a\"}\n", 20)); strings.Count(text, `"answer":"A"`) != 20 {
		t.Errorf("%s", text)
	}
}

// TestCutBatch: if a client disconnects in the middle of a batch, the batch and its work end.
func TestCutBatch(t *testing.T) {
	p := newFake("p")
	ended := make(chan error, 1)
	p.To = func(ctx context.Context, i workspace.Item) (workspace.Result, error) {
		if i.Text == "first" {
			return shout(ctx, i)
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return workspace.Result{}, ctx.Err()
	}
	_, url := serving(t, Options{}, p)
	to, from := conversation(t, url+"/v1/pipelines/p/answer")
	must.Get(from.ReadString('\n'))(t)
	_, _ = io.WriteString(to, "{\"text\": \"second\"}\n")
	_ = to.(*io.PipeWriter).CloseWithError(errors.New("gone"))
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if rest, err := io.ReadAll(from); err == nil {
		t.Errorf("it looks whole: %s", rest)
	}
}
