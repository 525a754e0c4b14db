package pipeline

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/bounded"
)

// awsKey is a value of the environment that must never be shown.
const awsKey = "AKIAIOSFODNN7EXAMPLE"

// calls passes X to each function, in every parameter that affects its value.
var calls = map[string][]string{
	"abs": {"abs(N)"}, "ceil": {"ceil(N)"}, "floor": {"floor(N)"}, "max": {"max(N, 1)", "max(1, N)"}, "min": {"min(N, 1)", "min([1, N]...)"},
	"chomp": {"chomp(X)"}, "coalesce": {"coalesce(null, X)", "coalesce(X, \"\")"}, "compact": {"compact([\"\", X])"}, "concat": {"concat([], [X])[0]", "concat(split(\"\", X), [])"},
	"contains": {"contains([X], \"a\")", "contains([\"a\"], X)"}, "distinct": {"distinct([X, X])"}, "element": {"element([X], 0)", "element([\"a\", \"b\"], N)"},
	"env": {"env(\"KEY\")"}, "secret": {"secret(\"KEY\")"}, "file": {"file(\"/proc/self/status\")"}, "path": {"path(X)"},
	"flatten": {"flatten([[X]])"}, "format": {"format(X)", "format(\"%s\", X)", "format(\"%d\", N)"}, "indent": {"indent(N, \"a\")", "indent(1, X)"},
	"join": {"join(\"\", [X])", "join(X, [\"a\", \"b\"])", "join(\"/\", split(\"\", X))"}, "jsondecode": {"jsondecode(\"{\\\"a\\\":\\\"${X}\\\"}\")", "jsondecode(\"[${N}]\")[0]"},
	"jsonencode": {"jsonencode(X)", "jsonencode({ a = [X] })"}, "keys": {"keys({ (X) = 1 })"}, "length": {"length(split(\"A\", X))", "length(keys({ (X) = 1 }))"},
	"lookup": {"lookup({ a = X }, \"a\", \"\")", "lookup({ a = 1 }, X, 2)", "lookup({ a = \"\" }, \"b\", X)"}, "lower": {"lower(X)"}, "merge": {"merge({}, { a = X }).a", "merge({ (X) = 1 }, {})"},
	"parseint": {"parseint(format(\"%d\", N), 10)", "parseint(\"1\", N)"}, "regex": {"regex(\"..\", X)", "regex(substr(X, 0, 1), \"A\")"},
	"replace": {"replace(X, \"A\", \"\")", "replace(\"A\", X, \"\")", "replace(\"A\", \"A\", X)"}, "reverse": {"reverse(split(\"\", X))"},
	"slice": {"slice(split(\"\", X), 0, 1)", "slice([1, 2, 3], 0, N - 18)"}, "sort": {"sort([X])"}, "split": {"split(X, \"a\")", "split(\"A\", X)"}, "strlen": {"strlen(X)"},
	"substr": {"substr(X, 0, 1)", "substr(\"abc\", 0, N)"}, "title": {"title(X)"}, "trim": {"trim(X, \"A\")", "trim(\"A\", X)"}, "trimprefix": {"trimprefix(X, \"A\")", "trimprefix(\"A\", X)"},
	"trimspace": {"trimspace(X)"}, "trimsuffix": {"trimsuffix(X, \"E\")", "trimsuffix(\"A\", X)"}, "upper": {"upper(X)"}, "values": {"values({ a = X })"},
}

// forms are expressions of other forms.
var forms = []string{
	"X", "\"${X}\"", "\"a${substr(X, 0, 1)}\"", "\"%{ if X == \"A\" }a%{ endif }\"", "\"%{ for c in split(\"\", X) }${c}/%{ endfor }\"", "<<E\n${X}\nE\n",
	"X == \"A\" ? 1 : 2", "true ? X : \"\"", "false ? X : \"\"", "X == \"A\"", "X != null", "!(X == \"A\")", "N + 1", "-N", "N > 3 && true", "false && N > 3",
	"[for c in split(\"\", X) : c]", "[for i in [1, 2] : i if X == \"A\"]", "{ for c in [\"a\"] : c => X }", "{ for c in [X] : c => 1 }", "{ for c in [\"a\"] : c => 1 if X == \"A\" }",
	"{ for c in [\"a\", \"b\"] : X => c... }", "[for k, v in { (X) = 1 } : k]", "{ a = X }.a", "{ a = X }[\"a\"]", "[X][0]", "[{ a = X }][*].a", "[X].*", "[[X]][0][0]",
	"{ A = \"a\", B = \"b\" }[substr(X, 0, 1)]", "[\"a\", \"b\"][N - 19]", "[{ A = \"a\" }][0][substr(X, 0, 1)]", "{ A = { b = 1 } }[substr(X, 0, 1)].b", "{ (X) = 1 }", "{ (\"a${X}\") = 1 }", "(X)",
	"jsondecode(\"{\\\"A\\\":1}\")[substr(X, 0, 1)]", "var.derived", "local.derived", "\"${local.derived}\"", "var.list[0]", "var.map.a", "var.map[\"a\"]",
}

