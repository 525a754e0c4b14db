package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/racflow/racflow/engine/internal/process/host"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/source/rows"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/conformance"
)

// subject is a stage under check, in processes of its own.
type subject struct {
	*conformance.Subject
	program *program.Program
	dir     string
	secrets []string
	rows    int
}

// FileName is the file in which a plugin's author configures the checks.
const FileName = "verify.json"

// Config configures the checks of a plugin's stages.
type Config struct {
	Stages    map[string]json.RawMessage // by KIND/NAME
	Without   map[string]string          // reason by "KIND/NAME: CHECK" for leaving out the check
	DenseOnly string                     // why the checks use a store without lexical search
	Allow     program.Allow
	dir       string // base of relative paths
}

// ReadConfig reads the given config: a JSON object, or the name of a file with one. An object that does not
// have the form of verify.json is the config of the one checked stage. Without a given config, it reads the
// file in the first folder that has one.
func ReadConfig(given, stage string, folders ...string) (Config, error) {
	raw, from := []byte(strings.TrimSpace(given)), "."
	if !bytes.HasPrefix(raw, []byte("{")) {
		i := slices.IndexFunc(folders, func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, FileName))
			return dir != "" && err == nil
		})
		if given == "" && i < 0 {
			return Config{}, nil
		} else if given == "" {
			given = filepath.Join(folders[i], FileName)
		}
		var err error
		if raw, err = os.ReadFile(given); err != nil {
			return Config{}, fmt.Errorf("read the config of the checks: %w", err)
		}
		raw = bytes.TrimSpace(rows.TrimMark(raw))
		from = filepath.Dir(given)
	}
	dir, err := filepath.Abs(from)
	if err != nil {
		return Config{}, err
	}
	c, err := parse(raw, dir)
	if err != nil && stage != "" && json.Valid(raw) && bytes.HasPrefix(raw, []byte("{")) {
		return Config{Stages: map[string]json.RawMessage{stage: raw}, dir: dir}, nil
	} else if err != nil {
		return c, fmt.Errorf("%.200s: %w", given, err)
	}
	return c, nil
}

func parse(raw []byte, dir string) (Config, error) {
	c := Config{Stages: map[string]json.RawMessage{}, dir: dir}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return c, fmt.Errorf("it is not a JSON object: %w", err)
	}
	fields := map[string]any{
		"without": &c.Without, "dense_only": &c.DenseOnly, "network": &c.Allow.Hosts, "read": &c.Allow.Read, "write": &c.Allow.Write,
	}
	for key, value := range all {
		field := fields[key]
		if strings.Contains(key, "/") {
			c.Stages[key] = value
		} else if field == nil {
			return c, fmt.Errorf("%q is neither KIND/NAME nor one of without, dense_only, network, read, write; for the config of one stage name it with --stage KIND/NAME", key)
		} else if err := json.Unmarshal(value, field); err != nil {
			return c, fmt.Errorf("%s: %w", key, err)
		}
	}
	for _, paths := range [][]string{c.Allow.Read, c.Allow.Write} {
		for i := range paths {
			paths[i] = c.path(paths[i])
		}
	}
	return c, nil
}

// path resolves a path of the config relative to the config's file.
func (c Config) path(given string) string {
	if filepath.IsAbs(given) {
		return given
	}
	return filepath.Join(c.dir, given)
}

// configOf returns the config of a stage, and its secrets.
func (c Config) configOf(s sdk.Stage) (config []byte, secrets []string, err error) {
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
		if a.Type == sdk.TypePath && text != "" {
			values[a.Name] = c.path(text)
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

// Find returns the program at a path: a file or folder named racflow-plugin-NAME, or the folder of a project,
// which Find builds. Slow steps and compilers' output go to log. folders may contain its verify.json.
func Find(ctx context.Context, path string, log io.Writer) (p program.Program, folders []string, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return p, nil, err
	}
	base := filepath.Base(path)
	_, notItself := os.Stat(filepath.Join(path, base))
	_, notGo := os.Stat(filepath.Join(path, "go.mod"))
	if info, err := os.Stat(path); err == nil && info.IsDir() && (notGo == nil || notItself != nil || !strings.HasPrefix(base, program.Prefix)) {
		p, err = BuildProject(ctx, path, log)
		return p, []string{path}, err
	}
	p, err = program.At(path)
	return p, []string{p.Folder, filepath.Dir(path)}, err
}

// running is one process with its own host, so that its output can be attributed to a check.
type running struct {
	*host.Process
	said *said
}

// start is the Starter of the suite.
func (v *subject) start(ctx context.Context, setup conformance.Setup) (*conformance.Process, error) {
	said := &said{pass: setup.Log}
	h, err := host.New(host.Options{StateDir: v.dir, Log: slog.New(said), StopTimeout: v.Options.Promptly})
	if err != nil {
		return nil, err
	}
	use := v.Stage.Name
	if v.program != nil {
		use = v.program.Name + "/" + v.Stage.Name
	}
	p, err := h.Start(ctx, host.Spec{
		Kind: v.Stage.Kind, Use: use, Block: "verify", Config: json.RawMessage(setup.Config), Secrets: v.secrets,
		StateDir: setup.StateDir, Samples: setup.Samples, Network: v.Stage.Network, Program: v.program,
	})
	if err != nil {
		h.Close()
		if refused := new(host.ConfigError); errors.As(err, &refused) {
			var all []error
			for _, e := range refused.Errors {
				all = append(all, e)
			}
			return nil, errors.Join(all...)
		}
		return nil, err
	}
	return &conformance.Process{
		Stage: p.Stage, Fingerprint: p.Fingerprint(), Own: &running{p, said}, Close: sync.OnceFunc(func() { _ = p.Close(); h.Close() }),
	}, nil
}

// starts is the first check: all others depend on it.
var starts = conformance.Check{
	Name: "starts", Within: conformance.Long,
	Why: "The engine starts the program, reads one line of handshake from it, and configures the stage.",
	Fix: "Begin with serve.Plugin (in Python, racflow_plugin.serve), print to standard error only, and accept the config.",
	Run: func(t *conformance.T, s *conformance.Subject) error {
		_, err := s.Open(t, s.Setup(t))
		return err
	},
}

// said collects a process's output: a slog.Handler that counts lines and passes them on.
type said struct {
	pass func(string)
	mu   sync.Mutex
	seen struct {
		lines, bytes int
		stdout       []string
	}
}

func (s *said) Enabled(context.Context, slog.Level) bool { return true }

func (s *said) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	toStdout := false
	r.Attrs(func(a slog.Attr) bool {
		toStdout = toStdout || a.Key == "stream" && a.Value.String() == "stdout"
		line += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	})
	s.mu.Lock()
	s.seen.lines++
	s.seen.bytes += len(line)
	if toStdout && len(s.seen.stdout) < 3 {
		s.seen.stdout = append(s.seen.stdout, r.Message)
	}
	s.mu.Unlock()
	if s.pass != nil {
		s.pass(line)
	}
	return nil
}

func (s *said) WithAttrs([]slog.Attr) slog.Handler { return s }

func (s *said) WithGroup(string) slog.Handler { return s }

// soFar returns the output until now.
func (s *said) soFar() (lines, bytes int, stdout []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.lines, s.seen.bytes, s.seen.stdout
}
