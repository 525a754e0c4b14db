package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"
)

// stranger is a pipeline file that sends a secret, a variable and a file outside its folder to a
// server.
const stranger = `
variable "server" { default = %q }
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store {}
}
pipeline "p" {
  input { path = "rows.tsv" }
  retrieve "n" { from = knowledge.k }
  prompt "c" {
    use = "chat"
    config { none = "${env("CITY")} ${file(%q)}" }
  }
  sample "l" {
    use = "openai"
    retries = 0
    config {
      base_url = var.server
      model    = "m"
      api_key  = secret("CLOUD_KEY")
    }
  }
  elect "e" { use = "majority" }
}
`

// secretive holds a stranger's file, what the file wants to take, and the server to which it would
// send that.
type secretive struct {
	dir, outside, url string
	seen              atomic.Int64 // requests
	env               []string
}

func newSecretive(t *testing.T) *secretive {
	s := &secretive{dir: t.TempDir(), outside: t.TempDir()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.seen.Add(1)
		http.Error(w, "no", http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL + "/v1"
	write(t, s.outside, "diary", "dear diary of a long day\n")
	write(t, s.dir, "rows.tsv", "id\ttext\tlabel\n1\thello there\tgreet\n2\tbye now\tleave\n")
	write(t, s.dir, "p.hcl", fmt.Sprintf(stranger, s.url, filepath.Join(s.outside, "diary")))
	s.env = append(os.Environ(), "CLOUD_KEY=key-of-the-cloud", "CITY=a city with a long name", trustVariable+"=", "XDG_CONFIG_HOME="+filepath.Join(s.outside, "config"))
	return s
}

// run returns the exit code and the complete output.
func (s *secretive) run(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	c := racflow(t, s.dir, args...)
	c.Env = s.env
	code, stdout, stderr := ran(t, c)
	return code, stdout + stderr
}

// wants returns what the stranger's file wants.
func (s *secretive) wants() []string {
	host, _, _ := strings.Cut(strings.TrimPrefix(s.url, "http://"), "/")
	return []string{"sends to " + host, "gives " + host + " the secret CLOUD_KEY", "reads the variable CITY", "reads " + filepath.Join(s.outside, "diary")}
}

// TestStrangersFile gives every verb a file that wants more than its folder: no verb sends anything,
// each says what the file wants, and none shows a value.
func TestStrangersFile(t *testing.T) {
	s := newSecretive(t)
	args := map[string][]string{ // of verbs that need more than the file
		"ask": {"p.hcl", "hello"}, "review": {"p.hcl", "--findings"}, "tune": {"p.hcl", "--input", "rows.tsv"},
		"model probe": {"p.hcl"}, "knowledge list": {"p.hcl"}, "knowledge gc": {"p.hcl"}, "knowledge refresh": {"p.hcl"},
		"serve": {"p.hcl", "--listen", "127.0.0.1:0"},
	}
	harmless := []string{"validate", "lsp"} // these use nothing of the file
	tried := 0
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		verb := strings.TrimPrefix(c.CommandPath(), "racflow ")
		if c.Flags().Lookup("trust") == nil || slices.Contains(harmless, verb) {
			return
		}
		tried++
		given, ok := args[verb]
		if !ok {
			given = []string{"p.hcl"}
		}
		code, text := s.run(t, append(strings.Fields(verb), given...)...)
		if code != exitFailed || !strings.Contains(text, "grant it with --trust=") {
			t.Errorf("%s ends with %d: %s", verb, code, text)
		}
		for _, want := range s.wants() {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say that it %s: %s", verb, want, text)
			}
		}
	}
	visit(newRoot())
	if code, text := s.run(t, "validate", "p.hcl"); code != 0 {
		t.Errorf("validate ends with %d: %s", code, text)
	}
	if n := s.seen.Load(); n != 0 || tried < len(args) {
		t.Errorf("%d verbs were tried, and the server got %d requests", tried, n)
	}
}

