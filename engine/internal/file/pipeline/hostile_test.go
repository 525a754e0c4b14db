package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// chain writes locals a0 to aN. a0 has the value first; each other local has the value next, with #
// replaced by the name of the local before.
func chain(n int, first, next string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "locals {\n  a0 = %s\n", first)
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "  a%d = %s\n", i, strings.ReplaceAll(next, "#", fmt.Sprintf("local.a%d", i-1)))
	}
	return b.String() + "}\n"
}

// each formats the numbers up to n.
func each(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// local returns a file with one local value.
func local(value string) string { return "locals {\n  a = " + value + "\n}\n" }

// hostile returns files that would take minutes or gigabytes without bounds.
func hostile() map[string]string {
	again := strings.Repeat
	// wide is a list of 10,000 elements, and long a text of 4 MB.
	wide := chain(3, "[1,1,1,1,1,1,1,1,1,1]", "concat(#,#,#,#,#,#,#,#,#,#)")
	long := chain(6, `"`+again("x", 10)+`"`, `"${#}${#}${#}${#}${#}${#}${#}${#}"`)
	const store = "knowledge \"k\" {\n  source { path = \"p.hcl\" }\n  embed { use = \"hashing\" }\n  store { use = \"local\" }\n}\n"
	return map[string]string{
		"templates":           chain(20, `"xxxxxxxx"`, `"${#}${#}${#}${#}"`),
		"template loops":      chain(20, `"xxxxxxxx"`, `"%{for x in [1,2,3,4]}${#}%{endfor}"`),
		"heredocs":            chain(20, `"xxxxxxxx"`, "<<E\n${#}${#}${#}\nE"),
		"lists":               chain(40, `"x"`, `[#, #]`),
		"objects":             chain(40, `"x"`, `{a = #, b = #}`),
		"deep objects":        chain(5000, `"x"`, `{a = #}`),
		"long keys":           chain(40, `"x"`, `{(jsonencode([#, #])) = 1}`),
		"conditions":          chain(40, `"x"`, `true ? [#, #] : [#, #]`),
		"parentheses":         chain(40, `"x"`, `([(#), (#)])`),
		"splats":              chain(40, `["x"]`, `[#, #][*]`),
		"relative":            chain(40, `{a = "x"}`, `{a = [#, #].0, b = #}`),
		"comparisons":         chain(40, `["x"]`, `[#, # == #, #]`),
		"for":                 chain(40, `["x"]`, `[for x in [1, 2] : #]`),
		"nested for":          wide + "locals {\n b = [for a in local.a2: [for b in local.a2: [for c in local.a2: a]]]\n}\n",
		"for without result":  wide + "locals {\n b = [for a in local.a3: [for b in local.a3: b if false] if false]\n}\n",
		"for object":          wide + "locals {\n b = {for a in range: a => [for b in local.a3: {for i, c in local.a3: i => c}]}\n c = {for a, x in local.a2: a => [for b in local.a3: {for i, c in local.a3: i => c}]}\n}\n",
		"for group":           wide + "locals {\n b = {for i, x in local.a3: x => local.a3...}\n}\n",
		"concat":              chain(40, `["x"]`, `concat(#, #)`),
		"flatten":             chain(40, `["x"]`, `flatten([#, #])`),
		"merge":               chain(40, `{a = "x"}`, `merge({b = #}, {c = #})`),
		"join":                chain(40, `"x"`, `join(#, [#, #, #])`),
		"join separator":      long + "locals {\n b = join(local.a5, split(\"\", local.a3))\n}\n",
		"replace":             chain(40, `"xx"`, `replace(#, "", #)`),
		"format":              chain(40, `"x"`, `format("%s%[1]s%[1]s", #)`),
		"format width":        local(`format("%1000000000d", 1)`),
		"format precision":    local(`format("%.1000000000f", 1)`),
		"format overflow":     local(`format("%99999999999999999999s", "a")`),
		"format of text":      local(`format("%d", "1e600000000")`),
		"format json":         chain(40, `"\""`, `format("%q%[1]q", #)`),
		"format again":        long + "locals {\n b = format(\"" + again("%[1]s", 10000) + "\", local.a5)\n}\n",
		"indent":              local(`indent(1000000000, "a\nb")`),
		"indent lines":        local(`indent(100000, "` + again(`\n`, 10000) + `")`),
		"jsonencode":          chain(40, `"\""`, `jsonencode(#)`),
		"jsondecode deep":     chain(6, `"[[[[[[[[[["`, `"${#}${#}${#}${#}${#}${#}${#}"`) + "locals {\n b = jsondecode(local.a6)\n}\n",
		"jsondecode wide":     chain(6, `"1,1,1,1,1,"`, `"${#}${#}${#}${#}${#}${#}${#}"`) + "locals {\n b = jsondecode(\"[${local.a6}1]\")\n}\n",
		"jsondecode number":   local(`"${jsondecode("1e600000000")}"`),
		"split":               long + "locals {\n b = split(\"\", local.a6)\n}\n",
		"split all":           long + "locals {\n b = [for i in [1,2,3,4,5,6,7,8]: split(\"\", local.a3)]\n}\n",
		"distinct":            wide + "locals {\n b = distinct([for i, x in local.a3: \"${i}\"])\n}\n",
		"distinct mixed":      wide + "locals {\n b = distinct([for i, x in local.a3: [i, \"x\", true][i % 3]])\n}\n",
		"condition of lists":  wide + "locals {\n b = true ? [for i, x in local.a3: [i, \"x\"][i % 2]] : [for i, x in local.a3: \"\" if i > 2]\n}\n",
		"coalesce":            wide + "locals {\n b = coalesce([for i, x in local.a3: [i, \"x\"][i % 2]]...)\n}\n",
		"regex":               long + "locals {\n b = regex(\"((x?){500}){2}y\", local.a5)\n}\n",
		"regex size":          local(`regex("` + again("(x{1000})", 1000) + `", "x")`),
		"regex classes":       local(`regex("` + again(`[\\pL\\pN]`, 10000) + `", "x")`),
		"parseint":            chain(6, `"9999999999"`, `"${#}${#}${#}${#}${#}${#}${#}"`) + "locals {\n b = parseint(local.a6, 10)\n}\n",
		"number of digits":    chain(6, `"9999999999"`, `"${#}${#}${#}${#}${#}${#}${#}"`) + "locals {\n b = local.a6 * 1\n}\n",
		"number as text":      local(`"x${1e600000000}"`),
		"small number":        local(`"x${1e-600000000}"`),
		"sum of numbers":      local(`1e600000000 + 1`),
		"sum of texts":        local(`"1e600000000" + 1`),
		"rest of texts":       local(`"1e600000000" % 7`),
		"product of numbers":  chain(40, `10`, `# * #`),
		"number as index":     local(`[1, 2]["1e600000000"]`),
		"number as argument":  local(`substr("abc", "1e600000000", 1)`),
		"number as element":   local(`element([1, 2], 1e600000000)`),
		"number as key":       local(`{(1e600000000) = 1}`),
		"number as default":   "variable \"a\" {\n  type = number\n  default = \"1e600000000\"\n}\n",
		"number in config":    "knowledge \"k\" {\n  source { path = \"p.hcl\" }\n  chunk {\n    use = \"sentences\"\n    config { size = \"1e600000000\" }\n  }\n  embed { use = \"hashing\" }\n  store { use = \"local\" }\n}\n",
		"digits":              local(again("9", 200_000)),
		"many functions":      local("[" + again("upper(upper(upper(upper(1)))),", 8000) + "]"),
		"many errors":         local("[" + each(20_000, "local.b%d,") + "]"),
		"many arguments":      each(20_000, "a%d = 1\n"),
		"many blocks":         each(20_000, "a%d {}\n"),
		"many duplicates":     again("a = 1\n", 20_000),
		"many locals":         "locals {\n" + each(18_000, "a%d = 1\n") + "}\n" + local("local.zz"),
		"many of one name":    local("[" + again("var.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,", 5000) + "]"),
		"chain of locals":     chain(9_000, `"x"`, `#`),
		"long name":           local("var."+again("a", 100_000)) + "variable \"" + again("a", 100_001) + "\" { default = 1 }\n",
		"long choice":         "pipeline \"p\" {\n  retrieve \"r\" {\n    mode = \"" + again("a", 200_000) + "\"\n  }\n}\n",
		"long line":           local(`"` + again("a", 200_000) + `" + 1`),
		"brackets":            local(again("[", 40_000) + again("]", 40_000)),
		"open brackets":       again("[", 200_000),
		"parens":              local(again("(", 40_000) + "1" + again(")", 40_000)),
		"braces":              again("a {\n", 20_000) + again("}\n", 20_000),
		"nots":                local(again("!", 80_000) + "true"),
		"minus":               local(again("-", 80_000) + "1"),
		"plus":                local(again("1+", 40_000) + "1"),
		"ternaries":           local(again("true?1:", 15_000) + "1"),
		"indices":             "locals {\n  b = []\n}\n" + local("local.b"+again("[0]", 30_000)),
		"attributes":          "locals {\n  b = []\n}\n" + local("local.b"+again(".b", 45_000)),
		"splat chain":         "locals {\n  b = []\n}\n" + local("local.b"+again("[*]", 30_000)),
		"template conditions": local(`"` + again("%{if true}", 10_000) + again("%{endif}", 10_000) + `"`),
		"nested templates":    local(again(`"${`, 20_000) + "1" + again(`}"`, 20_000)),
		"lines":               local("<<E\n" + again("\n", 90_000) + "E"),
		"indented lines":      local("<<-E\n" + again(" x\n", 80_000) + " E"),
		"escapes":             local(`"` + again("$${", 80_000) + `"`),
		"not a text":          again("\x00", 250_000),
		"quotes":              again(`"`, 250_000),
		"trim":                long + "locals {\n b = trim(replace(local.a6, \"x\", \"é\"), \"${local.a6}é\")\n}\n",
		"secrets":             long + "locals {\n s = [for c in split(\"\", local.a4): secret(\"X${c}\", \"x${c}\")]\n" + each(500, " t%[1]d = secret(\"X\", \"s%[1]d\")\n") + " z = regex(local.a5, \"b\")\n}\n",
		"quoted secrets":      long + "locals {\n" + each(5000, " t%[1]d = secret(\"X\", \"s%[1]d\")\n") + " z = local.t1[local.a6]\n zz = { for x in [1, 1]: local.a6 => x}\n}\n",
		"configs":             store + "pipeline \"p\" {\n  retrieve \"r\" { from = knowledge.k }\n  sample \"s\" {\n    use = \"prototype\"\n" + each(2000, "    config \"c%d\" {}\n") + each(3500, "    fallback \"f%d\" {\n      when = \"failed\"\n    }\n") + "  }\n}\n",
		"fallbacks":           store + "pipeline \"p\" {\n  retrieve \"r\" {\n    from = knowledge.k\n    keep = \"" + again("score > 0.1 or ", 240) + "true\"\n" + each(4000, "    fallback \"f%d\" {\n      when = \"failed\"\n    }\n") + "  }\n}\n",
		"patterns":            store + "pipeline \"p\" {\n  retrieve \"r\" {\n    from = knowledge.k\n    keep = \"" + again("text matches '(x{90})' or ", 100) + "true\"\n" + each(4000, "    fallback \"f%d\" {\n      when = \"failed\"\n    }\n") + "  }\n}\n",
		"large patterns":      store + "pipeline \"p\" {\n  retrieve \"r\" {\n    from = knowledge.k\n    keep = \"" + again("text matches '(x{1000})' or ", 100) + "true\"\n  }\n}\n",
		"indented rule":       store + "pipeline \"p\" {\n  retrieve \"r\" {\n    from = knowledge.k\n    keep = <<-E\n" + again(" ", 200_000) + again("xxx or ", 500) + "\n" + again(" ", 200) + "E\n" + each(300, "    fallback \"f%d\" {\n      when = \"failed\"\n    }\n") + "  }\n}\n",
		"rules with lists":    "variable \"v\" {\n  default = [" + again("1,", 20_000) + "]\n}\n" + store + "pipeline \"p\" {\n  retrieve \"r\" {\n    from = knowledge.k\n    keep = \"label in var.v\"\n" + each(1000, "    fallback \"f%d\" {\n      when = \"failed\"\n    }\n") + "  }\n}\n",
		"enrichments":         each(2500, "variable \"v%d\" {\n  default = 1\n}\n") + strings.Replace(store, "  embed", each(3000, "  enrich \"e%d\" { use = \"path\" }\n")+"  embed", 1),
		"samples":             store + "pipeline \"p\" {\n  retrieve \"r\" { from = knowledge.k }\n" + each(2500, "  prompt \"p%d\" { use = \"completion\" }\n") + each(2500, "  sample \"s%d\" { use = \"neighbours\" }\n") + "}\n",
		"globs":               chain(6, `"{{{{{{{{{{"`, `"${#}${#}${#}${#}${#}${#}${#}"`) + "knowledge \"k\" {\n  source {\n    path = \"${local.a5}*.md\"\n    exclude = [local.a5]\n  }\n  embed { use = \"hashing\" }\n  store { use = \"local\" }\n}\n",
		"exclude":             chain(6, `"{{{{{{{{{{"`, `"${#}${#}${#}${#}${#}${#}${#}"`) + "knowledge \"k\" {\n  source {\n    path = \"sub/**/*.md\"\n    exclude = [local.a5]\n  }\n  embed { use = \"hashing\" }\n  store { use = \"local\" }\n}\n",
		"long path":           long + "knowledge \"k\" {\n  source { path = local.a6 }\n  embed { use = \"hashing\" }\n  store { use = \"local\" }\n}\n",
		"long duration":       long + "knowledge \"k\" {\n  source { path = \"p.hcl\" }\n  embed {\n    use = \"hashing\"\n    timeout = local.a6\n  }\n  store { use = \"local\" }\n}\n",
		"escaped config":      chain(6, `"\u0001\u0001\u0001\u0001\u0001\u0001\u0001\u0001"`, `"${#}${#}${#}${#}${#}${#}${#}${#}"`) + store + "pipeline \"p\" {\n  retrieve \"r\" { from = knowledge.k }\n  prompt \"q\" { use = \"completion\" }\n  sample \"s\" {\n    use = \"openai\"\n    config { model = local.a6 }\n  }\n}\n",
		"parens in lists":     local("[" + again(again("(", 300)+"1"+again(")", 300)+",", 160) + "]"),
		"objects in objects":  local(again(again("{(a)=", 300)+"1"+again("}", 300), 1)),
		"trims":               local(`"` + again("${~ 1 ~} ", 20_000) + `"`),
		"template fors":       local(`"` + again("%{for a in []}%{endfor}", 8_000) + `"`),
		"comments":            again("/* */ ", 40_000),
		"many heredocs":       "locals {\n" + each(15_000, "a%d=<<E\nE\n") + "}\n",
		"wide runes":          local(`"` + again("👩‍👩‍👧‍👦", 8_000) + `" + 1`),
		"too long":            local(`"` + again("x", 100<<20) + `"`),
		"repeated files":      local("[" + again(`file("big.txt"),`, 100) + "]"),
		"rule of megabytes":   long + "knowledge \"k\" {\n  source { path = \"p.hcl\" }\n  embed { use = \"hashing\" }\n  store { use = \"local\" }\n}\npipeline \"p\" {\n  retrieve \"r\" {\n    from = knowledge.k\n    keep = local.a5\n  }\n}\n",
		"unused prompts":      "knowledge \"k\" {\n  source { path = \"p.hcl\" }\n  embed { use = \"hashing\" }\n  store { use = \"local\" }\n}\npipeline \"p\" {\n  retrieve \"r\" { from = knowledge.k }\n" + each(200, "  prompt \"p%d\" { use = \"completion\" }\n") + "  sample \"s\" { use = \"neighbours\" }\n}\n",
	}
}

// harmless are the files that are large but correct.
var harmless = []string{
	"chain of locals", "comments", "enrichments", "for without result", "many heredocs", "parens in lists", "samples", "unused prompts",
}

// maxAllocated limits the total allocations of loading a file, which bounds its memory at any time.
const maxAllocated = 256 << 20

// TestHostileFiles loads files that are made to do harm. Each ends with a diagnostic in the file,
// after a bounded amount of work.
func TestHostileFiles(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "big.txt"), []byte(strings.Repeat("x", maxFile)), 0o600))
	for name, src := range hostile() {
		t.Run(name, func(t *testing.T) {
			must.Do(t, os.WriteFile(filepath.Join(dir, "p.hcl"), []byte(src), 0o600))
			before := allocated()
			file, diags := Load(t.Context(), "p.hcl", Options{Dir: dir, Catalog: stages()})
			if n := allocated() - before; n > maxAllocated {
				t.Errorf("%d MB allocated", n>>20)
			}
			expectUsable(t, src, file, diags)
			if diags.HasErrors() == slices.Contains(harmless, name) {
				t.Errorf("got %v", diags)
			}
			expectShort(t, diags)
			for _, d := range diags {
				if d.Summary != "Too many errors" && (d.Subject == nil || d.Subject.Filename != "p.hcl" || d.Subject.Start.Line < 1) {
					t.Errorf("%v does not point into the file", d)
				}
				if d.Summary == "Loading takes too long" {
					t.Error(d)
				}
			}
		})
	}
}

