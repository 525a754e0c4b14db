package embed

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/plugins/internal/simd"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// tiny is a random BERT of two layers, without a layer that normalises.
const tiny = "../encoder/testdata/tiny"

func arguments(t *testing.T, values map[string]any) string {
	t.Helper()
	if values["model"] == nil {
		dir, err := filepath.Abs(tiny)
		must.Do(t, err)
		values["model"] = dir
	}
	text, err := json.Marshal(values)
	must.Do(t, err)
	return string(text)
}

func start(t *testing.T, stage sdk.Stage, setup sdk.Setup, values map[string]any) any {
	t.Helper()
	open, err := stage.Open(t.Context(), setup, []byte(arguments(t, values)))
	must.Do(t, err)
	return open
}

func TestEncoderConformance(t *testing.T) {
	for _, precision := range []string{"auto", "float32", "int8"} {
		t.Run(precision, func(t *testing.T) {
			sdktest.Stage(t, Encoder(), arguments(t, map[string]any{"precision": precision}))
		})
	}
	t.Run("minilm", func(t *testing.T) { sdktest.Stage(t, MiniLM(), arguments(t, map[string]any{})) })
}

// Vectors differ by rounding between processors, so their cosines are compared.
func TestEncoderGolden(t *testing.T) {
	for precision, want := range map[string]string{"float32": "1 5b70a6e2c8d9fd6c", "int8": "1 a9663293f0ae036e"} {
		t.Run(precision, func(t *testing.T) {
			stage := start(t, MiniLM(), sdk.Setup{}, map[string]any{"model": modelDir(t), "precision": precision})
			vectors, err := stage.(sdk.Embedder).Embed(t.Context(), sdk.RolePassage, []string{
				"my card was lost", "somebody stole my card", "what is my account's balance?", "Book a flight from Zürich to 東京, please!",
			})
			must.Do(t, err)
			var cosines []float64
			for i, a := range vectors {
				for _, b := range vectors[i+1:] {
					cosines = append(cosines, math.Round(float64(simd.Best().Dot(a, b))*100)/100)
				}
			}
			apitest.Compare(t, MiniLM(), cosines, want)
		})
	}
}

// The vectors of each choice have their own fingerprint, so that the engine does not mix them. Settings that change
// no vector keep the fingerprint.
func TestFingerprints(t *testing.T) {
	stage := Encoder()
	print := func(values map[string]any) string {
		return stage.Fingerprint(start(t, stage, sdk.Setup{}, values))
	}
	plain := print(map[string]any{"precision": "float32"})
	seen := map[string]string{plain: "float32"}
	for name, values := range map[string]map[string]any{
		"auto":           {},
		"int8":           {"precision": "int8"},
		"dimensions":     {"precision": "float32", "dimensions": 8},
		"max tokens":     {"precision": "float32", "max_tokens": 5},
		"query prompt":   {"precision": "float32", "query_prompt": "a"},
		"passage prompt": {"precision": "float32", "passage_prompt": "a"},
	} {
		p := print(values)
		if seen[p] != "" {
			t.Errorf("%s has the fingerprint of %s", name, seen[p])
		}
		seen[p] = name
	}
	for name, values := range map[string]map[string]any{
		"no prompts":         {"precision": "float32", "query_prompt": "", "passage_prompt": ""},
		"beyond the model's": {"precision": "float32", "max_tokens": 5000},
	} {
		if print(values) != plain {
			t.Errorf("%s: another fingerprint than without", name)
		}
	}
}

func TestEncoderEmbed(t *testing.T) {
	embed := func(t *testing.T, role sdk.Role, values map[string]any) []float32 {
		t.Helper()
		values["precision"] = "float32"
		vectors, err := start(t, Encoder(), sdk.Setup{}, values).(sdk.Embedder).Embed(t.Context(), role, []string{"hello world"})
		must.Do(t, err)
		return vectors[0]
	}
	same := func(a, b []float32) bool { return simd.Best().Dot(a, b) > .99999 }
	query, passage := map[string]any{"query_prompt": "world hello "}, map[string]any{"passage_prompt": "world hello "}
	plain := embed(t, sdk.RoleQuery, map[string]any{})
	for name, test := range map[string]struct {
		vector []float32
		plain  bool
	}{
		"a passage":                       {embed(t, sdk.RolePassage, map[string]any{}), true},
		"a query with its prompt":         {embed(t, sdk.RoleQuery, query), false},
		"a passage, prompt of queries":    {embed(t, sdk.RolePassage, query), true},
		"a passage with its prompt":       {embed(t, sdk.RolePassage, passage), false},
		"a query, prompt of passages":     {embed(t, sdk.RoleQuery, passage), true},
		"a query, one token of the text ": {embed(t, sdk.RoleQuery, map[string]any{"max_tokens": 3}), false},
	} {
		if same(test.vector, plain) != test.plain {
			t.Errorf("%s: the vector is that of the text alone: %v", name, !test.plain)
		}
	}
	short := embed(t, sdk.RoleQuery, map[string]any{"dimensions": 8})
	if norm := simd.Best().Dot(short, short); len(short) != 8 || math.Abs(float64(norm)-1) > 1e-4 {
		t.Errorf("%d dimensions of norm² %v", len(short), norm)
	}
	var length float64
	for _, v := range plain[:8] {
		length += float64(v) * float64(v)
	}
	for i, v := range short {
		if math.Abs(float64(v)-float64(plain[i])/math.Sqrt(length)) > 1e-4 {
			t.Errorf("dimension %d is %v, not that of the whole vector", i, v)
		}
	}
}

