package host

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/host/memory"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// A process that holds more than its bound is ended, the row that makes it do so fails and says why,
// and the stage answers again.
func TestMemoryOfAStage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is watched on Linux alone")
	}
	h, log := newHost(t)
	p := start(t, h, Spec{Memory: 384 << 20})
	_, err := ask(t, p, "hold 512")
	if err == nil || !errors.Is(err, sdk.ErrCrashed) || !strings.Contains(err.Error(), "while it worked on this, 3 times: racflow ended it, since it held ") ||
		!strings.Contains(err.Error(), "more than the 384.0 MiB of memory of sample.it") {
		t.Errorf("got %v", err)
	}
	wantEcho(t, p, "a")
	if got, _ := ask(t, p, "environment"); !strings.Contains(got+"\n", fmt.Sprintf("\nGOMEMLIMIT=%d\n", 384<<20/10*9)) {
		t.Errorf("the environment is %s", got)
	}
	if !strings.Contains(log.String(), "of memory of sample.it") {
		t.Error("the log does not say why the stage was ended")
	}
}

// own is how many bytes this process holds, which count, too: earlier tests and the race detector add hundreds of MiB.
func own(t *testing.T) int64 {
	t.Helper()
	status := must.Get(os.ReadFile("/proc/self/status"))(t)
	_, rest, _ := strings.Cut(string(status), "\nRssAnon:")
	kib, _, _ := strings.Cut(strings.TrimSpace(rest), " kB")
	return must.Get(strconv.ParseInt(kib, 10, 64))(t) << 10
}

// Where all processes hold too much together, the largest is ended, and no other.
func TestMemoryOfAll(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is watched on Linux alone")
	}
	h, _ := newHost(t)
	bound := int64(640<<20) + own(t)
	h.BoundMemory(bound, `pipeline "p"`)
	small, large := start(t, h, Spec{}), start(t, h, Spec{Memory: 1 << 30})
	if got, _ := ask(t, large, "environment"); !strings.Contains(got+"\n", fmt.Sprintf("\nGOMEMLIMIT=%d\n", min(bound, 1<<30)/10*9)) {
		t.Errorf("the environment is %s", got)
	}
	before, err := ask(t, small, "pid")
	must.Do(t, err)
	if _, err := ask(t, small, "keep 100"); err != nil {
		t.Fatal(err)
	}
	_, err = ask(t, large, "hold 600")
	if err == nil || !strings.Contains(err.Error(), "racflow ended it, since all processes of the run held ") ||
		!strings.Contains(err.Error(), "more than the "+memory.Size(bound)+` of memory of pipeline "p"; it was the largest, with`) {
		t.Errorf("got %v", err)
	}
	if after, err := ask(t, small, "pid"); after != before || err != nil {
		t.Errorf("the smaller process was %s and is %s, %v", before, after, err)
	}
}

// A process that does not even start within its bound says so.
func TestMemoryAtTheStart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is watched on Linux alone")
	}
	h, _ := newHost(t)
	h.limits.restarts = 1
	_, err := h.Start(t.Context(), Spec{Kind: sdk.KindSample, Use: "hog", Block: "it", Memory: 128 << 20})
	if err == nil || !strings.Contains(err.Error(), "racflow ended it, since it held") {
		t.Errorf("got %v", err)
	}
}