// TestOriginsStay derives values from a value of the environment, by every function and form of expression. None is
// shown.
func TestOriginsStay(t *testing.T) {
	for _, name := range Functions() {
		if calls[name] == nil {
			t.Errorf("no call tries %s", name)
		}
		forms = append(forms, calls[name]...)
	}
	for from, x := range map[string]string{"env": `env("KEY")`, "secret": `secret("KEY")`, "file": "file(\"/outside\")"} {
		file, diags := loadText(t, "variable \"derived\" { default = upper("+x+") }\nvariable \"list\" {\n type = list(string)\n default = ["+x+"]\n}\nvariable \"map\" {\n type = map(string)\n default = { a = "+x+" }\n}\nlocals { derived = [for c in split(\"\", "+x+") : c][0] }\n", false)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		for _, v := range file.Variables {
			if !strings.HasPrefix(v.Value, "(") {
				t.Errorf("variable %s from %s is %s", v.Name, from, v.Value)
			}
		}
		if from == "file" {
			x = fmt.Sprintf("file(%q)", file.Reads[0])
		}
		for _, form := range forms {
			text := strings.NewReplacer("X", x, "N", "strlen("+x+")").Replace(strings.ReplaceAll(form, "EXAMPLE", ""))
			l := newLoader(t.Context(), file.Path, file.loader.Options)
			l.vars, l.locals, l.src = file.loader.vars, file.loader.locals, []byte(text)
			e, diags := bounded.ParseExpression(l.src, "expression")
			if diags.HasErrors() {
				t.Fatalf("%s: %v", text, diags)
			}
			v := l.eval(e)
			if shown := show(v); l.diags.HasErrors() || !hides(v) || shown != "(secret)" && !strings.HasPrefix(shown, "(from ") {
				t.Errorf("%s is shown as %s, %v", text, shown, l.diags)
			}
		}
	}
}

