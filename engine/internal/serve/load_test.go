package serve

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// leak counts resources that a server must release.
type leak struct{ processes, goroutines, files int }

// taken counts the resources of this process.
func taken(t testing.TB) leak {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the system does not say which files are open")
	}
	return leak{len(children(t)), runtime.NumGoroutine(), len(files)}
}

// givenBack waits until this process has no more resources than before.
func (l leak) givenBack(t testing.TB) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	until(func() bool {
		now := taken(t)
		return now.processes <= l.processes && now.goroutines <= l.goroutines && now.files <= l.files
	})
}

// until polls a condition. If it never holds, the deadline of all tests shows where.
func until(holds func() bool) {
	for !holds() {
		time.Sleep(time.Millisecond)
	}
}

// answers asks about the texts of all rows, and checks their labels, which may be renamed.
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