// TestGranted grants a file what it wants, by kinds, and changes it.
func TestGranted(t *testing.T) {
	s := newSecretive(t)
	refused := func(what string, wants []string, args ...string) {
		t.Helper()
		code, text := s.run(t, args...)
		if code != exitFailed || strings.Count(text, "\n") != len(wants)+2 {
			t.Errorf("%s: it ends with %d: %s", what, code, text)
		}
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in %s", what, want, text)
			}
		}
	}
	wants := s.wants()
	refused("half of it", wants[1:3], "run", "--trust=hosts,files", "p.hcl")
	refused("all of it, since nothing was granted", wants, "run", "p.hcl")
	if code, text := s.run(t, "run", "--trust=host", "p.hcl"); code != exitFailed || !strings.Contains(text, `no kind "host"`) {
		t.Errorf("a kind that is none: %d, %s", code, text)
	}
	plan := func(args ...string) (int, string) { return s.run(t, append([]string{"plan"}, args...)...) }
	code, text := plan("--trust", "p.hcl")
	for _, want := range append(wants, "not shown: it has values of the environment") {
		if code != 0 || !strings.Contains(text, want) {
			t.Errorf("the plan ends with %d and lacks %q: %s", code, want, text)
		}
	}
	for _, value := range []string{"key-of-the-cloud", "a city", "dear"} {
		if strings.Contains(text, value) {
			t.Errorf("the plan shows %q: %s", value, text)
		}
	}
	if s.seen.Load() != 0 {
		t.Error("the plan sent something")
	}
	if code, text := s.run(t, "run", "p.hcl"); code != exitItemsFailed || s.seen.Load() == 0 {
		t.Errorf("what is granted does not hold: %d, %s", code, text)
	}
	file := readFile(t, s.dir, "p.hcl")
	write(t, s.dir, "p.hcl", strings.Replace(file, `none = "`, `none = "${env("STREET", "")}`, 1))
	s.env = append(s.env, "STREET=3 Main Street")
	refused("something new", []string{"reads the variable STREET"}, "run", "p.hcl")
	write(t, s.dir, "p.hcl", strings.Replace(file, "CLOUD_KEY", "OTHER_KEY", 1))
	s.env = append(s.env, "OTHER_KEY=another-key")
	refused("another secret", []string{"the secret OTHER_KEY"}, "run", "p.hcl")
	if _, text := s.run(t, "explain", "newest", "1"); !strings.Contains(text, "the secret OTHER_KEY") { // explain opens the current file
		t.Errorf("explain uses a file that nobody granted anything: %s", text)
	}
}

// TestSaid: a person names what the file wants, and then need not grant it.
func TestSaid(t *testing.T) {
	s := newSecretive(t)
	base := `
variable "rows" {
  type    = path
  default = "rows.tsv"
}
knowledge "k" {
  source { path = var.rows }
  embed { use = "hashing" }
  store {}
}
model "m" {
  name = "m"
  %s
}
pipeline "p" {
  input { path = "rows.tsv" }
  retrieve "n" { from = knowledge.k }
  prompt "c" { use = "chat" }
  sample "l" { model = model.m }
  elect "e" { use = "majority" }
}
`
	openai := fmt.Sprintf(base, "")
	write(t, s.dir, "openai.hcl", openai)
	write(t, s.dir, "variable.hcl", "variable \"url\" { default = \"http://127.0.0.1:9/v1\" }\n"+fmt.Sprintf(base, `base_url = var.url`))
	write(t, s.dir, "environment.hcl", fmt.Sprintf(base, `base_url = env("MY_SERVER")`))
	write(t, s.dir, "literal.hcl", fmt.Sprintf(base, `api_key = "key-of-somebody-else"`))
	write(t, s.outside, "other.tsv", "id\ttext\n1\thello\n")
	key := "OPENAI_API_KEY=key-of-openai"
	for _, test := range []struct {
		env  []string
		args []string
		free bool
	}{
		{[]string{key}, []string{"openai.hcl"}, true},                                                    // to OpenAI's own host
		{[]string{key, "OPENAI_BASE_URL=" + s.url}, []string{"openai.hcl"}, true},                        // an address in the environment
		{[]string{key}, []string{"-set", "model.m.base_url=" + s.url, "openai.hcl"}, true},               // typed
		{[]string{key}, []string{"-var", "url=" + s.url, "variable.hcl"}, true},                          // typed
		{[]string{key, "RACFLOW_VAR_url=" + s.url}, []string{"variable.hcl"}, true},                      // in the environment
		{[]string{key, "OPENAI_BASE_URL=http://127.0.0.1:90/v1"}, []string{"variable.hcl"}, false},       // another port
		{[]string{key}, []string{"variable.hcl"}, false},                                                 // the file says so
		{[]string{key, "MY_SERVER=" + s.url}, []string{"environment.hcl"}, false},                        // the file says which variable
		{[]string{key, "MY_SERVER=" + s.url}, []string{"-set", "model.m.api_key=", "openai.hcl"}, false}, // without its own key
		{nil, []string{"literal.hcl"}, false},                                                            // with a key of the file's author
		{[]string{key}, []string{"-var", "rows=" + filepath.Join(s.outside, "other.tsv"), "openai.hcl"}, true},
	} {
		t.Run(strings.Join(append(test.args, test.env...), " "), func(t *testing.T) {
			c := racflow(t, s.dir, append([]string{"knowledge", "list"}, test.args...)...)
			c.Env = append(slices.Clone(s.env), test.env...)
			code, stdout, stderr := ran(t, c)
			if (code == 0) != test.free || !test.free && !strings.Contains(stderr, "grant it with --trust=hosts") {
				t.Errorf("it ends with %d: %s%s", code, stdout, stderr)
			}
		})
	}
}

