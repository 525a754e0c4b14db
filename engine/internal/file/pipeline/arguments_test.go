package pipeline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/sdk"
)

const overridden = `-- p.hcl --
variable "doubt" { default = 0.1 }
variable "weights" {
  type    = map(number)
  default = {}
}
variable "train" {
  type    = path
  default = "train.tsv"
}
knowledge "k" {
  source { path = var.train }
  enrich "contextualize" {
    use = "context"
    config { model = "m" }
  }
  enrich "place" { use = "path" }
  embed { use = "minilm" }
  store { use = "local" }
}
pipeline "p" {
  input { path = "train.tsv" }
  retrieve "near" {
    from  = knowledge.k
    top_k = 30
  }
  sample "near" {
    use = "neighbours"
    config { k = 5 }
    config "neighbours" { k = 6 }
  }
  sample "llm" {
    use  = "neighbours"
    when = "margin < var.doubt"
  }
  elect "e" {
    use = "weighing"
    config { weights = var.weights }
  }
}
-- train.tsv --
text	label
`

// loadWith loads the file above with arguments replaced, each given as target=value.
func loadWith(t *testing.T, overrides ...string) (*File, string) {
	t.Helper()
	path, o := unpack(t, txtar.Parse([]byte(overridden)))
	for _, given := range overrides {
		target, value, _ := strings.Cut(given, "=")
		o.Set = append(o.Set, Override{target, value})
	}
	o.Catalog = append(o.Catalog.(catalog), sdk.ElectStage("weighing", "", opener[struct {
		Weights map[string]string `config:"weights" doc:"Of the voters."`
	}, sdk.Elector]))
	file, diags := Load(t.Context(), path, o)
	var all []string
	for _, d := range diags {
		all = append(all, d.Detail)
	}
	return file, strings.Join(all, "\n")
}

func TestOverride(t *testing.T) {
	file, faults := loadWith(t, "near.top_k=7", "sample.near.k=9", "llm.when=margin < 2 * var.doubt",
		"e.enabled=1 == 1", "var.doubt=0.4", "e.weights={near = 2.5}", `llm.n="3"`)
	if faults != "" {
		t.Fatal(faults)
	}
	s := file.Pipelines[0].Stages
	if s[0].Retrieve.Ranking.TopK != 7 || string(s[1].Config.Open) != `{"k":9}` || s[2].When.Text() != "margin < 2 * var.doubt" || s[2].N != 3 {
		t.Errorf("top_k %d, config %s, when %q, n %d", s[0].Retrieve.Ranking.TopK, s[1].Config.Open, s[2].When.Text(), s[2].N)
	}
	if string(s[3].Config.Open) != `{"weights":{"near":"2.5"}}` || file.Variables[0].Value != "0.4" {
		t.Errorf("elect %s, doubt %s", s[3].Config.Open, file.Variables[0].Value)
	}
	if file, faults = loadWith(t, "var.weights={near = 2, llm = 0.5}"); faults != "" || file.Variables[1].Value != "llm = 0.5, near = 2" {
		t.Errorf("weights are %q; %s", file.Variables[1].Value, faults)
	}
}

func TestOverrideEnrich(t *testing.T) {
	file, faults := loadWith(t, "enrich.place.enabled=false", "contextualize.embed=false", "enrich.contextualize.model=other")
	if faults != "" {
		t.Fatal(faults)
	}
	k := file.Knowledge[0]
	on := k.Enrichers()
	if len(on) != 1 || on[0].Embedded || !on[0].Lexical || !strings.Contains(string(on[0].Config.Open), `"other"`) {
		t.Errorf("enabled: %+v", on)
	}
	if all := k.Stages(); len(all) != 3 || all[0] != on[0] || all[1] != k.Embed {
		t.Errorf("stages: %v", all)
	}
}

