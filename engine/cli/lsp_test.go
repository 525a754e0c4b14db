package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"

	"github.com/racflow/racflow/sdk"
)

// editor is the client of a language server in a process of its own.
type editor struct {
	*jrpc2.Client
	t         *testing.T
	process   *exec.Cmd
	uri       string
	published chan published
	heard     *bytes.Buffer // everything that the server wrote
	stderr    *bytes.Buffer
}

type published struct {
	Version     int
	Diagnostics []struct {
		Range    lspRange
		Severity int
		Message  string
	}
}

type lspRange struct{ Start, End lspPosition }

type lspPosition struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type lspItem struct {
	Label         string
	Documentation struct{ Value string }
	TextEdit      struct {
		Range   lspRange
		NewText string
	}
}

// edit starts a server in a folder, for the file p.hcl there.
func edit(t *testing.T, dir string, env ...string) *editor {
	t.Helper()
	e := &editor{t: t, published: make(chan published, 100), heard: &bytes.Buffer{}, stderr: &bytes.Buffer{}, uri: "file://" + filepath.Join(dir, "p.hcl")}
	e.process = racflow(t, dir, "lsp", "--plugins", dir)
	e.process.Env, e.process.Stderr = append(os.Environ(), env...), e.stderr
	in, err := e.process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, e.process)
	e.Client = jrpc2.NewClient(channel.LSP(io.TeeReader(out, e.heard), in), &jrpc2.ClientOptions{OnNotify: func(r *jrpc2.Request) {
		var p published
		if err := r.UnmarshalParams(&p); err != nil || r.Method() != "textDocument/publishDiagnostics" {
			t.Errorf("a notification %s: %v", r.Method(), err)
		}
		e.published <- p
	}})
	return e
}

func (e *editor) ask(method string, params, result any) {
	e.t.Helper()
	answer, err := e.Call(e.t.Context(), method, params)
	if err == nil && result != nil {
		err = answer.UnmarshalResult(result)
	}
	if err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
}

func (e *editor) tell(method string, params any) {
	e.t.Helper()
	if err := e.Notify(e.t.Context(), method, params); err != nil {
		e.t.Fatal(err)
	}
}

type object = map[string]any

func (e *editor) open(version int, text string) {
	e.tell("textDocument/didOpen", object{"textDocument": object{"uri": e.uri, "languageId": "hcl", "version": version, "text": text}})
}

func (e *editor) change(version int, text string) {
	e.tell("textDocument/didChange", object{"textDocument": object{"uri": e.uri, "version": version}, "contentChanges": []object{{"text": text}}})
}

// diagnostics waits for the diagnostics of a version.
func (e *editor) diagnostics(version int) published {
	for p := range e.published {
		if p.Version == version {
			return p
		}
	}
	return published{}
}

func (e *editor) at(line, character int) object {
	return object{"textDocument": object{"uri": e.uri}, "position": lspPosition{line, character}}
}

func (e *editor) completions(line, character int) []lspItem {
	e.t.Helper()
	var items []lspItem
	e.ask("textDocument/completion", e.at(line, character), &items)
	return items
}

func (e *editor) hover(line, character int) string {
	e.t.Helper()
	var h struct{ Contents struct{ Value string } }
	e.ask("textDocument/hover", e.at(line, character), &h)
	return h.Contents.Value
}

// leave ends the server, whose input stays open, and returns its exit code.
func (e *editor) leave() int {
	e.t.Helper()
	e.tell("exit", nil)
	var exit *exec.ExitError
	if err := e.process.Wait(); err != nil && !errors.As(err, &exit) {
		e.t.Fatal(err)
	}
	return e.process.ProcessState.ExitCode()
}

func labelsOf(items []lspItem) []string {
	var all []string
	for _, item := range items {
		all = append(all, item.Label)
	}
	return all
}

const edited = `variable "who" {
  default     = secret("RACFLOW_TEST_KEY")
  description = "The key."
}
/* 𝄞 */ knowledge "k" {
  source { path = "train.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  retrieve "r" { from = knowledge.k }
  sample "s" { use = "neighbours" }
  elect "e" {
    use = "sfot"
      flag = "agreement < 0.4 and item.text != '𝄞' and margni < 1"
  }
}
`