// TestExpected: an expect block names a host, and files outside, by variables and by an input of its
// own. Every verb reports that before it starts anything. A person who names them need not grant
// them.
func TestExpected(t *testing.T) {
	s := newSecretive(t)
	other := filepath.Join(s.outside, "other.tsv")
	write(t, s.outside, "other.tsv", "id\ttext\tlabel\n1\thello\tgreet\n")
	write(t, s.outside, "diary.tsv", "id\ttext\tlabel\n1\tdear diary\tgreet\n")
	write(t, s.dir, "p.hcl", fmt.Sprintf(`
variable "server" { default = "https://api.openai.com/v1" }
variable "which" { default = "a" }
variable "rows" { default = "rows.tsv" }
knowledge "k" {
  source { path = var.rows }
  embed { use = "hashing" }
  store {}
}
pipeline "p" {
  input { path = "rows.tsv" }
  retrieve "n" { from = knowledge.k }
  prompt "c" { use = "chat" }
  sample "l" {
    use     = "openai"
    retries = 0
    config {
      base_url = var.which == "b" ? "https://swept.example/v1" : var.server
      model    = "m"
      api_key  = secret("OPENAI_API_KEY")
    }
  }
  elect "e" { use = "majority" }
  expect "off" {
    enabled   = false
    rule      = "accuracy >= 0"
    variables = { server = "https://never.example/v1" }
  }
  expect "values" {
    rule      = "accuracy >= 0"
    variables = { server = %q, rows = %q }
  }
  expect "rows" {
    rule = "accuracy >= 0"
    input { path = %q }
  }
}
`, s.url, filepath.Join(s.outside, "diary.tsv"), other))
	s.env = append(s.env, "OPENAI_API_KEY=key-of-openai")
	host, _, _ := strings.Cut(strings.TrimPrefix(s.url, "http://"), "/")
	wants := []string{"sends to " + host, "gives " + host + " the secret OPENAI_API_KEY", "reads " + filepath.Join(s.outside, "diary.tsv"), "reads " + other}
	for _, args := range [][]string{{"test", "p.hcl"}, {"plan", "p.hcl"}, {"eval", "p.hcl"}, {"run", "p.hcl"}, {"ask", "p.hcl", "hello"}, {"serve", "p.hcl", "--listen", "127.0.0.1:0"}, {"tune", "p.hcl", "--input", "rows.tsv"},
		{"test", "-var", "server=" + s.url, "p.hcl"}, {"test", "--trust=hosts", "p.hcl"}} {
		code, text := s.run(t, args...)
		if code != exitFailed || !strings.Contains(text, "grant it with --trust=") || strings.Contains(text, "never.example") {
			t.Errorf("%s ends with %d: %s", args, code, text)
		}
		for i, want := range wants {
			if (i > 0 || !strings.Contains(args[1], "hosts")) && !strings.Contains(text, want) {
				t.Errorf("%s does not say that it %s: %s", args, want, text)
			}
		}
	}
	if n := s.seen.Load(); n != 0 {
		t.Errorf("the server got %d requests", n)
	}
	if code, text := s.run(t, "test", "--trust", "p.hcl"); s.seen.Load() == 0 { // it answers nothing
		t.Errorf("what is granted does not hold: %d, %s", code, text)
	}
	seen := s.seen.Load()
	if code, text := s.run(t, "eval", "--sweep", "var.which=a,b", "p.hcl"); code != exitFailed || !strings.Contains(text, "sends to swept.example") || s.seen.Load() != seen {
		t.Errorf("a sweep ends with %d: %s", code, text)
	}
}

