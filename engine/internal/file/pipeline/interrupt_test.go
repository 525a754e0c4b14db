package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// waiting writes a file whose second line asks for an environment variable. It returns options with
// an environment that closes asked and never answers.
func waiting(t *testing.T, release <-chan struct{}) (o Options, asked chan struct{}) {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "p.hcl"), []byte("locals {\n  a = upper(env(\"X\"))\n}\n"), 0o600))
	asked = make(chan struct{})
	return Options{Dir: dir, Catalog: stages(), Getenv: func(string) (string, bool) {
		close(asked)
		<-release
		return "", true
	}}, asked
}

// TestLoadEndsWithItsContext: a function that hangs is abandoned.
func TestLoadEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		o, asked := waiting(t, release)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-asked
			cancel()
		}()
		start := time.Now()
		file, diags := Load(ctx, "p.hcl", o)
		if len(diags) != 1 || diags[0].Summary != "Interrupted" || file == nil {
			t.Errorf("got %v", diags)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("it took %v", took)
		}
		close(release)
	})
}

// TestEvaluationEndsWithItsContext: even if nothing hangs, loading notices the end of its context.
func TestEvaluationEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := newLoader(ctx, "p.hcl", Options{Catalog: stages(), Getenv: func(string) (string, bool) {
		cancel()
		return "x", true
	}})
	diags := l.parse([]byte("locals {\n  a = [env(\"X\"), nonsense]\n}\n"))
	if len(diags) != 1 || diags[0].Summary != "Interrupted" || diags[0].Subject == nil || diags[0].Subject.Start.Line != 2 {
		t.Errorf("got %v", diags)
	}
}

// TestLoadHasATimeLimit waits for bounded.MaxTime, on a clock that jumps.
func TestLoadHasATimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		o, _ := waiting(t, release)
		start := time.Now()
		_, diags := Load(t.Context(), "p.hcl", o)
		if len(diags) != 1 || diags[0].Summary != "Loading takes too long" {
			t.Errorf("got %v", diags)
		}
		if took := time.Since(start); took < bounded.MaxTime || took > 2*bounded.MaxTime {
			t.Errorf("it took %v", took)
		}
		close(release)
	})
}