// An editor's session over the pipes of a process: diagnostics, completion, hover, definition,
// formatting, and the end.
func TestEditor(t *testing.T) {
	e := edit(t, folder(t, map[string]string{"train.tsv": "text\tlabel\nhi\tgreet\n"}), "RACFLOW_TEST_KEY=hush-hush")
	var ready struct {
		Capabilities struct {
			PositionEncoding                                              string
			HoverProvider, DefinitionProvider, DocumentFormattingProvider bool
		}
	}
	e.ask("initialize", object{"processId": nil, "rootUri": nil, "capabilities": object{}}, &ready)
	if c := ready.Capabilities; c.PositionEncoding != "utf-16" || !c.HoverProvider || !c.DefinitionProvider || !c.DocumentFormattingProvider {
		t.Errorf("capabilities: %+v", c)
	}
	e.tell("initialized", object{})
	e.open(1, edited)
	wrong := e.diagnostics(1).Diagnostics
	if len(wrong) != 2 || !strings.Contains(wrong[0].Message, `Did you mean "soft"`) || wrong[1].Range != (lspRange{lspPosition{14, 56}, lspPosition{14, 62}}) {
		t.Errorf("diagnostics: %+v", wrong)
	}
	if got := labelsOf(e.completions(13, 13)); !slices.Contains(got, "soft") {
		t.Errorf("completions of use: %v", got)
	}
	if got := labelsOf(e.completions(14, 58)); !slices.Contains(got, "margin") {
		t.Errorf("completions of a rule: %v", got)
	}
	if got := e.hover(14, 8); !strings.Contains(got, "**flag** (rule)") {
		t.Errorf("hover of an argument: %s", got)
	}
	var found struct{ Range lspRange }
	e.ask("textDocument/definition", e.at(10, 34), &found)
	if want := (lspRange{lspPosition{4, 20}, lspPosition{4, 21}}); found.Range != want {
		t.Errorf("the definition is at %+v, want %+v", found.Range, want)
	}

	right := strings.NewReplacer("sfot", "soft", "margni", "margin").Replace(edited)
	e.change(2, strings.Replace(right, "margin < 1", "answer == var.", 1))
	e.change(3, right+"locals { x = var.who }\n")
	if wrong := e.diagnostics(3).Diagnostics; len(wrong) != 0 {
		t.Errorf("diagnostics of a right file: %+v", wrong)
	}
	if got := e.hover(17, 18); !strings.Contains(got, "(secret)") || !strings.Contains(got, "The key.") {
		t.Errorf("hover of a secret: %s", got)
	}
	var edits []struct {
		Range   lspRange
		NewText string
	}
	e.ask("textDocument/formatting", object{"textDocument": object{"uri": e.uri}, "options": object{"tabSize": 8, "insertSpaces": false}}, &edits)
	if len(edits) != 1 || !strings.Contains(edits[0].NewText, "\n    use  = \"soft\"\n    flag = \"agreement < 0.4 and item.text != '𝄞' and margin < 1\"\n") || edits[0].Range.Start != (lspPosition{}) {
		t.Errorf("edits: %+v", edits)
	}

	e.change(4, "pipeline \"p\" {\n  elect \"e\" {\n    use = \"so\n    ")
	if wrong := e.diagnostics(4).Diagnostics; len(wrong) == 0 {
		t.Error("half a file has no diagnostics")
	}
	if got := labelsOf(e.completions(3, 4)); !slices.Contains(got, "flag") {
		t.Errorf("completions in half a file: %v", got)
	}
	e.ask("shutdown", nil, nil)
	if code := e.leave(); code != 0 || e.stderr.Len() > 0 {
		t.Errorf("exit code %d; standard error: %s", code, e.stderr)
	}
	if strings.Contains(e.heard.String(), "hush") {
		t.Error("the server showed a secret")
	}
}

// An editor that ends the server without shutting it down gets exit code 1.
func TestEditorWithoutShutdown(t *testing.T) {
	e := edit(t, t.TempDir())
	if code := e.leave(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}

// Every stage and all of its arguments are completed and explained.
func TestEditorKnowsAllStages(t *testing.T) {
	e := edit(t, t.TempDir())
	e.ask("initialize", object{"capabilities": object{}}, nil)
	for version, stage := range builtin.Stages() {
		outer := "pipeline"
		if slices.Contains([]sdk.Kind{sdk.KindChunk, sdk.KindEnrich, sdk.KindEmbed, sdk.KindStore}, stage.Kind) {
			outer = "knowledge"
		}
		head := fmt.Sprintf("%s \"x\" {\n%s \"y\" {\nuse = %q\nconfig {\n", outer, stage.Kind, stage.Name)
		e.open(2*version, head+"\n}\n}\n}\n")
		if got := labelsOf(e.completions(2, 7)); !slices.Contains(got, stage.Name) {
			t.Errorf("%s %s is not offered among %v", stage.Kind, stage.Name, got)
		}
		if got := e.hover(2, 8); !strings.Contains(got, stage.Doc) {
			t.Errorf("%s %s is not explained: %s", stage.Kind, stage.Name, got)
		}
		offered := labelsOf(e.completions(4, 0))
		text := head
		for _, a := range stage.Arguments {
			text += a.Name + " = 1\n"
			if !slices.Contains(offered, a.Name) {
				t.Errorf("%s of %s %s is not offered among %v", a.Name, stage.Kind, stage.Name, offered)
			}
		}
		e.open(2*version+1, text+"}\n}\n}\n")
		for i, a := range stage.Arguments {
			if got := e.hover(4+i, 0); !strings.Contains(got, a.Doc) || !strings.Contains(got, a.Bounds()) {
				t.Errorf("%s of %s %s is not explained: %q", a.Name, stage.Kind, stage.Name, got)
			}
		}
	}
	e.ask("shutdown", nil, nil)
	e.leave()
}

// A plugin that was never asked is not started while a file is edited. After racflow validate, its
// description is known.
func TestEditorStartsNothing(t *testing.T) {
	dir := t.TempDir()
	linkPlugin(t, dir, "given")
	text := "knowledge \"k\" {\n  chunk {\n    use = \"given/ends\"\n  }\n}\n"
	write(t, dir, "p.hcl", text)
	e := edit(t, dir)
	e.ask("initialize", object{"capabilities": object{}}, nil)
	e.open(1, text)
	if got := fmt.Sprint(e.diagnostics(1)); !strings.Contains(got, `the plugin "given" has not described its stages yet`) {
		t.Errorf("diagnostics: %s", got)
	}
	if got := labelsOf(e.completions(2, 11)); slices.Contains(got, "given/ends") {
		t.Errorf("the plugin was started: %v", got)
	}
	_ = racflow(t, dir, "validate", "--plugins", dir, "p.hcl").Run() // the file has errors
	e.change(2, text)
	if got := fmt.Sprint(e.diagnostics(2)); strings.Contains(got, "given") {
		t.Errorf("diagnostics: %s", got)
	}
	if got := labelsOf(e.completions(2, 11)); !slices.Contains(got, "given/ends") {
		t.Errorf("the plugin is not known: %v", got)
	}
	e.ask("shutdown", nil, nil)
	e.leave()
}
