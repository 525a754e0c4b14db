package lsp

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/racflow/racflow/engine/internal/file/grammar"
	"github.com/racflow/racflow/engine/internal/file/rule"
)

func TestCompletion(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // offered completions, in this order; others may be in between
		not        []string
	}{
		{"top of the file", "¦", []string{"variable", "locals", "required_plugins", "limit", "knowledge", "pipeline"}, []string{"retrieve"}},
		{"a word at the top", "pipe¦", []string{"pipeline"}, nil},
		{"blocks of a knowledge", "knowledge \"k\" {\n  ¦\n}", []string{"source", "chunk", "enrich", "embed", "store"}, []string{"sample"}},
		{"stages of a pipeline", "pipeline \"p\" {\n  ¦\n}", []string{"batch", "input", "retrieve", "elect"}, []string{"source"}},
		{"arguments that are not there yet", in("sample \"s\" {\n  use = \"knn\"\n  ¦\n}"), []string{"timeout", "limit", "accept", "price", "fallback", "config"}, []string{"use", "keep"}},
		{"the argument itself", in("sample \"s\" {\n  u¦se = \"knn\"\n}"), []string{"use"}, nil},
		{"arguments of a fallback", in("retrieve \"r\" {\n  fallback \"f\" {\n    ¦\n  }\n}"), []string{"mode", "when"}, []string{"whole", "enabled"}},
		{"a block on one line", in("elect \"e\" { ¦ }"), []string{"use", "flag"}, nil},
		{"behind an argument", in("elect \"e\" {\n  use = \"soft\"  # ¦\n}"), nil, []string{"flag", "use"}},
		{"behind a brace", in("elect \"e\" { use = \"soft\" } ¦"), nil, []string{"sample"}},

		{"what is required", "required_plugins {\n  mine = {\n    source = \"x/y\"\n    ¦\n  }\n}", []string{"version", "network", "read", "write", "confined"}, []string{"source", "batch"}},
		{"what is required, in a line", "required_plugins {\n  mine = { ¦ }\n}\npipeline \"p\" {}", []string{"source", "version"}, []string{"batch"}},
		{"what is required, a value", "required_plugins {\n  mine = { source = \"x\", confined = ¦ }\n}", []string{"true", "false"}, nil},
		{"behind what is required", "required_plugins {\n  mine = { source = \"x\", read = [\"a\"] }\n}\npipeline \"p\" {\n  ¦\n}", []string{"batch", "input"}, []string{"source"}},

		{"use", in("elect \"e\" {\n  use = \"¦\"\n}"), []string{"soft", "majority"}, []string{"knn"}},
		{"use without quotes", in("elect \"e\" {\n  use = ¦\n}"), []string{"soft", "majority", "var.election", "local.few", "lookup"}, nil},
		{"use of a plugin", in("sample \"e\" {\n  use = \"mine/¦\"\n}"), []string{"mine/best"}, nil},

		{"config", in("sample \"s\" {\n  use = \"knn\"\n  config {\n    ¦\n  }\n}"), []string{"k", "how", "exact"}, []string{"deep"}},
		{"config above its use", in("sample \"s\" {\n  config {\n    ¦\n  }\n  use = \"knn\"\n}"), []string{"k"}, []string{"deep"}},
		{"config by a variable", "variable \"v\" { default = \"mine/best\" }\npipeline \"p\" {\n  sample \"s\" {\n    use = var.v\n    config {\n      ¦\n    }\n  }\n}", []string{"deep"}, []string{"k"}},
		{"config of nobody knows what", in("sample \"s\" {\n  use = file(\"x\")\n  config {\n    ¦\n  }\n}"), []string{"k", "deep"}, nil},
		{"config with a label", in("sample \"s\" {\n  use = var.x\n  config \"knn\" {\n    ¦\n  }\n}"), []string{"k"}, []string{"deep"}},
		{"config of a fallback", in("sample \"s\" {\n  use = \"knn\"\n  fallback \"f\" {\n    config {\n      ¦\n    }\n  }\n}"), []string{"k"}, []string{"deep"}},
		{"label of a config", in("sample \"s\" {\n  config \"¦\" {\n  }\n}"), []string{"knn", "mine/best"}, []string{"soft"}},
		{"block in a config", in("sample \"s\" {\n  use = \"mine/best\"\n  config {\n    deep {\n      ¦\n    }\n  }\n}"), []string{"depth"}, nil},

		{"one of", in("sample \"s\" {\n  use = \"knn\"\n  config {\n    how = \"¦\"\n  }\n}"), []string{"near", "far"}, nil},
		{"one of, of the format", in("retrieve \"r\" {\n  mode = \"¦\"\n}"), []string{"hybrid", "dense", "lexical"}, nil},
		{"bool", in("sample \"s\" {\n  use = \"knn\"\n  config {\n    exact = ¦\n  }\n}"), []string{"true", "false", "var.key"}, nil},
		{"variable", in("sample \"s\" {\n  n = var.¦\n}"), []string{"election", "key"}, []string{"few"}},
		{"local", in("sample \"s\" {\n  n = max(local.¦, 2)\n}"), []string{"few"}, []string{"election"}},
		{"variable in a template", in("input { path = \"x/${var.¦}\" }"), []string{"election"}, nil},
		{"a text", in("input { path = \"var.¦\" }"), nil, []string{"election"}},
		{"knowledge", in("retrieve \"r\" {\n  from = ¦\n}"), []string{"knowledge.k"}, []string{"var.key"}},
		{"knowledge by name", in("retrieve \"r\" {\n  from = knowledge.¦\n}"), []string{"k"}, nil},
		{"limit", in("sample \"s\" {\n  limit = limit.¦\n}"), []string{"llm"}, nil},
		{"type of a variable", "variable \"x\" {\n  type = ¦\n}", []string{"string", "map(number)"}, []string{"lookup"}},
		{"value of a local", "variable \"x\" {}\nlocals {\n  y = ¦\n}", []string{"var.x", "lower"}, nil},

		{"rule", in("retrieve \"r\" {\n  keep = \"¦\"\n}"), []string{"item", "candidates", "dense", "var.election", "any"}, []string{"margin", "answer"}},
		{"rule in a heredoc", in("retrieve \"r\" {\n  keep = <<E\n    d¦\n  E\n}"), []string{"dense"}, nil},
		{"rule above all", in("sample \"s\" {\n  when = \"¦\"\n}"), []string{"item"}, []string{"candidates", "margin"}},
		{"rule below a voter", in("retrieve \"r\" {}\nsample \"s\" {}\nsample \"t\" {\n  when = \"mar¦\"\n}"), []string{"labels", "margin"}, []string{"answer"}},
		{"rule of an election", in("elect \"e\" {\n  flag = \"agreement < ¦\"\n}"), []string{"agreement", "answer"}, []string{"candidates"}},
		{"rule of a fallback", in("retrieve \"r\" {\n  fallback \"f\" {\n    when = \"¦\"\n  }\n}"), []string{"candidates", "failed"}, []string{"dense"}},
		{"rule of what is expected", in("expect \"x\" {\n  rule = \"¦\"\n}\nretrieve \"r\" {}\nelect \"e\" {}"), []string{"accuracy", "leaked", "var.election", "recall", "low"}, []string{"margin", "answer "}},
		{"nothing to measure", in("retrieve \"r\" {}\nexpect \"x\" {\n  rule = \"¦\"\n}"), []string{"ndcg", "leaked"}, []string{"accuracy", "flagged"}},
		{"what is expected", in("expect \"x\" {\n  ¦\n}"), []string{"description", "enabled", "rule", "variables", "input"}, []string{"accept"}},
		{"items of what is expected", in("expect \"x\" {\n  input {\n    ¦\n  }\n}"), []string{"path", "label", "gold"}, []string{"rule"}},
		{"field", in("sample \"s\" {\n  when = \"item.¦\"\n}"), []string{"id", "text", "meta"}, []string{"item"}},
		{"field of each", in("sample \"s\" {}\nelect \"e\" {\n  flag = \"any(votes, .¦ == 'x')\"\n}"), []string{"voter", "answer"}, []string{"item"}},
		{"variable in a rule", in("elect \"e\" {\n  flag = \"agreement < var.¦\"\n}"), []string{"election"}, []string{"few"}},
		{"text in a rule", in("elect \"e\" {\n  flag = \"answer == 'a¦\"\n}"), nil, []string{"answer"}},

		{"text that is not closed", in("elect \"e\" {\n  use = \"so¦\n  flag = \"answer == ''\"\n}"), []string{"soft"}, nil},
		{"below a text that is not closed", in("elect \"e\" {\n  use = \"so\n  fl¦\n}"), []string{"flag"}, nil},
		{"template that is not closed", in("input { path = \"${var.¦\n}"), []string{"election"}, nil},
		{"half a file", "pipeline \"p\" {\n  elect \"e\" {\n    use = \"soft\"\n    config {\n    }\n    fl¦", []string{"flag"}, []string{"use"}},
		{"no value above", in("elect \"e\" {\n  use =\n  ¦\n}"), []string{"flag"}, nil},
		{"a brace is missing above", "knowledge \"k\" {\n  source {\n\npipeline \"p\" {\n  ¦\n}", []string{"retrieve"}, []string{"path"}},
		{"a bracket is missing above", "locals {\n  a = [1,\n}\npipeline \"p\" {\n  ¦\n}", []string{"retrieve"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := at(t, test.text)
			got := labels(r.complete())
			next := 0
			for _, label := range got {
				if next < len(test.want) && label == test.want[next] {
					next++
				}
			}
			if next < len(test.want) {
				t.Errorf("%q is missing (or out of order) in %v", test.want[next], got)
			}
			for _, label := range test.not {
				if slices.Contains(got, label) {
					t.Errorf("%q is offered among %v", label, got)
				}
			}
		})
	}
}