// TestShown: a file makes a path, a name and the switch of a stage from parts of an environment
// variable. No verb shows any of it, granted or not.
func TestShown(t *testing.T) {
	s := newSecretive(t)
	file := readFile(t, s.dir, "p.hcl")
	parts := `join("/", split("", env("CITY")))`
	write(t, s.dir, "path.hcl", strings.Replace(file, `path = "rows.tsv"`, `path = "${`+parts+`}"`, 1))
	write(t, s.dir, "name.hcl", "variable \"city\" { default = upper("+parts+") }\n"+strings.Replace(file, `model    = "m"`, `model = `+parts, 1))
	write(t, s.dir, "on.hcl", strings.Replace(file, `retries = 0`, "retries = 0\nenabled = strlen(regex(\"^b?\", env(\"CITY\"))) == 1", 1)+"\n")
	write(t, s.dir, "on.hcl", strings.Replace(readFile(t, s.dir, "on.hcl"), `  elect "e"`, "  sample \"m\" { use = \"neighbours\" }\n  elect \"e\"", 1))
	for _, trust := range [][]string{nil, {"--trust"}} {
		for _, name := range []string{"path.hcl", "name.hcl", "on.hcl"} {
			for _, verb := range [][]string{{"validate"}, {"validate", "--json"}, {"plan"}, {"plan", "--json"}, {"run"}} {
				args := append(slices.Concat(verb, trust), name)
				_, text := s.run(t, args...)
				for _, value := range []string{"a city", "c/i/t/y", "C/I/T/Y", "dear"} {
					if strings.Contains(text, value) {
						t.Errorf("%s shows %q: %s", args, value, text)
					}
				}
			}
		}
	}
}

// TestShippedFile copies a file that racflow ships, and lets racflow write one: neither needs a grant
// until it is changed.
func TestShippedFile(t *testing.T) {
	s := newSecretive(t)
	attached := readFile(t, absolute(t, "../../examples/milvus"), "attached.hcl")
	write(t, s.dir, "own.hcl", attached)
	check := func(what, file string, granted bool) {
		t.Helper()
		_, text := s.run(t, "knowledge", "list", file) // there is no server
		if strings.Contains(text, "--trust") == granted {
			t.Errorf("%s: %s", what, text)
		}
	}
	s.env = append(s.env, "MILVUS_ADDRESS=")
	check("a copy", "own.hcl", true)
	write(t, s.dir, "own.hcl", strings.ReplaceAll(attached, "env(\"MILVUS_ADDRESS\"", "\"127.0.0.1:9\" # env(\"MILVUS_ADDRESS\""))
	check("a changed copy", "own.hcl", false)
	if err := errors.Join(os.MkdirAll(filepath.Join(s.dir, "examples", "intent"), 0o755), os.Mkdir(filepath.Join(s.dir, "pipelines"), 0o755), os.Mkdir(filepath.Join(s.dir, ".git"), 0o755)); err != nil {
		t.Fatal(err)
	}
	write(t, s.dir, "pipelines/intent.hcl", readFile(t, absolute(t, "../../pipelines"), "intent.hcl"))
	write(t, s.outside, "diary.tsv", "id\ttext\tlabel\n1\tdear diary\tgreet\n")
	train := filepath.Join(s.dir, "examples", "intent", "train.tsv")
	write(t, filepath.Dir(train), "train.tsv", "id\ttext\tlabel\n1\thello\tgreet\n")
	write(t, filepath.Dir(train), "test.tsv", "id\ttext\tlabel\n1\thello\tgreet\n")
	check("a copy beside rows", "pipelines/intent.hcl", true)
	toDiary := func(path string) {
		t.Helper()
		if err := errors.Join(os.Remove(path), os.Symlink(filepath.Join(s.outside, "diary.tsv"), path)); err != nil {
			t.Fatal(err)
		}
	}
	toDiary(train)
	check("a copy beside a link", "pipelines/intent.hcl", false)
	if code, text := s.run(t, "init", "--yes", filepath.Join(s.outside, "diary.tsv"), "--output", "made.hcl"); code != 0 {
		t.Fatalf("%d: %s", code, text)
	}
	check("a file that init wrote for rows outside", "made.hcl", true)
	write(t, s.dir, "rows2.tsv", "id\ttext\tlabel\n1\thello\tgreet\n2\thello you\tgreet\n")
	if code, text := s.run(t, "init", "--yes", "rows2.tsv", "--output", "inside.hcl"); code != 0 {
		t.Fatalf("%d: %s", code, text)
	}
	check("a file that init wrote", "inside.hcl", true)
	toDiary(filepath.Join(s.dir, "rows2.tsv"))
	check("a file that init wrote, beside a link", "inside.hcl", false)
}