// TestFirstErrorsAreKept: of many errors, the first in the file are kept.
func TestFirstErrorsAreKept(t *testing.T) {
	_, diags := parse(t, []byte(hostile()["many arguments"]), "p.hcl", Options{Catalog: stages()})
	for i, d := range diags {
		if i == bounded.MaxDiagnostics {
			continue // it says that there are more
		}
		if d.Subject == nil || d.Subject.Start.Line != i+1 {
			t.Fatalf("error %d: %v", i, d)
		}
	}
	if len(diags) != bounded.MaxDiagnostics+1 {
		t.Errorf("%d errors", len(diags))
	}
}

// allocated returns the number of bytes allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// expectShort fails a test if there are too many diagnostics, or if one quotes too much.
func expectShort(t *testing.T, diags hcl.Diagnostics) {
	t.Helper()
	if len(diags) > bounded.MaxDiagnostics+1 {
		t.Errorf("%d diagnostics", len(diags))
	}
	for _, d := range diags {
		if len(d.Summary)+len(d.Detail) > bounded.MaxDetail+100 {
			t.Errorf("a diagnostic of %d bytes: %.100s", len(d.Detail), d.Detail)
		}
	}
}

// TestHostileValues gives a variable malicious values.
func TestHostileValues(t *testing.T) {
	dir := t.TempDir()
	again := strings.Repeat
	must.Do(t, os.WriteFile(filepath.Join(dir, "long.vars"), []byte(`v = "`+again("x", 10<<20)+`"`), 0o600))
	must.Do(t, os.WriteFile(filepath.Join(dir, "deep.vars"), []byte("v = "+again("[", 90_000)), 0o600))
	file := func(name string) Options { return Options{VarFiles: []string{name}} }
	given := func(value string) Options { return Options{Vars: map[string]string{"v": value}} }
	for name, test := range map[string]struct {
		typ string
		o   Options
	}{
		"long text":          {"string", given(again("x", 10<<20))},
		"long list":          {"list(string)", given(again("x,", 5<<20))},
		"many elements":      {"list(string)", given(again("x,", 100_000))},
		"deep list":          {"list(string)", given(again("[", 90_000))},
		"deep map":           {"map(string)", given(again("{a=", 40_000))},
		"many numbers":       {"map(number)", given("{" + each(20_000, "a%d=1,") + "}")},
		"digits":             {"number", given(again("9", 10<<20))},
		"large number":       {"number", given("1e600000000")},
		"small number":       {"number", given("1e-600000000")},
		"file that is long":  {"string", file("long.vars")},
		"file that is deep":  {"string", file("deep.vars")},
		"file without end":   {"string", file("/dev/zero")},
		"from environment":   {"number", Options{Getenv: func(string) (string, bool) { return "1e600000000", true }}},
		"override":           {"string", Options{Set: []Override{{Target: "var.v", Value: again("x", 10<<20)}}}},
		"override of stages": {"string", Options{Set: []Override{{Target: "r.mode", Value: again("(", 90_000)}}, Vars: map[string]string{"v": "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			src := "variable \"v\" { type = " + test.typ + " }\nknowledge \"k\" {\n  source { path = \"-\" }\n  embed { use = \"hashing\" }\n  store { use = \"local\" }\n}\n" +
				"pipeline \"p\" {\n  retrieve \"r\" { from = knowledge.k }\n}\n"
			test.o.Dir, test.o.Catalog = dir, stages()
			before := allocated()
			_, diags := parse(t, []byte(src), "p.hcl", test.o)
			if n := allocated() - before; n > maxAllocated {
				t.Errorf("%d MB allocated", n>>20)
			}
			if !diags.HasErrors() {
				t.Error("no errors")
			}
			expectShort(t, diags)
		})
	}
}

// TestNotAFile: files that may never end are not read.
func TestNotAFile(t *testing.T) {
	for _, path := range []string{"/dev/zero", t.TempDir()} {
		if _, diags := Load(t.Context(), path, Options{Catalog: stages()}); !strings.Contains(diags.Error(), "is not a regular file") {
			t.Errorf("%s: %v", path, diags)
		}
	}
}
