package cli

import (
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/racflow/racflow/engine/internal/plugin/model"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/serve"
)

func init() { programs["racflow-plugin-remembered"] = rememberedPlugin }

// rememberedPlugin is the main function of a plugin with the embedder minilm, which stores its
// vectors in the state folder. So tests that measure the same texts several times embed each text
// once. It behaves like minilm without a precision in the file: figures may differ a little between
// processors.
func rememberedPlugin() {
	stage := sdk.EmbedStage("minilm", "", func(ctx context.Context, s sdk.Setup, _ struct{}) (sdk.Embedder, error) {
		inner, err := ours(sdk.KindEmbed, "minilm").Open(ctx, s, []byte(`{}`))
		if err != nil {
			return nil, err
		}
		r := &remembered{Embedder: inner.(sdk.Embedder), known: map[[sha256.Size]byte][]float32{}}
		return r, r.open(filepath.Join(filepath.Dir(filepath.Dir(s.StateDir)), "vectors.gob"))
	}, sdk.Revision("1"), sdk.PreferBatch(64))
	serve.Plugin(sdk.Plugin{Name: "remembered", Version: "0.1.0", Stages: []sdk.Stage{stage}})
}

type remembered struct {
	sdk.Embedder
	mu    sync.Mutex
	file  *os.File
	known map[[sha256.Size]byte][]float32
}

// vectors maps the hash of a text to its vector.
type vectors map[[sha256.Size]byte][]float32

// open reads the vectors of earlier processes.
func (r *remembered) open(path string) (err error) {
	if r.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return err
	}
	for {
		var some vectors
		err := gob.NewDecoder(exactly{r.file}).Decode(&some)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // a process was cut off
			return nil
		}
		if err != nil {
			return err
		}
		for text, vector := range some {
			r.known[text] = vector
		}
	}
}

// exactly keeps a decoder from reading beyond its value.
type exactly struct{ *os.File }

func (e exactly) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(e.File, b[:])
	return b[0], err
}

func (r *remembered) Embed(ctx context.Context, role sdk.Role, texts []string) ([][]float32, error) {
	all, some := make([][]float32, len(texts)), vectors{}
	var fresh []string
	var places []int
	r.mu.Lock()
	for i, text := range texts {
		if all[i] = r.known[sha256.Sum256([]byte(text))]; all[i] == nil {
			fresh, places = append(fresh, text), append(places, i)
		}
	}
	r.mu.Unlock()
	if len(fresh) == 0 {
		return all, nil
	}
	made, err := r.Embedder.Embed(ctx, role, fresh)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, vector := range made {
		key := sha256.Sum256([]byte(fresh[i]))
		all[places[i]], r.known[key], some[key] = vector, vector, vector
	}
	return all, gob.NewEncoder(r.file).Encode(some)
}

// rememberedReach is the part of a file that lets the plugin read its model, and the vectors of
// earlier tests.
const rememberedReach = `
required_plugins {
  remembered = { confined = false }
}
`

// withRememberedMiniLM returns arguments with which a run embeds by minilm, each text once in all
// tests; the file needs rememberedReach. It skips the test if the model is missing.
func withRememberedMiniLM(t testing.TB, dir string) []string {
	t.Helper()
	if m, err := model.Find("minilm"); err != nil {
		t.Fatal(err)
	} else if status, err := model.StatusOf(m.Name); err != nil || !status.Installed {
		t.Skip("the model is not here: racflow model pull minilm")
	}
	binary, err := os.ReadFile(racflow(t, dir).Path)
	if err == nil { // the engine tells plugins apart by their hash
		err = os.WriteFile(filepath.Join(dir, "racflow-plugin-remembered"), append(binary, 0), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--plugins", dir, "--state", sharedState(), "-var", "embedder=remembered/minilm"}
}

// sharedState is a state folder that tests share; TestMain removes it.
var sharedState = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "racflow-test-*")
	if err != nil {
		panic(err)
	}
	removed = append(removed, dir)
	return dir
})

// removed are folders to remove after all tests.
var removed []string
