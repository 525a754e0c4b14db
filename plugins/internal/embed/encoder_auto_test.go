package embed

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/encoder"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// given are rows in batches of 64.
func given(texts []string) iter.Seq2[[]sdk.TrainingRow, error] {
	return func(yield func([]sdk.TrainingRow, error) bool) {
		for some := range slices.Chunk(texts, 64) {
			var rows []sdk.TrainingRow
			for _, text := range some {
				rows = append(rows, sdk.TrainingRow{Text: text})
			}
			if !yield(rows, nil) {
				return
			}
		}
	}
}

// numbered returns different texts, in words that the tiny model knows.
func numbered(n int) []string {
	words := strings.Fields("a b c able the red blue house é 漢")
	texts := make([]string, n)
	for i := range texts {
		for rest := i; len(texts[i]) == 0 || rest > 0; rest /= len(words) {
			texts[i] += words[rest%len(words)] + " "
		}
	}
	return texts
}

// fake gives each text a vector of its own on a circle, turned by an angle.
type fake struct {
	turned func(i int) float64
	err    error
}

func (fake) Dimension() int { return 2 }

func (f fake) Embed(_ context.Context, _ sdk.Role, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i := range texts {
		angle := 2*math.Pi*float64(i)/float64(len(texts)) + f.turned(i)
		vectors[i] = []float32{float32(math.Cos(angle)), float32(math.Sin(angle))}
	}
	return vectors, f.err
}

func TestCompare(t *testing.T) {
	exact := fake{turned: func(int) float64 { return 0 }}
	for name, test := range map[string]struct {
		texts  int
		turned func(i int) float64
		want   encoder.Precision
	}{
		"the same vectors":    {200, exact.turned, encoder.Int8},
		"too few texts":       {fewest - 1, exact.turned, encoder.Float32},
		"just enough":         {fewest, exact.turned, encoder.Int8},
		"all turned a little": {200, func(int) float64 { return .05 }, encoder.Int8},
		"all turned too far":  {200, func(int) float64 { return .08 }, encoder.Float32},
		"one of them far off": {200, func(i int) float64 { return map[int]float64{7: .2}[i] }, encoder.Float32},
	} {
		d, err := compare(t.Context(), exact, fake{turned: test.turned}, numbered(test.texts))
		if err != nil || d.Precision != test.want || d.Reason == "" {
			t.Errorf("%s: got %+v, %v, want %s", name, d, err, test.want)
		}
	}
	broken := fake{exact.turned, errors.New("broken")}
	for name, pair := range map[string][2]fake{"float32": {broken, exact}, "int8": {exact, broken}} {
		if _, err := compare(t.Context(), pair[0], pair[1], numbered(200)); !errors.Is(err, broken.err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestSample(t *testing.T) {
	texts := numbered(1000)
	got, err := sample(given(append(texts[:10:10], texts...)))
	if err != nil || !slices.Equal(got, texts[:sampled]) {
		t.Errorf("%d texts, %v", len(got), err)
	}
	lost := errors.New("lost")
	_, err = sample(func(yield func([]sdk.TrainingRow, error) bool) { yield(nil, lost) })
	if !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
}

// The decision applies to every later process, on all kinds of machines, and is not learned again.
func TestDecisionIsCarriedOver(t *testing.T) {
	for _, fast := range []bool{false, true} {
		t.Run(fmt.Sprint("int8 is fast: ", fast), func(t *testing.T) {
			stage, setup := Encoder(), sdk.Setup{StateDir: t.TempDir()}
			first := start(t, stage, setup, map[string]any{}).(*undecided)
			if first.fast = fast; strings.Contains(stage.Fingerprint(first), "int8") {
				t.Error("a precision before it was decided on")
			}
			if _, ok := any(first).(sdk.Resolver); ok {
				t.Error("it was resolved before it was decided on")
			}
			must.Do(t, first.Fit(t.Context(), given(numbered(fewest-1))))
			// Another process, which would have measured something else.
			later := start(t, stage, setup, map[string]any{})
			if _, ok := later.(sdk.Fitter); ok {
				t.Error("it wants to learn again")
			}
			if got := later.(sdk.Resolver).Resolved()["precision"]; got != "float32" {
				t.Errorf("resolved %v", got)
			}
			if stage.Fingerprint(later) != stage.Fingerprint(first) {
				t.Error("the process that decided has another fingerprint than later ones")
			}
			d, ok, err := readDecision(setup.StateDir)
			if want := map[bool]string{true: "too few", false: "not faster"}[fast]; err != nil || !ok || !strings.Contains(d.Reason, want) {
				t.Errorf("decision %+v, %v", d, err)
			}
			d.Precision = encoder.Int8
			must.Do(t, d.write(setup.StateDir))
			slow := start(t, stage, setup, map[string]any{})
			given := start(t, stage, sdk.Setup{}, map[string]any{"precision": "int8"})
			if got := slow.(sdk.Resolver).Resolved()["precision"]; got != "int8" || stage.Fingerprint(slow) != stage.Fingerprint(given) {
				t.Errorf("resolved %v", got)
			}
		})
	}
}

// A tiny random model loses little in int8: the real comparison, from end to end.
func TestFitMeasures(t *testing.T) {
	setup := sdk.Setup{StateDir: t.TempDir()}
	first := start(t, Encoder(), setup, map[string]any{}).(*undecided)
	first.fast = true
	must.Do(t, first.Fit(t.Context(), given(numbered(300))))
	d, ok, err := readDecision(setup.StateDir)
	if err != nil || !ok || !strings.Contains(d.Reason, "on 200 texts of the knowledge") || first.decided.precision != d.Precision {
		t.Errorf("decision %+v, %v, %v; it works in %s", d, ok, err, first.decided.precision)
	}
}

func TestDamagedDecision(t *testing.T) {
	for _, content := range []string{"", "{", `{"precision": "int4"}`, `{"precision": 8}`} {
		setup := sdk.Setup{StateDir: t.TempDir()}
		must.Do(t, os.WriteFile(filepath.Join(setup.StateDir, decisionFile), []byte(content), 0o600))
		_, err := Encoder().Open(t.Context(), setup, []byte(arguments(t, map[string]any{})))
		if err == nil || !strings.Contains(err.Error(), "rebuild the knowledge") {
			t.Errorf("%q: got %v", content, err)
		}
	}
	u := start(t, Encoder(), sdk.Setup{}, map[string]any{}).(*undecided)
	if err := u.Fit(t.Context(), given(nil)); err == nil {
		t.Error("it has learnt into no folder")
	}
}
