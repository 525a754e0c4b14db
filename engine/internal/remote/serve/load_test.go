package serve

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// leak is what a server takes, and has to give back.
type leak struct{ processes, goroutines, files int }

// taken counts what this process has now.
func taken(t testing.TB) leak {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the system does not say which files are open")
	}
	return leak{len(children(t)), runtime.NumGoroutine(), len(files)}
}

// givenBack waits until this process has no more than before.
func (l leak) givenBack(t testing.TB) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	until(func() bool {
		now := taken(t)
		return now.processes <= l.processes && now.goroutines <= l.goroutines && now.files <= l.files
	})
}

// until waits for what happens without a sign. If it never does, the deadline of all tests
// shows where.
func until(holds func() bool) {
	for !holds() {
		time.Sleep(time.Millisecond)
	}
}

// load asks for the rows' own texts until it is stopped. Each answer is 200 and one of
// those that good takes, or a problem with one of the statuses.
type load struct {
	stop     chan struct{}
	work     sync.WaitGroup
	answered atomic.Int64
	refused  sync.Map // by status
}

func (r *real) load(t *testing.T, callers int, good func(text, answer string) bool, statuses ...int) *load {
	l := &load{stop: make(chan struct{})}
	var texts []string
	for text := range right {
		texts = append(texts, text)
	}
	for c := range callers {
		l.work.Go(func() {
			for i := c; ; i++ {
				select {
				case <-l.stop:
					return
				default:
				}
				status, answer, body := r.ask(t, texts[i%len(texts)])
				switch {
				case status == 200 && good(texts[i%len(texts)], answer):
					l.answered.Add(1)
				case status == 200:
					t.Errorf("a wrong answer: %s", body)
				default:
					l.refused.Store(status, body)
				}
			}
		})
	}
	t.Cleanup(func() {
		l.refused.Range(func(status, body any) bool {
			if !slices.Contains(statuses, status.(int)) {
				t.Errorf("%v: %v", status, body)
			}
			return true
		})
	})
	return l
}

func (l *load) end() {
	close(l.stop)
	l.work.Wait()
}

// more waits until so many more were answered.
func (l *load) more(n int64) {
	goal := l.answered.Load() + n
	until(func() bool { return l.answered.Load() >= goal })
}

// answers asks for all rows' own texts, whose labels are theirs or have been renamed.
func (r *real) answers(t testing.TB, label func(string) string) {
	t.Helper()
	for text, want := range right {
		if status, answer, body := r.ask(t, text); status != http.StatusOK || answer != label(want) {
			t.Errorf("%s: %d %s", text, status, body)
		}
	}
}

func same(label string) string { return label }

func (r *real) ask(t testing.TB, text string) (status int, answer, body string) {
	response, err := http.Post(r.url+"/v1/pipelines/intent/answer", "application/json", strings.NewReader(`{"text": "`+text+`"}`))
	if err != nil {
		t.Error(err)
		return 0, "", ""
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	var got struct{ Answer string }
	if err := json.Unmarshal(content, &got); err != nil {
		t.Errorf("%v: %s", err, content)
	}
	return response.StatusCode, got.Answer, string(content)
}
