package pipeline

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/racflow/racflow/engine/bounded"
)

// TestMeteredIsTheSame: metering changes no value, and no diagnostic.
func TestMeteredIsTheSame(t *testing.T) {
	l := newLoader(t.Context(), "p.hcl", Options{Catalog: stages()})
	l.vars = map[string]cty.Value{"x": cty.StringVal("text"), "s": cty.StringVal("hush").Mark(secret{"hush"}), "u": cty.DynamicVal}
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
