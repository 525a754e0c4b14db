package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The test binary is the program, too, where its first argument is no flag of a test or
// asProgram is set: it is called with a file, and calls itself for the stages.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" || len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
		return
	}
	os.Exit(m.Run())
}

const asProgram = "INTENTS_TEST_AS_PROGRAM"

// TestArguments says which argument is wrong, and how the program is called.
func TestArguments(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "the argument FILE is missing"},
		{[]string{"main.go", "more"}, `the argument "more" is one too many`},
		{[]string{filepath.Join(dir, "none.hcl")}, "none.hcl: no such file"},
		{[]string{dir}, dir + " is a folder"},
	} {
		c := exec.CommandContext(t.Context(), program, test.args...)
		c.Env = append(os.Environ(), asProgram+"=1")
		out, _ := c.CombinedOutput() // the exit code says whether it failed
		if code := c.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), test.want) || !strings.Contains(string(out), "usage: intents FILE") {
			t.Errorf("%q: exit code %d\n%s", test.args, code, out)
		}
	}
}

func TestMainJob(t *testing.T) {
	file, err := filepath.Abs("../../pipelines/intent.hcl")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile("../intent/test.tsv")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, file)
	c.Dir = t.TempDir() // where its state goes
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	items, right := 0, 0
	for line := range bytes.Lines(out) {
		var r struct{ Answer, Expected string }
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if items++; r.Answer == r.Expected {
			right++
		}
	}
	if want := bytes.Count(rows, []byte("\n")) - 1; items != want || right*3 < want {
		t.Errorf("%d items of %d were answered, %d of them right", items, want, right)
	}
}

func TestMistakeInFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.hcl")
	if err := os.WriteFile(file, []byte("pipeline \"p\" {\n  sampel \"s\" {}\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, file)
	c.Dir = t.TempDir()
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), file+":2:3: ") {
		t.Errorf("%v\n%s", err, out)
	}
}
