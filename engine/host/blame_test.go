package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/host/replay"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/wire"
)

// A request with the row to blame is kept without secrets, and fails in the same way when
// it is sent again.
func TestReplay(t *testing.T) {
	h, _ := newHost(t)
	dir := t.TempDir()
	must.Do(t, h.Replays().Into(dir))
	p := start(t, h, Spec{Config: []byte(`{"token": "hush-hush", "dir": "` + t.TempDir() + `"}`), Secrets: []string{"hush-hush"}})
	blamed := wire.Blamed(t.Context())
	for n, text := range []string{"exit hush-hush", "panic", "negative"} {
		_, err := p.Sample(blamed, say(text))
		if err == nil {
			t.Fatalf("%s was answered", text)
		}
		path := filepath.Join(dir, []string{"sample.it-1.json", "sample.it-2.json", "sample.it-3.json"}[n])
		raw, fault := os.ReadFile(path)
		if fault != nil || strings.Contains(string(raw), "hush-hush") {
			t.Fatalf("%s, %v", raw, fault)
		}
		f, fault := replay.Read(path)
		if fault != nil {
			t.Fatal(fault)
		}
		if f.Plugin != "test" || f.Version != "0.1.0" || f.Kind != sdk.KindSample || f.Stage != "echo" || !strings.Contains(string(f.Config), `"token": "(secret)"`) {
			t.Errorf("got %+v", f)
		}
		first, _, _ := strings.Cut(f.How, ":\n")
		if rows := (sdk.RowErrors{}); errors.As(err, &rows) {
			err = rows[0]
		}
		if !strings.HasPrefix(err.Error(), first) {
			t.Errorf("it says %q of %v", first, err)
		}
		if n == 0 { // it ends this process, too
			continue
		}
		message, reply, fault := f.Request.Decode()
		if fault != nil {
			t.Fatal(fault)
		}
		if err := (caller{p}).Invoke(t.Context(), f.Request.Method, message, reply); err != nil {
			t.Errorf("%s again: %v", text, err)
		}
		if n == 1 && !strings.Contains(reply.(failing).GetFailure().GetMessage(), "out of cheese") {
			t.Errorf("%s again: %v", text, reply)
		}
	}
	if _, err := p.Sample(t.Context(), say("panic")); err == nil { // one of many rows, perhaps
		t.Error("it was answered")
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 3 {
		t.Errorf("%d files, %v", len(all), err)
	}
}