// loadText loads a text beside a file outside of its folder. That file also contains the key.
func loadText(t *testing.T, text string, blind bool) (*File, hcl.Diagnostics) {
	t.Helper()
	dir, outside := t.TempDir(), t.TempDir()
	for path, content := range map[string]string{filepath.Join(outside, "outside"): awsKey, filepath.Join(dir, "rows.tsv"): "text\tlabel\na\tb\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text = strings.ReplaceAll(text, "/outside", filepath.Join(outside, "outside"))
	path := filepath.Join(dir, "p.hcl")
	return Load(t.Context(), path, Options{Catalog: stages(), Dir: dir, Text: []byte(text), Blind: blind, Getenv: func(name string) (string, bool) {
		return awsKey, name == "KEY"
	}})
}

// TestNothingShown puts a value of the environment into every place of a file, as a whole or in parts. Neither the
// loaded file nor a diagnostic shows any of it. With Blind, nothing depends on the value.
func TestNothingShown(t *testing.T) {
	const whole = `
variable "v" { default = @ }
knowledge "k" {
  source {
    path = "rows.tsv"
    KNOWLEDGE
  }
  embed { use = "minilm" }
  store { use = "milvus" }
}
pipeline "p" {
  PIPELINE
  retrieve "r" {
    from = knowledge.k
    RETRIEVE
  }
  prompt "c" { use = "completion" }
  sample "knn" { use = "neighbours" }
  sample "s" {
    use = "openai"
    SAMPLE
    config {
      model = "m"
      CONFIG
    }
  }
  elect "e" { use = "soft" }
}
`
	for name, c := range map[string]struct {
		at, text string
		wrong    bool // the place does not accept such a value
	}{
		"the variable": {}, "a path": {at: "PIPELINE", text: `input { path = @ }`, wrong: true}, "a path in a folder": {at: "PIPELINE", text: `input { path = "x/${@}" }`, wrong: true},
		"a pattern": {at: "PIPELINE", text: `input { path = "{rows.tsv,${@}}" }`, wrong: true}, "a column": {at: "KNOWLEDGE", text: `text = @`, wrong: true}, "a list": {at: "KNOWLEDGE", text: `meta = split("", @)`, wrong: true},
		"a number": {at: "RETRIEVE", text: `top_k = strlen(@)`, wrong: true}, "a bool": {at: "SAMPLE", text: `enabled = @ == "x"`}, "a rule": {at: "RETRIEVE", text: `keep = @`, wrong: true},
		"a variable in a rule": {at: "RETRIEVE", text: `keep = "label == var.v"`, wrong: true}, "a choice": {at: "RETRIEVE", text: `mode = @`, wrong: true}, "a duration": {at: "SAMPLE", text: `timeout = @`, wrong: true},
		"an expectation": {at: "PIPELINE", text: "expect \"x\" {\nrule = \"accuracy > 0.1\"\ndescription = @\n}", wrong: true}, "what is expected": {at: "PIPELINE", text: "expect \"x\" { rule = @ }", wrong: true},
		"whether something is expected": {at: "PIPELINE", text: "expect \"x\" {\nrule = \"accuracy > 0.1\"\nenabled = @ == \"x\"\n}"}, "variables": {at: "PIPELINE", text: "expect \"x\" {\nrule = \"accuracy > 0.1\"\nvariables = { v = @ }\n}", wrong: true},
		"a config": {at: "CONFIG", text: `base_url = "http://${@}"`}, "a config of another type": {at: "CONFIG", text: `temperature = @`, wrong: true}, "an unknown variable": {at: "CONFIG", text: `base_url = env(@)`, wrong: true},
		"a faulty call": {at: "CONFIG", text: `base_url = parseint(substr(@, 0, 9), 10)`, wrong: true}, "a faulty index": {at: "CONFIG", text: `base_url = { a = 1 }[@]`, wrong: true}, "a faulty name": {at: "CONFIG", text: `base_url = var.v.a`, wrong: true},
		"a missing file": {at: "CONFIG", text: `base_url = file(@)`, wrong: true}, "a regex": {at: "CONFIG", text: `base_url = regex("(${@}", "a")`, wrong: true},
	} {
		for _, value := range []string{`env("KEY")`, `join("/", split("", env("KEY")))`, `file("/outside")`, `lower(env("KEY"))`, `var.v`} {
			if value == "var.v" && c.at == "" {
				continue
			}
			text := strings.ReplaceAll(whole, c.at+"\n", c.text+"\n")
			for _, place := range []string{"KNOWLEDGE", "PIPELINE", "RETRIEVE", "SAMPLE", "CONFIG"} {
				text = strings.ReplaceAll(text, place+"\n", "\n")
			}
			if text = strings.Replace(text, "@", strings.ReplaceAll(value, "var.v", `env("KEY")`), 1); c.text != "" {
				text = strings.ReplaceAll(text, "@", value)
			}
			for _, blind := range []bool{false, true} {
				file, diags := loadText(t, text, blind)
				var b bytes.Buffer
				if err := hcl.NewDiagnosticTextWriter(&b, file.Sources, 0, false).WriteDiagnostics(diags); err != nil {
					t.Fatal(err)
				}
				for _, v := range file.Variables {
					b.WriteString(v.Value + "\n")
				}
				for _, p := range file.Pipelines {
					for _, s := range p.Stages {
						b.Write(s.Config.Shown())
					}
					if p.Input != nil {
						b.WriteString(p.Input.shown())
					}
				}
				for _, part := range []string{awsKey[:4], awsKey[8:12], "a/k/i", "A/K/I", strings.ToLower(awsKey[:4]), strings.ToLower(awsKey[8:12])} {
					if strings.Contains(b.String(), part) {
						t.Errorf("%s of %s, blind %v, shows %s: %s", name, value, blind, part, &b)
					}
				}
				if !blind && c.wrong != diags.HasErrors() || c.wrong && len(diags) == 0 && !blind {
					t.Errorf("%s of %s: %v", name, value, diags)
				}
			}
		}
	}
}

// TestBlind loads files that are correct only for some values of the environment. With Blind, they are correct.
func TestBlind(t *testing.T) {
	const text = `
locals { n = parseint(substr(env("KEY"), 0, 1), 10) }
knowledge "k" {
  source { path = "${env("KEY")}.tsv" }
  labels { path = env("KEY") }
  embed { use = "minilm" }
  store {
    use = "milvus"
    config { address = env("KEY") }
  }
}
pipeline "p" {
  input { path = file("/outside") }
  retrieve "r" {}
  prompt "c" { use = "completion" }
  sample "s" {
    use = "openai"
    enabled = local.n > 3
    config {
      model = "m"
      base_url = env("KEY")
    }
  }
  sample "knn" { use = "neighbours" }
  elect "e" { use = "soft" }
}
`
	if _, diags := loadText(t, text, false); !diags.HasErrors() {
		t.Error("with the values it is right")
	}
	file, diags := loadText(t, text, true)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if got := file.Pipelines[0].Input.shown(); !strings.HasPrefix(got, "(from /") {
		t.Errorf("the input is %s", got)
	}
}
