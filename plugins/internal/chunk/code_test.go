package chunk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/apitest"
	"github.com/racflow/racflow/sdk"
)

// codeChunks returns the first word and the declaration of each chunk.
func codeChunks(t *testing.T, config, path, text string) []string {
	t.Helper()
	stage, err := Code().Open(t.Context(), sdk.Setup{}, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	lists, err := stage.(sdk.Chunker).Chunk(t.Context(), []sdk.Document{{Text: text, Meta: sdk.Meta{"path": path}}})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, c := range lists[0] {
		d, _ := c.Meta["declaration"].(string)
		all = append(all, strings.TrimSpace(fmt.Sprint(strings.Fields(text[c.Start:c.End])[0], ": ", d)))
	}
	return all
}

func TestDeclarations(t *testing.T) {
	statements := strings.Repeat("    call(one, two);\n", 8)
	for name, c := range map[string]struct {
		config, path, text string
		want               []string
	}{
		"small things are joined": {`{"size": 60}`, "a.go", "package a\n\nfunc f() {\n}\n\nfunc g() {\n}\n",
			[]string{"package: func f(); func g()"}},
		"a class in methods": {`{"size": 80}`, "A.java",
			"package a;\nclass A {\n  int a;\n  /** F. */\n  @Override\n  void f(\n      int a) {\n" + statements + "  }\n  void g() {\n" + statements + "  }\n}\n",
			[]string{"package: class A", "/**: class A > void f( int a)", "void: class A > void g()"}},
		"a function in statements": {`{"size": 30}`, "a.cc",
			"namespace n {\nint f() {\n" + statements + "}\n}\n",
			[]string{"namespace: namespace n > int f()", "call(one,: namespace n > int f()", "call(one,: namespace n > int f()"}},
		"python": {`{"size": 40}`, "a.py",
			"import a\n\n\nclass A(B):\n    \"\"\"Doc.\"\"\"\n\n    @property\n    def f(self,\n          x=1):\n" + strings.Repeat("        call(one, two)\n", 5) +
				"\n    def g(self): return 1\n" + strings.Repeat("    # more\n", 20) + "\ndef h():\n    pass\n",
			[]string{"import: class A(B)", "@property: class A(B) > def f(self, x=1)", "call(one,: class A(B) > def f(self, x=1)", "def: class A(B) > def g(self): return 1", "#: class A(B)", "def: def h()"}},
		"keys": {`{"size": 12}`, "a.yaml", "a:\n  b: one two three four\n  c:\n    d: five six seven eight\ne: nine\n",
			[]string{"a:: a > b: one two three four", "c:: a > c", "e:: e: nine"}},
		"no known language":       {`{"size": 4}`, "a.unknown", "class A {\n}\nclass B {\n}\n", []string{"class:", "class:"}},
		"a language by name":      {`{"size": 6, "language": "java"}`, "", "class A {\n}\nclass B {\n}\n", []string{"class: class A", "class: class B"}},
		"imports declare nothing": {`{}`, "a.rs", "use a::{\n    b,\n};\nextern crate c;\n", []string{"use:"}},
	} {
		if got := codeChunks(t, c.config, c.path, c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, c.want)
		}
	}
}

func TestUnknownLanguage(t *testing.T) {
	_, err := Code().Open(t.Context(), sdk.Setup{}, []byte(`{"language": "cobol"}`))
	if wrong := new(sdk.ArgumentError); !errors.As(err, &wrong) || wrong.Argument != "language" || !strings.Contains(err.Error(), "python") {
		t.Errorf("error %v, want one that names the languages", err)
	}
}

func TestCodeGolden(t *testing.T) {
	apitest.CheckReply(t, Code(), `{"size": 100}`, "2 b025fbc66dbdfdf7")
}
