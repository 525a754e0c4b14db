package syntax

import (
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// TestOutline checks what stands around the places that are marked with §.
func TestOutline(t *testing.T) {
	for _, c := range []struct {
		path, source string
		want         []string
	}{
		{"a.cc", "§#include <a>\nnamespace n {\n§class A {\n  void f() {\n    §g();\n  }\n§  int x;\n};\n}\n§int y;\n",
			[]string{"", "namespace n > class A", "namespace n > class A > void f()", "namespace n > class A", ""}},
		{"a.cc", "template <typename T>\nclass A {\n  §int x;\n};\ntemplate<class T> struct B {\n  §int x;\n};\nvoid f() {\n  §g();\n}\n",
			[]string{"class A", "template<class T> struct B", "void f()"}},
		{"a.js", "class A {\n  templateEngine() {\n    §one();\n  }\n}\nfunction template(a) {\n  §two();\n}\n", []string{"class A > templateEngine()", "function template(a)"}},
		{"a.py", "§import a\n\nclass A(B):\n    def f(self):\n        §pass\n\n    def g(self):\n        §pass\n\ndef h():\n    §pass\n",
			[]string{"", "class A(B) > def f(self)", "class A(B) > def g(self)", "def h()"}},
		{"a.rs", "impl<T> A for B<T> {\n    §fn f(&self) -> u8 {\n        §1\n    }\n}\n",
			[]string{"impl<T> A for B<T> > fn f(&self) -> u8", "impl<T> A for B<T> > fn f(&self) -> u8"}},
		{"a.js", "(() => {\n  function f() {\n    §one();\n  }\n  §two();\n})();\n", []string{"function f()", ""}},
		{"a.go", "func f() {\n\tif §x {\n\t}\n}\n", []string{"func f()"}},
		{"a.go", "§", []string{""}},
	} {
		var source strings.Builder
		var marks []int
		for i, part := range strings.Split(c.source, "§") {
			if i > 0 {
				marks = append(marks, source.Len())
			}
			source.WriteString(part)
		}
		outline := Of(&sdk.Document{ID: c.path}).Read(source.String()).Outline()
		var got []string
		for _, at := range marks {
			got = append(got, strings.Join(outline.At(at), " > "))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.path, got, c.want)
		}
	}
}
