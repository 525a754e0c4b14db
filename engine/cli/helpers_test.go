package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for something that should take a moment: the machine may be busy.
const patience = time.Minute

// long skips a test that takes too long for make test.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts many processes")
	}
}

// racflow returns the command as another process. Under the name racflow, the test binary is racflow;
// see TestMain.
func racflow(t testing.TB, dir string, args ...string) *exec.Cmd {
	t.Helper()
	binary := filepath.Join(dir, "racflow")
	if _, err := os.Stat(binary); err != nil {
		if err := linkSelf(binary); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(binary, args...)
	c.Dir = dir
	return c
}

// linkSelf links the test binary to another name.
func linkSelf(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Link(self, path); err == nil {
		return nil
	}
	return os.Symlink(self, path)
}

// linkPlugin makes racflow in a folder available as a plugin, too.
func linkPlugin(t testing.TB, dir, name string) {
	t.Helper()
	racflow(t, dir)
	if err := os.Symlink("racflow", filepath.Join(dir, "racflow-plugin-"+name)); err != nil {
		t.Fatal(err)
	}
}

// ran runs a command to its end, which may be a failure.
func ran(t testing.TB, c *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// good runs a command to its end, which must be a success.
func good(t testing.TB, c *exec.Cmd) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := ran(t, c)
	if code != 0 {
		t.Fatalf("%q: exit code %d\n%s%s", c.Args[1:], code, stdout, stderr)
	}
	return stdout, stderr
}

// must is good for the output on standard output and standard error together.
func must(t testing.TB, c *exec.Cmd) string {
	t.Helper()
	said, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", c.Args[1:], err, said)
	}
	return string(said)
}

// entriesOf returns the entries of the only collection of a knowledge.
func entriesOf(t testing.TB, dir, knowledge string, args ...string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, stateDir, "knowledge", knowledge, knowledge+"-*[0-9a-f]"))
	if err != nil || len(found) != 1 {
		t.Fatalf("collections %q, %v", found, err)
	}
	entries, _ := good(t, racflow(t, dir, append([]string{"store", "export", found[0]}, args...)...))
	return entries
}

// jsonLines returns the JSON values of a text, one after the other.
func jsonLines[T any](t testing.TB, text string) (all []T) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var one T
		if err := d.Decode(&one); err != nil {
			t.Fatalf("%v in %.4000s", err, text)
		}
		all = append(all, one)
	}
	return all
}

// absolute returns the absolute path of a file of the repository.
func absolute(t testing.TB, path string) string {
	t.Helper()
	whole, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// intent returns the path of the main pipeline.
func intent(t testing.TB) string { return absolute(t, "../../pipelines/intent.hcl") }

// fewIntents returns the examples of ten labels of intent.hcl: learning from all of them takes
// seconds, from these a tenth of that.
func fewIntents(t testing.TB) string {
	t.Helper()
	return firstRows(readFile(t, "../../examples/intent", "train.tsv"), 10*14)
}

// firstRows returns the header and the first n rows of a file; rows are sorted by label.
func firstRows(file string, n int) string {
	return strings.Join(strings.SplitAfter(file, "\n")[:n+1], "")
}

// folder makes a folder with these files.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	writeAll(t, dir, files)
	return dir
}

func writeAll(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		write(t, dir, name, content)
	}
}

// write writes a file, and makes its folder.
func write(t testing.TB, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// numbered repeats a format with each number below n.
func numbered(n int, format string) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, format, i)
	}
	return all.String()
}

// rows returns n labelled texts that differ.
func rows(n int) string {
	var b strings.Builder
	b.WriteString("id\ttext\tlabel\n")
	for i := range n {
		fmt.Fprintf(&b, "r%d\tthe order number %d of topic%d\ttopic%d\n", i, i, i%7, i%7)
	}
	return b.String()
}

// checkFiles checks that no file of a run contains a secret.
func checkFiles(t *testing.T, dir, secret string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "racflow" {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), secret) {
			t.Errorf("%s holds the secret", path)
		}
		files++
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
}
