package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/wire"
)

// description checks that people and other processes can understand what a
// stage says of itself.
var description = Check{
	Name: "description", Within: Long,
	Why: "Documents, completion and checks of a pipeline file are made from what a stage says of itself.",
	Fix: "Give the stage and each of its arguments a sentence, and a secret no default.",
	Run: func(_ T, subject *Subject) error {
		s := subject.Stage
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
	},
}

func sameArguments(a, b []sdk.Argument) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

// unknownArgument checks that a stage refuses an argument that it lacks.
var unknownArgument = Check{
	Name: "config", Within: Long,
	Why: "A mistake in a file is shown at its line, so a stage has to name the argument that it refuses.",
	Fix: "Answer Configure with an error that names the argument; the SDKs do.",
	Run: func(t T, s *Subject) error {
		given := map[string]any{}
		if s.Config != "" {
			if err := json.Unmarshal([]byte(s.Config), &given); err != nil {
				return fmt.Errorf("the test's config: %w", err)
			}
		}
		given["no_such_argument"] = 1
		raw, err := json.Marshal(given)
		if err != nil {
			return err
		}
		_, err = s.Open(t, Setup{Config: string(raw), StateDir: t.TempDir()})
		var refused *sdk.ArgumentError
		if !errors.As(err, &refused) || refused.Argument != "no_such_argument" {
			return fmt.Errorf("an unknown argument gave %v, not an error that names it", err)
		}
		return nil
	},
}
