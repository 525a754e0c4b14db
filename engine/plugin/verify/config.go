package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk"
)

// FileName is where a plugin's author says how its stages are checked.
const FileName = "verify.json"

// Config says how a plugin's stages are checked.
type Config struct {
	Stages    map[string]json.RawMessage // by KIND/NAME
	Without   map[string]string          // "KIND/NAME: CHECK" -> why it is left out
	DenseOnly string                     // why stores are checked without a lexical leg
	Allow     program.Allow
	dir       string // which paths are relative to
}

// ReadConfig reads what a person gave: a JSON object, or the name of a file with one. Where the
// keys are none of verify.json's, it is the config of the one stage that is checked. Nothing given: the
// file in the first of the folders that has one.
func ReadConfig(given, stage string, folders ...string) (Config, error) {
	raw, dir := []byte(given), "."
	if !strings.HasPrefix(strings.TrimSpace(given), "{") {
		path := given
		if path == "" {
			i := slices.IndexFunc(folders, func(dir string) bool {
				_, err := os.Stat(filepath.Join(dir, FileName))
				return dir != "" && err == nil
			})
			if i < 0 {
				return Config{}, nil
			}
			path = filepath.Join(folders[i], FileName)
		}
		var err error
		if raw, err = os.ReadFile(path); err != nil {
			return Config{}, fmt.Errorf("read the config of the checks: %w", err)
		}
		given, dir = path, filepath.Dir(path)
	}
	c, err := parse(raw, stage, dir)
	if err != nil {
		return c, fmt.Errorf("%.200s: %w", given, err)
	}
	return c, nil
}

func parse(raw []byte, stage, dir string) (c Config, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return c, fmt.Errorf("it is not a JSON object: %w", err)
	}
	c.Stages, c.dir = map[string]json.RawMessage{}, dir
	fields := map[string]any{
		"without": &c.Without, "dense_only": &c.DenseOnly, "network": &c.Allow.Hosts, "read": &c.Allow.Read, "write": &c.Allow.Write,
	}
	for key, value := range all {
		field := fields[key]
		switch {
		case strings.Contains(key, "/"):
			c.Stages[key] = value
		case field != nil && isStageless(all):
			if err := json.Unmarshal(value, field); err != nil {
				return c, fmt.Errorf("%s: %w", key, err)
			}
		case stage != "":
			return Config{Stages: map[string]json.RawMessage{stage: raw}, dir: dir}, nil
		default:
			return c, fmt.Errorf("%q is neither KIND/NAME nor one of without, dense_only, network, read, write; for the config of one stage name it with --stage KIND/NAME", key)
		}
	}
	for _, paths := range [][]string{c.Allow.Read, c.Allow.Write} {
		for i, p := range paths {
			if !filepath.IsAbs(p) {
				p = filepath.Join(dir, p)
			}
			if paths[i], err = filepath.Abs(p); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// isStageless reports whether an object is verify.json's, and not the config of a stage that has
// an argument of the same name.
func isStageless(all map[string]json.RawMessage) bool {
	for key := range all {
		if !strings.Contains(key, "/") && !slices.Contains([]string{"without", "dense_only", "network", "read", "write"}, key) {
			return false
		}
	}
	return true
}

// of is the config of a stage, and the secrets in it.
func (c Config) of(s sdk.Stage) (config []byte, secrets []string, err error) {
	config, given := c.Stages[nameOf(s)]
	if !given {
		if config, err = example(s); err != nil {
			return nil, nil, err
		}
	}
	values := map[string]any{}
	if err := json.Unmarshal(config, &values); err != nil {
		return nil, nil, fmt.Errorf("the config is not a JSON object: %w", err)
	}
	for _, a := range s.Arguments {
		text, _ := values[a.Name].(string)
		if a.Type == sdk.TypePath && text != "" && !filepath.IsAbs(text) {
			if values[a.Name], err = filepath.Abs(filepath.Join(c.dir, text)); err != nil {
				return nil, nil, err
			}
		}
		if !a.Secret || text == "" {
			continue
		}
		if name, ok := strings.CutPrefix(text, "$"); ok {
			if text, ok = os.LookupEnv(name); !ok {
				return nil, nil, fmt.Errorf("the environment has no %s, which is to be the argument %s", name, a.Name)
			}
			values[a.Name] = text
		}
		secrets = append(secrets, text)
	}
	if config, err = json.Marshal(values); err != nil {
		return nil, nil, err
	}
	if err := s.Validate(config); err != nil {
		what := "the config that was made of the arguments' examples"
		if given {
			what = "the config"
		}
		return nil, nil, errors.Join(fmt.Errorf("%s is refused; write one into %s: {%q: {...}}", what, FileName, nameOf(s)), err)
	}
	return config, secrets, nil
}

func nameOf(s sdk.Stage) string { return string(s.Kind) + "/" + s.Name }
