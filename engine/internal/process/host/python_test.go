package host

import (
	"archive/zip"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/sdk"
	packaged "github.com/racflow/racflow/sdk/python"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// python makes a folder with the Python example, with racflow-plugin in vendor/ as for an author, and
// returns its program.
func python(t testing.TB) program.Program {
	t.Helper()
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	if out, err := exec.Command(interpreter, "-c", "import grpc, cryptography, google.protobuf").CombinedOutput(); err != nil {
		t.Skipf("python3 lacks packages that racflow-plugin needs: %s", out)
	}
	const name = "racflow-plugin-length"
	script, err := os.ReadFile(filepath.Join("../../../../examples/plugin-python", name, name))
	must.Do(t, err)
	_, wheel, err := packaged.Wheel()
	must.Do(t, err)
	archive, err := zip.NewReader(bytes.NewReader(wheel), int64(len(wheel)))
	must.Do(t, err)
	dir := filepath.Join(t.TempDir(), name)
	must.Do(t, os.CopyFS(filepath.Join(dir, "vendor"), archive))
	must.Do(t, os.WriteFile(filepath.Join(dir, name), script, 0o700))
	length, err := program.At(dir)
	must.Do(t, err)
	return length
}

// TestPython checks that the example, and with it the package racflow-plugin, stands what a plugin
// must stand: a kill, cancelled calls and the largest batches.
func TestPython(t *testing.T) {
	length := python(t)
	h, log := newHost(t)
	offered, err := h.Describe(t.Context(), length)
	if err != nil || len(offered.Stages) != 1 || offered.Stages[0].Name != "bylength" {
		t.Fatalf("got %+v, %v", offered, err)
	}
	p := start(t, h, Spec{
		Kind: sdk.KindSample, Use: "length/bylength", Program: &length,
		Config: []byte(`{"limit": 5, "long_label": "long", "short_label": "short"}`),
	})
	check := func(what string) {
		t.Helper()
		out, err := p.Sample(t.Context(), say("abc", "abcdef", ""))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for i, want := range []string{"short", "long", "short"} {
			if got := out[i][0].Answers[0]; got.Label != want || got.Weight != 1 {
				t.Errorf("%s: row %d got %+v, want %s", what, i, got, want)
			}
		}
	}
	check("at first")

	// A message of 64 MiB arrives; a larger one is refused with advice.
	large := make([]string, 63)
	for i := range large {
		large[i] = strings.Repeat("x", 1<<20)
	}
	if out, err := p.Sample(t.Context(), say(large...)); err != nil || len(out) != len(large) || out[62][0].Answers[0].Label != "long" {
		t.Errorf("63 MiB: %v", err)
	}
	if _, err := p.Sample(t.Context(), say(append(large, large[:2]...)...)); sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), "smaller batches") {
		t.Errorf("65 MiB: %v", err)
	}

	// Calls that are cancelled in the middle leave the process as it is.
	running := func() *runningProcess {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.current.process.running
	}
	before := running().ID()
	var calls sync.WaitGroup
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*2*time.Millisecond)
		calls.Go(func() {
			defer cancel()
			_, err := p.Sample(ctx, say(large[:20]...))
			if code := sdk.CodeOf(err); err != nil && code != sdk.CodeDeadline {
				t.Errorf("a call without time: %v", err)
			}
		})
	}
	calls.Wait()
	check("after calls that were cancelled")
	if after := running().ID(); after != before {
		t.Errorf("process %s follows %s", after, before)
	}

	// A process that is killed during calls is replaced, and the calls are repeated.
	for range 8 {
		calls.Go(func() {
			if out, err := p.Sample(t.Context(), say(large[:8]...)); err != nil || out[7][0].Answers[0].Label != "long" {
				t.Errorf("a call to a process that was killed: %v", err)
			}
		})
	}
	must.Do(t, running().cmd.Process.Signal(syscall.SIGKILL))
	calls.Wait()
	check("after a kill")
	if !strings.Contains(log.String(), "started again") {
		t.Error("it was not started again")
	}
}

// BenchmarkPython sends batches of 64 rows to the example. It measures the cost per item of a hop to
// a stage in Python.
func BenchmarkPython(b *testing.B) {
	length := python(b)
	h, _ := newHost(b)
	p := start(b, h, Spec{
		Kind: sdk.KindSample, Use: "length/bylength", Program: &length,
		Config: []byte(`{"long_label": "long", "short_label": "short"}`),
	})
	texts := make([]string, 64)
	for i := range texts {
		texts[i] = strings.Repeat("a text of a usual length ", 1+i%8)
	}
	batch := say(texts...)
	for b.Loop() {
		if out, err := p.Sample(b.Context(), batch); err != nil || len(out) != len(texts) {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(texts)), "µs/item")
}