// A completion replaces the right part: the text with the mark becomes the other text.
func TestCompletionEdits(t *testing.T) {
	for marked, want := range map[string]string{
		"pipe¦": "pipeline",
		"pipeline \"p\" {\n  elect \"e\" {\n    us¦\n  }\n}":                    "pipeline \"p\" {\n  elect \"e\" {\n    use = \n  }\n}",
		"pipeline \"p\" {\n  elect \"e\" {\n    us¦e = \"soft\"\n  }\n}":        "pipeline \"p\" {\n  elect \"e\" {\n    use = \"soft\"\n  }\n}",
		"pipeline \"p\" {\n  elect \"e\" {\n    use = ¦\n  }\n}":                "pipeline \"p\" {\n  elect \"e\" {\n    use = \"soft\"\n  }\n}",
		"pipeline \"p\" {\n  elect \"e\" {\n    use = \"s¦f\"\n  }\n}":          "pipeline \"p\" {\n  elect \"e\" {\n    use = \"soft\"\n  }\n}",
		"pipeline \"p\" {\n  sample \"e\" {\n    use = \"mine/¦\n  }\n}":        "pipeline \"p\" {\n  sample \"e\" {\n    use = \"mine/best\n  }\n}",
		"variable \"ab\" {}\nlocals { x = lower(var.a¦) }":                      "variable \"ab\" {}\nlocals { x = lower(var.ab) }",
		"pipeline \"p\" {\n  elect \"e\" {\n    flag = \"answ¦ == ''\"\n  }\n}": "pipeline \"p\" {\n  elect \"e\" {\n    flag = \"answer == ''\"\n  }\n}",
	} {
		r := at(t, marked)
		got := []string{}
		for _, item := range r.complete() {
			from, to := r.text.offset(item.TextEdit.Range.Start), r.text.offset(item.TextEdit.Range.End)
			got = append(got, r.text.src[:from]+item.TextEdit.NewText+r.text.src[to:])
		}
		if !slices.Contains(got, want) {
			t.Errorf("%q: no completion makes\n%s\nof it; there are %q", marked, want, got)
		}
	}
}