func TestOverrideFaults(t *testing.T) {
	tests := []struct{ given, want string }{
		{"near.top_k=0", "top_k is a whole number of at least 1."},
		{"near.top_k=var.x", `There is no variable "x" in this file.`},
		{"enrich.contextualiz.enabled=false", `enrich.contextualiz.enabled=false: There is no stage "contextualiz". Did you mean "contextualize"?`},
		{"contextualize.lexicl=false", `contextualize.lexicl=false: The stage "contextualize" has no argument "lexicl". Did you mean "contextualize.lexical"?`},
		{"near.topk=5", `near.topk=5: The stage "near" has no argument "topk". Did you mean "near.top_k"?`},
		{"llm.kk=5", `llm.kk=5: The stage "llm" has no argument "kk". Did you mean "llm.k"?`},
		{"lmm.k=5", `lmm.k=5: There is no stage "lmm". Did you mean "llm"?`},
		{"var.dubt=1", `var.dubt=1: p.hcl has no variable "dubt". Did you mean "doubt"?`},
		{"top_k=5", "top_k=5: Name a stage's argument or a variable: STAGE.ARGUMENT, BLOCK.STAGE.ARGUMENT or var.NAME."},
		{"near.timeout=5s", `near.timeout=5s: Stages of several kinds are called "near": write retrieve.near.timeout.`},
		{"llm.when=margn < 0.1", `There is no "margn" here. Did you mean "margin"?`},
		{"llm.k=many", `k is of type int: a number is required.`},
		{"e.use=sfot", `No plugin offers the elect stage "sfot". Did you mean "soft"?`},
		{"var.weights=5", `-var gives the map "weights" the value 5. Write { name = value, ... }.`},
	}
	for _, test := range tests {
		t.Run(test.given, func(t *testing.T) {
			_, got := loadWith(t, test.given)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMeteredIsTheSame: metering changes no value, and no diagnostic.
func TestMeteredIsTheSame(t *testing.T) {
	l := newLoader(t.Context(), "p.hcl", Options{Catalog: stages()})
	l.vars = map[string]cty.Value{"x": cty.StringVal("text"), "s": cty.StringVal("hush").Mark(secret{"S", "hush"}), "u": cty.DynamicVal}
	l.locals = map[string]cty.Value{"l": cty.ListVal([]cty.Value{cty.StringVal("a"), cty.StringVal("b")}), "n": cty.NumberIntVal(3)}
	for _, src := range []string{
		`1`, `"text"`, `null`, `-local.n`, `!true`, `var.x`, `var["x"]`, `local.l[1]`, `local.l["1"]`, `local.l[local.n - 2]`, `(local.l)[0]`,
		`"${var.x} and ${local.n}"`, `"${local.l}"`, `"%{if true}a%{else}b%{endif}"`, `"%{for x in local.l}${x},%{endfor}"`,
		"<<-E\n  a ${var.x}\n    b\n  E\n", `[1, "a", [true]]`, `{a = 1, "b" = 2, (var.x) = 3, true = 4}`, `{var.x = 1}`, `{a = {b = [1, {c = 2}]}}.a.b[1].c`,
		`[for x in local.l : upper(x) if x != "b"]`, `{for i, x in local.l : x => i}`, `{for x in local.l : "k" => x...}`, `[for x in local.l : [for y in local.l : "${x}${y}"]]`,
		`[{a = 1}, {a = 2}][*].a`, `[{a = 1}].*.a`, `true ? 1 : "a"`, `false ? [1] : ["a", "b"]`, `1 + "2"`, `"3" * 2 > 5 && !false`, `1 == "1"`,
		`concat(local.l, ["c"])`, `join("-", [local.l, ["c"]]...)`, `max([1, 2, 3]...)`, `format("%s %5.1f %q", "a", 1.5, "b")`, `jsonencode({a = [1, null]})`,
		`jsondecode("{\"a\": [1, {}]}")`, `regex("(?P<a>[a-z]+)", "xyz")`, `split(",", "a,b")`, `replace("aaa", "a", "bb")`, `indent(2, "a\nb")`, `distinct(["a", "b", "a"])`,
		`coalesce(null, "a")`, `parseint("ff", 16)`, `trim("--a--", "-")`, `substr("abc", 1, "1")`, `"${var.s}!"`, `format("%s", var.s)`, `var.u`, `"${var.u}"`, `[for x in var.u : x]`, `format("%s", var.u)`,
		// errors
		`local.l[7]`, `1 + "a"`, `nonsense`, `nonsense(1)`, `join(1)`, `[for x in 1 : x]`, `{for x in local.l : "k" => x}`, `null ? 1 : 2`, `"${null}"`, `regex("(", "a")`, `jsondecode("{")`, `max([]...)`, `format("%d", "a")`,
	} {
		e, diags := bounded.ParseExpression([]byte(src), "value")
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		want, wantDiags := e.Value(l.contextOf(e))
		got, gotDiags := l.Value(e, l.contextOf(e))
		if !got.RawEquals(want) || gotDiags.Error() != wantDiags.Error() {
			t.Errorf("%s:\ngot  %#v, %v\nwant %#v, %v", src, got, gotDiags, want, wantDiags)
		}
	}
}

// TestLocalsByIndex: local["x"] waits for x as local.x does.
func TestLocalsByIndex(t *testing.T) {
	l := newLoader(t.Context(), "p.hcl", Options{Catalog: stages()})
	diags := l.parse([]byte("locals {\n  a = local[\"b\"]\n  b = \"x\"\n  c = local[\"bb\"]\n}\n"))
	if got := l.locals["a"]; !got.RawEquals(cty.StringVal("x")) {
		t.Errorf("got %#v", got)
	}
	if len(diags) != 1 || diags[0].Summary != "Unknown local value" || diags[0].Subject.Start.Line != 4 {
		t.Errorf("got %v", diags)
	}
}
