package shipment_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/remote/shipment"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// A model that is called by its name is found by that on every machine; where the weights are others, it is lacking. The model of
// a stage that names none has to be where the stage looks for it.
func TestModels(t *testing.T) {
	install := func(name, weights string) {
		t.Helper()
		dir := filepath.Join(os.Getenv(sdk.ModelsVariable), name)
		must.Do(t, errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "model.safetensors"), []byte(weights), 0o644)))
	}
	t.Setenv(sdk.ModelsVariable, t.TempDir())
	install("minilm", "mini")
	install("named", "weights")
	w := newWorld(t)
	w.write("project/p.hcl", strings.NewReplacer(`"models/m"`, `"named"`, `use = "hashing"`, `use = "minilm"`).Replace(file))
	b := w.bundled()
	if len(b.Models) != 2 {
		t.Fatalf("%+v", b.Models)
	}
	w.gone()
	at, _ := worker(t)
	at.Models = nil
	for _, c := range []struct {
		name, weights string
		lacks         []string
	}{
		{"named", "others", []string{"model named, which", "model minilm is not here: racflow model pull minilm"}},
		{"named", "weights", []string{"model minilm is not here: racflow model pull minilm"}},
		{"elsewhere2", "mini", []string{"model minilm is not here: racflow model pull minilm"}},
		{"minilm", "mini", nil},
	} {
		install(c.name, c.weights)
		_, o, err := b.Unpack(t.Context(), objects{}, at)
		var lacks *shipment.LacksError
		if errors.As(err, &lacks); err != nil && lacks == nil || err == nil && len(c.lacks) > 0 {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err == nil {
			if got := o.Away(w.path("project/named")); got != filepath.Join(os.Getenv(sdk.ModelsVariable), "named") {
				t.Errorf("it is at %s", got)
			}
			continue
		}
		slices.Sort(lacks.Lacks)
		slices.Sort(c.lacks)
		if len(lacks.Lacks) != len(c.lacks) || !slices.EqualFunc(lacks.Lacks, c.lacks, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", c.name, lacks.Lacks, c.lacks)
		}
	}
}

// What is not here is told, each with what to do.
func TestLacks(t *testing.T) {
	w := newWorld(t)
	w.env["TELLER_REGION"] = "west"
	b := w.bundled()
	b.Plugins = []shipment.BundledPlugin{{Name: "mine", Version: "1.2", Hash: "sha256:" + strings.Repeat("a", 64)}, {Name: "new", Hash: "x", Development: true}}
	b.Models = append(b.Models, shipment.BundledModel{Name: "minilm", Digest: "d", Size: 1})
	w.gone()
	at, _ := worker(t)
	at.Models = nil
	_, _, err := b.Unpack(t.Context(), objects{}, at)
	var lacks *shipment.LacksError
	if !errors.As(err, &lacks) {
		t.Fatal(err)
	}
	for i, want := range []string{
		"the environment has no TELLER_REGION, which the file reads: set it",
		"model m, which the file has as " + w.path("project/models/m") + ", is not here, or has other weights: racflow model pull",
		"model minilm is not here: racflow model pull minilm",
		`the plugin "mine", version 1.2, has no program for`,
		`the plugin "new" is being developed`,
	} {
		if len(lacks.Lacks) <= i || !strings.Contains(lacks.Lacks[i], want) {
			t.Errorf("%q is missing: %q", want, lacks.Lacks)
		}
	}
}