// Every block and argument of the format is completed in its place and explained.
func TestAllBlocks(t *testing.T) {
	var check func(path []string, b grammar.Block)
	check = func(path []string, b grammar.Block) {
		var open, closed string
		for _, typ := range path {
			open, closed = open+typ+" \"x\" {\n", closed+"\n}"
		}
		got := labels(at(t, open+mark+closed).complete())
		for _, a := range b.Arguments {
			if !slices.Contains(got, a.Name) {
				t.Errorf("%v: %s is not offered among %v", path, a.Name, got)
			}
			if about, _, ok := at(t, open+mark+a.Name+" = 1"+closed).hover(); !ok || a.Doc == "" || !strings.Contains(about, a.Doc) {
				t.Errorf("%v: %s is not explained: %q", path, a.Name, about)
			}
		}
		for _, inner := range b.Blocks {
			if !slices.Contains(got, inner.Type) {
				t.Errorf("%v: %s is not offered among %v", path, inner.Type, got)
			}
			if about, _, ok := at(t, open+mark+inner.Type+" {}"+closed).hover(); !ok || inner.Doc == "" || !strings.Contains(about, inner.Doc) {
				t.Errorf("%v: %s is not explained: %q", path, inner.Type, about)
			}
			check(append(slices.Clone(path), inner.Type), inner)
		}
	}
	check(nil, grammar.Block{Blocks: grammar.Blocks()})
}