func TestNormalise(t *testing.T) {
	for _, test := range []struct{ from, want []float32 }{
		{[]float32{3, 4}, []float32{.6, .8}},
		{[]float32{0, 0}, []float32{0, 0}},
		{[]float32{.6, .80001}, []float32{.6, .80001}}, // the model's own rounding stays
		{[]float32{3e20, -4e20}, []float32{.6, -.8}},
	} {
		got := append([]float32{}, test.from...)
		encoderNormalise(got)
		for i := range got {
			if math.Abs(float64(got[i]-test.want[i])) > 1e-6 {
				t.Errorf("%v: got %v, want %v", test.from, got, test.want)
			}
		}
	}
}

// Errors that a user can fix name the argument.
func TestEncoderErrors(t *testing.T) {
	t.Setenv(sdk.ModelsVariable, t.TempDir())
	empty := t.TempDir()
	for name, test := range map[string]struct {
		stage    sdk.Stage
		values   string
		argument string
		says     string
	}{
		"no model":                    {Encoder(), `{}`, "model", "it is required"},
		"neither a folder nor a name": {Encoder(), `{"model": "/nowhere/some-model"}`, "model", "racflow model pull some-model"},
		"an empty folder":             {Encoder(), fmt.Sprintf(`{"model": %q}`, empty), "model", "config.json"},
		"another empty folder":        {MiniLM(), fmt.Sprintf(`{"model": %q}`, empty), "model", empty},
		"no precision":                {Encoder(), arguments(t, map[string]any{"precision": "int4"}), "precision", "int4"},
		"more dimensions than there":  {Encoder(), arguments(t, map[string]any{"dimensions": 500}), "model", "500"},
		"MiniLM is not here":          {MiniLM(), `{}`, "", "racflow model pull minilm"},
	} {
		_, err := test.stage.Open(t.Context(), sdk.Setup{}, []byte(test.values))
		var at *sdk.ArgumentError
		if err == nil || !strings.Contains(err.Error(), test.says) || errors.As(err, &at) != (test.argument != "") || at != nil && at.Argument != test.argument {
			t.Errorf("%s: got %v at %+v, want %q at %q", name, err, at, test.says, test.argument)
		}
	}
}

// If the file gives no precision, the preset computes in int8 on every processor, and says so. Vectors of an earlier
// version, which used float32 without saying so, have the fingerprint of float32.
func TestMiniLMIsInt8(t *testing.T) {
	models := t.TempDir()
	t.Setenv(sdk.ModelsVariable, models)
	must.Do(t, os.CopyFS(filepath.Join(models, "minilm"), os.DirFS(tiny)))
	stage := MiniLM()
	open := func(config string) (print string, resolved any) {
		t.Helper()
		e, err := stage.Open(t.Context(), sdk.Setup{}, []byte(config))
		must.Do(t, err)
		if r, ok := e.(sdk.Resolver); ok {
			resolved = r.Resolved()["precision"]
		}
		return stage.Fingerprint(e), resolved
	}
	left, resolved := open(`{}`)
	small, given := open(`{"precision": "int8"}`)
	if left != small || resolved != "int8" || given != nil {
		t.Errorf("fingerprint %q, resolved %v; of int8 %q, %v", left, resolved, small, given)
	}
	if exact, _ := open(`{"precision": "float32"}`); exact != "1 6080ed193eb058b591fdffbb41cdd697d6d5f2a1f5fe5857e8c8b11cd0d45037" {
		t.Errorf("fingerprint %q of float32", exact)
	}
}
