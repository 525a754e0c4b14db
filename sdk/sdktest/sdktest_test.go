package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// files makes collections that are JSON files.
func files() Foreign {
	return Foreign{
		Make: func(t testing.TB, rows []sdk.Entry) string {
			raw, err := json.Marshal(rows)
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.CreateTemp(t.TempDir(), "*.json")
			if err == nil {
				_, err = file.Write(raw)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			config, err := json.Marshal(map[string]string{"collection": file.Name()})
			if err != nil {
				t.Fatal(err)
			}
			return string(config)
		},
		Look: func(t testing.TB, config string) string {
			var c struct{ Collection string }
			if err := json.Unmarshal([]byte(config), &c); err != nil {
				t.Fatal(err)
			}
			beside, _ := filepath.Glob(c.Collection + "*")
			raw, _ := os.ReadFile(c.Collection)
			return strings.Join(beside, " ") + "\n" + string(raw)
		},
	}
}

func TestGoodAttacherPasses(t *testing.T) {
	must.NoRace(t)
	Attached(t, shelfStage(""), files())
	t.Run("without words", func(t *testing.T) { Attached(t, shelfStage("without words"), files()) })
}

// TestFaultyAttachersFail: a store with one fault fails the check for this fault.
func TestFaultyAttachersFail(t *testing.T) {
	for fault, c := range map[string]struct{ check, want string }{
		"another ID each time":            {"opens", "Attach called again"},
		"one ID for all":                  {"opens", "two collections have the ID"},
		"says no fields":                  {"opens", "where the vector of an entry comes from"},
		"years become texts":              {"rows", "metadata"},
		"pages overlap":                   {"rows", "there twice"},
		"scans any label":                 {"rows", "Labels:[parcel]"},
		"unknown ids give the first":      {"get", "get, place 1"},
		"takes products for cosines":      {"vectors of any length", "score"},
		"looks at the first row alone":    {"vectors of any length", "score"},
		"finds half":                      {"dense", "candidates, want"},
		"filters after the cut":           {"filters", "0 candidates, want 1"},
		"compares texts with numbers":     {"filters", "candidates, want 0"},
		"finds all by words":              {"words", "by the words"},
		"promises words":                  {"words", "lexical search"},
		"an empty leg":                    {"words", "hybrid search: place 0"},
		"takes what is put":               {"refuses to write", "Put gives <nil>"},
		"writes beside it":                {"refuses to write", "the collection was changed"},
		"makes what is not there":         {"unknown collection", "that is not there gives <nil>"},
		"says nothing of the name":        {"unknown collection", "that names it"},
		"opens without Attach":            {"only after Attach", "Search gives <nil>"},
		"forgets the rows while attached": {"attach while searching", ""},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			stage := shelfStage(fault)
			checks := conformance.AttachedChecks(files().in(t))
			said := ""
			for _, check := range checks {
				if path.Base(check.Name) != c.check {
					continue
				}
				subject := &conformance.Subject{Stage: stage, Config: "{}", Start: inMemory(stage), Options: options()}
				if r := check.On(t.Context(), t.TempDir(), subject); r.Status == conformance.Failed {
					said += strings.Join(r.Messages, "\n") + "\n"
				}
			}
			if said == "" || !strings.Contains(said, c.want) {
				t.Errorf("attached/%s says %q, not %q", c.check, said, c.want)
			}
		})
	}
}

type none struct{}

// voter is a sampler made from a function.
type voter func(context.Context, sdk.Batch) ([][]sdk.Sample, error)

func (v voter) Sample(ctx context.Context, b sdk.Batch) ([][]sdk.Sample, error) { return v(ctx, b) }

func stageOf(v voter) sdk.Stage {
	return sdk.SampleStage("voter", "Votes.", func(context.Context, sdk.Setup, none) (sdk.Sampler, error) { return v, nil },
		sdk.Reads(sdk.ColumnText, sdk.ColumnCandidates))
}

