package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestIdleConnections: thousands of idle connections do not block other clients, and are closed.
func TestIdleConnections(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 500
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < uint64(n+500) {
		t.Skipf("%d files may be open, and %d connections are more: %v", limit.Cur, n, err)
	}
	before := taken(t)
	r := serveStart(t, Options{Guard: GuardOptions{Header: 3 * time.Second}})
	others := exec.Command(os.Args[0]) // so that this process holds only one end of each connection
	others.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", idling, strings.TrimPrefix(r.url, "http://"), n))
	others.Stderr = os.Stderr
	out := must.Get(others.StdoutPipe())(t)
	must.Do(t, others.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "connected\n" {
		t.Fatalf("%q, %v", line, err)
	}
	r.answers(t, same)
	if err := others.Wait(); err != nil { // ends when the server has closed them all
		t.Error(err)
	}
	r.stop()
	before.givenBack(t)
}

// endless is a body without an end.
type endless struct {
	head string
	sent atomic.Int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.head)
	e.head = e.head[n:]
	for i := n; i < len(p); i++ {
		p[i] = 'x'
	}
	e.sent.Add(int64(len(p)))
	return len(p), nil
}

// TestHugeBodies: a gigabyte is refused before it has arrived. A gigabyte in one line of a batch
// fails alone, without being held in memory.
func TestHugeBodies(t *testing.T) {
	size := int64(1) << 30
	if testing.Short() {
		size = 1 << 27
	}
	before := taken(t)
	r := serveStart(t, Options{})
	var first, last runtime.MemStats
	runtime.ReadMemStats(&first)
	for name, test := range map[string]struct {
		header, head string
		status       int
		want         string
	}{
		"with its length":    {fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d", size), `{"text": "`, 413, "4194304"},
		"without its length": {"Content-Type: application/json\r\nTransfer-Encoding: chunked", `{"text": "`, 413, "4194304"},
		"one line":           {fmt.Sprintf("Content-Type: application/x-ndjson\r\nContent-Length: %d", size), `{"text": "red apple"}` + "\n", 200, "it is longer than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			c := must.Get(net.Dial("tcp", strings.TrimPrefix(r.url, "http://")))(t)
			defer c.Close() //nolint:errcheck // what it says is known
			body := &endless{head: test.head}
			sending := make(chan struct{})
			go func() {
				defer close(sending)
				_, _ = fmt.Fprintf(c, "POST /v1/pipelines/intent/answer HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n\r\n", test.header)
				to := io.Writer(c)
				if strings.Contains(test.header, "chunked") {
					to = chunks{c}
				}
				_, _ = io.Copy(to, io.LimitReader(body, size)) // the server may not take it
			}()
			response, err := http.ReadResponse(bufio.NewReader(c), nil) //nolint:bodyclose // its connection is closed
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != test.status || !strings.Contains(string(text), test.want) {
				t.Errorf("%s %s, %v", response.Status, text, err)
			}
			_ = c.Close()
			<-sending
			if test.status == 200 {
				if body.sent.Load() < size || !strings.Contains(string(text), `"answer":"fruit"`) {
					t.Errorf("%d bytes were sent\n%s", body.sent.Load(), text)
				}
			} else if sent := body.sent.Load(); sent > 64<<20 { // allowance for the system's buffers
				t.Errorf("%d bytes were taken", sent)
			}
		})
	}
	if runtime.ReadMemStats(&last); last.TotalAlloc-first.TotalAlloc > 64<<20 {
		t.Errorf("%d MB were allocated", (last.TotalAlloc-first.TotalAlloc)>>20)
	}
	r.stop()
	before.givenBack(t)
}

// chunks writes a body in HTTP/1.1's chunked encoding.
type chunks struct{ to io.Writer }

func (c chunks) Write(p []byte) (int, error) {
	if _, err := fmt.Fprintf(c.to, "%x\r\n%s\r\n", len(p), p); err != nil {
		return 0, err
	}
	return len(p), nil
}
