package lsp

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/file/require"
)

func TestHover(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // parts of the explanation; nil: there is none
		at         string   // what it is about
	}{
		{"argument of the format", in("retrieve \"r\" {\n  to¦p_k = 3\n}"), []string{"**top_k** (int; default 60; at least 1)", "candidates"}, "top_k"},
		{"rule", in("elect \"r\" {\n  fl¦ag = \"answer == ''\"\n}"), []string{"**flag** (rule)"}, "flag"},
		{"argument of a stage", in("sample \"s\" {\n  use = \"knn\"\n  config {\n    k¦ = 3\n  }\n}"), []string{"**k** (int; default 15)", "How many."}, "k"},
		{"one of", in("sample \"s\" {\n  use = \"knn\"\n  config {\n    how¦ = \"near\"\n  }\n}"), []string{"one of near, far"}, "how"},
		{"block of a stage", in("sample \"s\" {\n  use = \"mine/best\"\n  config {\n    de¦ep {}\n  }\n}"), []string{"**deep**", "Inside."}, "deep"},
		{"block of a stage as a value", in("sample \"s\" {\n  use = \"mine/best\"\n  config {\n    de¦ep = {}\n  }\n}"), []string{"**deep** (block)", "Inside."}, "deep"},
		{"use", in("sample \"s\" {\n  use = \"k¦nn\"\n}"), []string{"**sample knn**", "Votes by its neighbours."}, "knn"},
		{"label of a config", in("sample \"s\" {\n  config \"mi¦ne/best\" {}\n}"), []string{"Of somebody else."}, "mine/best"},
		{"block", in("retr¦ieve \"r\" {}"), []string{"**retrieve**", "Searches"}, "retrieve"},
		{"config", in("sample \"s\" {\n  con¦fig {}\n}"), []string{"**config**"}, "config"},
		{"variable", in("elect \"s\" {\n  use = var.elec¦tion\n}"), []string{"**var.election**", "How it is decided.", "(default)", "soft"}, "var.election"},
		{"variable in a rule", in("elect \"s\" {\n  flag = \"answer == v¦ar.election\"\n}"), []string{"How it is decided."}, "var.election"},
		{"secret", in("sample \"s\" {\n  use = \"knn\"\n  config { key = var.k¦ey }\n}"), []string{"**var.key**", "(secret)"}, "var.key"},
		{"local", in("sample \"s\" {\n  n = local.f¦ew\n}"), []string{"**local.few**", "3"}, "local.few"},
		{"limit", in("sample \"s\" {\n  limit = limit.l¦lm\n}"), []string{"**limit.llm**"}, "limit.llm"},
		{"name in a rule", in("sample \"s\" {}\nelect \"s\" {\n  flag = \"mar¦gin < 0.1\"\n}"), []string{"**margin**: a number", "a sample stage above"}, "margin"},
		{"field in a rule", in("sample \"s\" {\n  when = \"item.te¦xt == ''\"\n}"), []string{"**item.text**: a text"}, "text"},
		{"list in a rule", in("elect \"s\" {\n  flag = \"len(vo¦tes) < 2\"\n}"), []string{"**votes**: a list of votes, with voter, answer, weight, accepted"}, "votes"},
		{"figure", in("elect \"e\" {}\nexpect \"x\" {\n  rule = \"accu¦racy > 0.9\"\n}"), []string{"**accuracy**: a number", "The share of the items"}, "accuracy"},
		{"figure with an argument", in("elect \"e\" {}\nexpect \"x\" {\n  rule = \"rec¦all('a') > 0.9\"\n}"), []string{"**recall(\"LABEL\")**", "with this label"}, "recall"},
		{"a text", in("input { path = \"x¦\" }"), nil, ""},
		{"a number", in("sample \"s\" {\n  n = 1¦0\n}"), nil, ""},
		{"unknown argument", in("sample \"s\" {\n  nn¦ = 10\n}"), nil, ""},
		{"unknown variable", in("sample \"s\" {\n  n = var.no¦ne\n}"), nil, ""},
		{"nothing", in("¦"), nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := at(t, test.text)
			about, at, ok := r.hover()
			if ok != (test.want != nil) || ok && r.text.at(at) != test.at {
				t.Fatalf("it is about %q, want %q: %s", r.text.at(at), test.at, about)
			}
			for _, part := range test.want {
				if !strings.Contains(about, part) {
					t.Errorf("%q is missing in\n%s", part, about)
				}
			}
			if strings.Contains(about, "hush") {
				t.Errorf("it shows a secret: %s", about)
			}
		})
	}
}

func TestDefinition(t *testing.T) {
	tests := []struct{ name, text, line, at string }{
		{"variable", in("elect \"s\" {\n  use = var.elec¦tion\n}"), `variable "election" {`, "election"},
		{"variable in a rule", in("elect \"s\" {\n  flag = \"answer == var.election¦\"\n}"), `variable "election" {`, "election"},
		{"local", in("sample \"s\" {\n  n = lo¦cal.few\n}"), `locals { few = 3 }`, "few"},
		{"knowledge", in("retrieve \"s\" {\n  from = knowledge.¦k\n}"), `knowledge "k" {`, "k"},
		{"limit", in("sample \"s\" {\n  limit = limit.llm¦\n}"), `limit "llm" { concurrency = 2 }`, "llm"},
		{"field of a value", in("sample \"s\" {\n  n = var.election.x¦\n}"), "", ""},
		{"name in a rule", in("retrieve \"s\" {\n  whole = \"knowledge.k¦ < 1\"\n}"), "", ""},
		{"unknown", in("sample \"s\" {\n  n = local.mo¦re\n}"), "", ""},
		{"nothing", in("sample \"¦s\" {}"), "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := at(t, test.text)
			at, ok := r.definition()
			if !ok {
				at = span{}
			}
			line := strings.SplitAfter(r.text.src, "\n")[r.text.position(at.from).Line]
			if ok != (test.at != "") || ok && (r.text.at(at) != test.at || strings.TrimSpace(line) != test.line) {
				t.Errorf("it is %q in %q, want %q in %q", r.text.at(at), line, test.at, test.line)
			}
		})
	}
}

// TestChangeKeeps: a text that does not parse keeps what the check of the previous text found.
func TestChangeKeeps(t *testing.T) {
	s := &server{documents: map[string]*document{"file:///p.hcl": {required: []require.Plugin{{Name: "mine"}}}}}
	s.options.Load = pipeline.Options{Dir: t.TempDir(), Catalog: &testCatalog{}}
	d := &document{uri: "file:///p.hcl", path: "p.hcl", text: newText("pipeline \"p\" {")}
	diags := s.check(t.Context(), d)
	if len(d.required) != 1 || !diags.HasErrors() {
		t.Errorf("it requires %v: %v", d.required, diags)
	}
}