func first(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	out := make([][]sdk.Sample, len(b.Items))
	failed := sdk.RowErrors{}
	for i, it := range b.Items {
		switch {
		case it.Text == "":
			failed[i] = errors.New("no text")
		case len(it.Candidates) > 0:
			out[i] = []sdk.Sample{{Answers: []sdk.Answer{{Label: it.Candidates[0].Label, Weight: 1}}}}
		}
	}
	if len(failed) > 0 {
		return out, failed
	}
	return out, nil
}

func TestGoodStagePasses(t *testing.T) { Stage(t, stageOf(first), "{}") }

// promptly is how soon a stage of these tests must notice that it is cancelled; a short time detects
// faulty stages sooner.
const promptly = 2 * time.Second

// options returns the options for a faulty stage.
func options() *conformance.Options {
	o := conformance.NewOptions()
	o.Promptly, o.Short = promptly, testing.Short()
	return o
}

// faults runs the checks of one name, or below it, and returns their messages.
func faults(t *testing.T, stage sdk.Stage, name string, o *conformance.Options) string {
	t.Helper()
	checks := slices.DeleteFunc(conformance.Checks(stage), func(c conformance.Check) bool {
		return !strings.HasPrefix(c.Name+"/", name+"/")
	})
	if len(checks) == 0 {
		t.Fatalf("there is no check %q", name)
	}
	var all []string
	subject := &conformance.Subject{Stage: stage, Config: "{}", Start: inMemory(stage), Options: o}
	for _, check := range checks {
		r := check.On(t.Context(), t.TempDir(), subject)
		if r.Status != conformance.Failed {
			continue
		}
		all = append(all, r.Messages...)
		if r.Why == "" || r.Fix == "" || strings.Contains(r.Why+r.Fix, "\n") {
			t.Errorf("%s says neither why it is there nor what to do, in a line each", r.Name)
		}
	}
	return strings.Join(all, "\n")
}

// wantFault checks that a stage with one fault fails the check for this fault.
func wantFault(t *testing.T, stage sdk.Stage, check, want string) {
	t.Helper()
	got := faults(t, stage, check, options())
	for again := 0; check == "gives up when cancelled" && got == "" && again < 50; again++ { // a busy machine may cancel a call before the stage gets it
		got = faults(t, stage, check, options())
	}
	if !strings.Contains(got, want) {
		t.Errorf("%s: got %q, want %q in it", check, got, want)
	}
}

func TestFaultyStagesFail(t *testing.T) {
	for name, c := range map[string]struct {
		v     voter
		check string
		want  string
	}{
		"a row too few": {func(context.Context, sdk.Batch) ([][]sdk.Sample, error) { return nil, nil },
			"one result per row", "0 results for 1 rows"},
		"panics": {func(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
			return [][]sdk.Sample{{{Voter: b.Items[0].ID}}}, nil
		}, "one result per row", "panic in the plugin"},
		"random": {func(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
			out := make([][]sdk.Sample, len(b.Items))
			for i := range out {
				out[i] = []sdk.Sample{{Answers: []sdk.Answer{{Weight: rand.Float64()}}}}
			}
			return out, nil
		}, "same row, same result", "before it was"},
		"deaf": {func(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
			if len(b.Items) > 0 {
				time.Sleep(promptly + time.Second)
			}
			return make([][]sdk.Sample, len(b.Items)), nil
		}, "gives up when cancelled", "after a cancelled call"},
	} {
		t.Run(name, func(t *testing.T) {
			wantFault(t, stageOf(c.v), c.check, c.want)
		})
	}
	undocumented := sdk.SampleStage("x", "", func(context.Context, sdk.Setup, struct {
		K int `config:"k"`
	}) (sdk.Sampler, error) {
		return voter(first), nil
	})
	wantFault(t, undocumented, "description", "argument k has no doc")
}