// Every name that a rule may use is completed if it has a value there, and explained.
func TestAllRuleNames(t *testing.T) {
	places := map[rule.Kind]string{
		rule.When: "sample \"t\" { when = \"%\" }", rule.Keep: "retrieve \"t\" { keep = \"%\" }",
		rule.Accept: "elect \"t\" { accept = \"%\" }", rule.Flag: "elect \"t\" { flag = \"%\" }",
		rule.Fallback:  "sample \"t\" {\n fallback \"f\" { when = \"%\" }\n}",
		rule.Filtering: "retrieve \"t\" { filter = \"%\" }", rule.Whole: "retrieve \"t\" { whole = \"%\" }",
	}
	for kind := rule.When; kind <= rule.Whole; kind++ {
		text := in("retrieve \"r\" {}\nsample \"s\" {}\n" + places[kind])
		var want []string
		for _, name := range rule.Names(kind) {
			if name != "var" {
				want = append(want, name)
			}
		}
		got := labels(at(t, strings.Replace(text, "%", mark, 1)).complete())
		if len(got) < len(want) || !cmp.Equal(got[:len(want)], want) {
			t.Errorf("kind %d: %v are offered, want first %v", kind, got, want)
		}
		for _, name := range want {
			if about, _, ok := at(t, strings.Replace(text, "%", mark+name, 1)).hover(); !ok || !strings.HasPrefix(about, "**"+name+"**: ") {
				t.Errorf("kind %d: %s is not explained: %q", kind, name, about)
			}
		}
	}
}

// There is an answer wherever a file is cut off, and whatever is at the cursor.
func TestCutFiles(t *testing.T) {
	src, err := os.ReadFile("../../../../pipelines/intent.hcl")
	if err != nil {
		t.Fatal(err)
	}
	for to := 0; to < len(src); to += 29 {
		cut := string(src[:to])
		d := &document{text: newText(cut), root: outline([]byte(cut))}
		for _, offset := range []int{to, to / 2} {
			r := &request{document: d, catalog: known{&testCatalog{}}, place: locate(d.root, offset)}
			r.complete()
			r.hover()
			r.definition()
		}
	}
}
