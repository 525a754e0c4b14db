package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/plugins"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

// In the process of a stage, this does not return.
var _ = func() bool { builtin = workspace.Serve(plugins.All()); return true }()

// programs maps names of the test binary to main functions.
var programs = map[string]func(){
	"racflow":               main,
	"racflow-deaf":          deaf,
	"racflow-measured":      measured,
	"racflow-plugin-given":  givenPlugin,
	"racflow-plugin-leak":   leakPlugin,
	"racflow-plugin-oracle": oraclePlugin,
	"racflow-plugin-model":  modelPlugin,
}

// ours returns a built-in stage.
func ours(kind sdk.Kind, name string) sdk.Stage {
	stage, ok := enginetest.Catalog(builtin.Stages()).Stage(kind, name)
	if !ok {
		panic("there is no stage " + name)
	}
	return stage
}

func main() { os.Exit(Run(builtin.Stages(), plugins.Commands()...)) }

// TestMain makes the test binary racflow itself: the scripts call it by that name, and it starts
// itself for the stages. Under another name it is a plugin.
func TestMain(m *testing.M) {
	testscript.Main(tidy{m}, programs)
}

// tidy removes shared files after the tests.
type tidy struct{ *testing.M }

func (t tidy) Run() int {
	config, err := os.MkdirTemp("", "racflow-config")
	for _, err := range []error{
		err, os.Setenv("XDG_CONFIG_HOME", config), // keeps grants and plugins of tests out of the user's folder
		os.Setenv(trustVariable, "all"), // tests of trust unset it
	} {
		if err != nil {
			panic(err)
		}
	}
	removed = append(removed, config)
	defer func() {
		for _, dir := range removed {
			_ = os.RemoveAll(dir)
		}
	}()
	return t.M.Run()
}

// TestScripts runs the verbs as a person would, with real stage processes.
func TestScripts(t *testing.T) { testscript.Run(t, scripts(t)) }

// scripts returns all scripts, over the embedded store.
func scripts(t *testing.T) testscript.Params {
	t.Helper()
	examples, pipelines, built := absolute(t, "../../examples"), absolute(t, "../../pipelines"), absolute(t, "../../plugins")
	return testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv(trustVariable, "all")
			e.Setenv("EXAMPLES", examples)
			e.Setenv("STORE", "local")
			e.Setenv("PIPELINES", pipelines)
			e.Setenv("PLUGINS", built)
			for variable, plugin := range map[string]string{"ORACLE": "racflow-plugin-oracle", "MINE": "racflow-plugin-mine"} {
				path, err := exec.LookPath(plugin)
				if err != nil {
					return err
				}
				e.Setenv(variable, path)
			}
			plain, reasoner := modelserver.Start(modelserver.Options{}), modelserver.Start(modelserver.Named("reasons-like-openai"))
			e.Defer(plain.Close)
			e.Defer(reasoner.Close)
			e.Setenv("MODEL_SERVER", plain.URL)
			e.Setenv("REASONER", reasoner.URL)
			return os.Mkdir(filepath.Join(e.WorkDir, "home"), 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"append": appendBytes,
			"lines":  countLines,
			"damage": damage,
			"remove": remove,
			"serve":  serveModel,
		},
		Condition: func(condition string) (bool, error) {
			return condition == "left" && leftTo("command"), isCondition(condition)
		},
	}
}

// exits runs a command that must end with the given code: exits 3 racflow ...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG ...]")
	}
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s\n%s", code, args[0], ts.ReadFile("stderr"))
	}
}

// serveModel starts a model server with these behaviours, and puts its address into an environment
// variable: serve VARIABLE [BEHAVIOUR ...].
func serveModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve VARIABLE [BEHAVIOUR ...]")
	}
	o := modelserver.Named(args[1:]...)
	o.Batches.Polls = 1
	server := modelserver.Start(o)
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
}

// appendBytes appends a text to a file n times: append FILE TEXT [N]. The text may have Go escapes,
// such as \xff.
func appendBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: append FILE TEXT [N]")
	}
	text, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	n := 1
	if len(args) == 3 {
		n, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	ts.Check(err)
	_, err = f.WriteString(strings.Repeat(text, n))
	ts.Check(errors.Join(err, f.Close()))
}

// countLines checks the number of lines of a file: lines FILE N.
func countLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines FILE N")
	}
	if n := strings.Count(ts.ReadFile(args[0]), "\n"); strconv.Itoa(n) != args[1] {
		ts.Fatalf("%s has %d lines, want %s", args[0], n, args[1])
	}
}

// remove removes the files that a pattern matches: remove PATTERN.
func remove(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: remove PATTERN")
	}
	matches, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(matches) == 0 {
		ts.Fatalf("nothing matches %s", args[0])
	}
	for _, path := range matches {
		ts.Check(os.RemoveAll(path))
	}
}

// damage inverts a byte of each file that a pattern matches: damage PATTERN OFFSET.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: damage PATTERN OFFSET")
	}
	matches, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	if len(matches) == 0 {
		ts.Fatalf("nothing matches %s", args[0])
	}
	for _, path := range matches {
		content, err := os.ReadFile(path)
		ts.Check(err)
		content[at] ^= 0xff
		ts.Check(os.WriteFile(path, content, 0o600))
	}
}

// leaveTo skips a test that only this step of .ci/run and make torture run; why says what make test
// has instead.
func leaveTo(t *testing.T, step, why string) {
	t.Helper()
	if leftTo(step) {
		t.Skip(why)
	}
}

func leftTo(step string) bool { return testing.Short() && os.Getenv("RACFLOW_TEST_ALSO") != step }
