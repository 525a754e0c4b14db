package sdktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/remote"
	"github.com/racflow/racflow/sdk/sdktest/internal/harness"
	"github.com/racflow/racflow/sdk/sdktest/internal/stores"
	"github.com/racflow/racflow/sdk/wire"
)

// Stage checks one stage, opened with a config that is a JSON object.
func Stage(t *testing.T, stage sdk.Stage, config string, opts ...Option) {
	t.Helper()
	o := harness.NewOptions()
	for _, set := range opts {
		set(o)
	}
	run := harness.Subtests(t, o)
	run.Run("description", func(t harness.Tester) { report(t, description(stage)) })
	run.Run("config", func(t harness.Tester) { report(t, unknownArgument(t, stage, config)) })
	if stage.Kind == sdk.KindStore {
		stores.Run(run, stage, config, o)
	}
	for name, check := range checks(stage) {
		run.Run(name, func(t harness.Tester) { report(t, check(t, stage, config)) })
	}
	for _, path := range o.Unmet() {
		t.Errorf("%q is left out, but there is no such subtest", path)
	}
}

func report(t harness.Tester, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func checks(stage sdk.Stage) map[string]check {
	switch stage.Kind {
	case sdk.KindChunk:
		return chunkChecks
	case sdk.KindEnrich:
		return enrichChecks
	case sdk.KindEmbed:
		return embedChecks
	case sdk.KindStore:
		return nil // they are a suite of their own
	}
	return batchChecks
}

// Open runs a stage behind a gRPC server in memory, as its process would, and
// returns the engine's end. It ends with the test.
func Open(t testing.TB, stage sdk.Stage, setup sdk.Setup, config string) (*remote.Stage, error) {
	t.Helper()
	p, err := harness.Start(t, stage, setup, config)
	if err != nil {
		return nil, err
	}
	return p.Stage, nil
}

// StateDir returns the folder that the engine gives to a process of a stage: below dir, with
// what it has learnt, where it is an embedder that fits; else dir itself.
func StateDir(t testing.TB, stage sdk.Stage, dir string, state []byte) string {
	t.Helper()
	if stage.Kind != sdk.KindEmbed || !stage.Fits {
		return dir
	}
	dir, err := remote.StateDir(dir, state)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// description checks that people and other processes can understand what a
// stage says of itself.
func description(s sdk.Stage) error {
	var errs []error
	if strings.TrimSpace(s.Doc) == "" {
		errs = append(errs, errors.New("the stage has no doc"))
	}
	for _, a := range s.Arguments {
		if strings.TrimSpace(a.Doc) == "" {
			errs = append(errs, fmt.Errorf("argument %s has no doc", a.Name))
		}
		if a.Secret && a.Default != nil {
			errs = append(errs, fmt.Errorf("argument %s is secret and has a default", a.Name))
		}
	}
	p := sdk.Plugin{Name: "test", Version: "0.0.0", Stages: []sdk.Stage{s}}
	got, err := wire.DecodePlugin(wire.EncodePlugin(p))
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	if g := got.Stages[0]; g.Reads != s.Reads || !sameArguments(g.Arguments, s.Arguments) {
		errs = append(errs, fmt.Errorf("the description changes on its way: %+v", g))
	}
	return errors.Join(errs...)
}

func sameArguments(a, b []sdk.Argument) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

// unknownArgument checks that a stage refuses an argument that it lacks.
func unknownArgument(t testing.TB, stage sdk.Stage, config string) error {
	given := map[string]any{}
	if config != "" {
		if err := json.Unmarshal([]byte(config), &given); err != nil {
			return fmt.Errorf("the test's config: %w", err)
		}
	}
	given["no_such_argument"] = 1
	raw, err := json.Marshal(given)
	if err != nil {
		return err
	}
	_, err = Open(t, stage, sdk.Setup{StateDir: t.TempDir()}, string(raw))
	var refused *sdk.ArgumentError
	if !errors.As(err, &refused) || refused.Argument != "no_such_argument" {
		return fmt.Errorf("an unknown argument gave %v, not an error that names it", err)
	}
	return nil
}
