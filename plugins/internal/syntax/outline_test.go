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
		outline := LanguageOf(&sdk.Document{ID: c.path}).Read(source.String()).Outline()
		var got []string
		for _, at := range marks {
			got = append(got, strings.Join(outline.At(at), " > "))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.path, got, c.want)
		}
	}
}

// TestUnits checks where the units of a file begin: at the lines with § before them.
func TestUnits(t *testing.T) {
	for _, c := range []struct{ language, source string }{
		{"go", `
§// Licence.

§// Package a is one.
package a

§import (
	"fmt"
)

§// T is a type.
type T struct {
	a int // }
}
§const raw = ` + "`" + `
func f() {
` + "`" + `
§var c = '}'
§var q = "\"}"

§func (t *T) f() map[string]struct{} {
	/* } */
	return map[rune]int{'{': 1, '\'': 2}
}
§var x = 1 +
	2
§func g[T any](
	a int,
) error {
	return nil
}
`},
		{"java", `
§package a;
§import b.C;
§/** Javadoc }. */
@Annotation(name = "x")
@Other
public class A<T>
    extends B {
  String s = """
}
""";
  char c = '"';
}
§interface I
{
}
§enum E { A, B }
`},
		{"c", `
§#include <a.h>
§#define MAX(a, b) { \
  if (a) {
§#ifdef X
§int f(int a) {
#else
§int f(void) {
#endif
  return '{';
}
§static int
g(int a)
{
  if (a) {
  } else {
  }
}
§struct s {
  int a;
} name;
§int a[] = {
  1,
};
`},
		{"cpp", `
§template <typename T>
class A : public B {
public:
  int a = 1'000'000;
  std::string s = R"x(
} )" "
)x";
};
§namespace n {
int f();
}
`},
		{"csharp", `
§using System;
§[Attribute]
public class A
{
  string s = @"c:\";
  string t = @"say ""}""";
}
§[Other]
class B
{
}
`},
		{"rust", `
§#![allow(x)]
use a::b;
§#[derive(Debug)]
pub struct A<'a> {
    s: &'a str,
}
§/// Doc.
impl<'a> A<'a> {
    fn f(&self) -> char {
        let r = r#"}"{"#;
        '{'
    }
}
§/* one /* two } */ } */
fn g() {}
§macro_rules! m {
    () => {};
}
`},
		{"javascript", `
§import a from "b";
§export default function f() {
  return ` + "`${x ? `}` : {}.a} {`" + `
}
§const g = async (a) => {
  return /[}/"]/.test(a) && a / 2 / 3
}
§promise
  .then(() => {
  })
  .catch(() => {})
§if (a) {
} else {
}
§class A {
  m() {}
}
§// b is one.
let b = 1
§let c = 2,
  d = 3
`},
		{"typescript", `
§export interface A<T> {
  a: string
}
§@Decorator({
  a: 1,
})
export class B {
}
§type C =
  | "a"
  | "b"
`},
		{"kotlin", `
§package a
§@Test
fun f(): Int {
  val s = """ } """
  return 1
}
§fun g() = 1
§object O {
}
`},
		{"swift", `
§import A
§@objc
func f() {
}
§extension A where B: C {
}
§struct S {
  let a = "\""
}
`},
		{"php", `
§<?php
§namespace a;
§# A comment with {
#[Attribute]
class A {
  function f() { return '}'; }
}
§function g() {
}
`},
		{"python", `
§"""Doc
def no():
"""
§import a
§# Above.
@decorator
@other(
    1)
def f(a,
b):
    x = """
def no():
"""
# commented out
    return x
§class A:
    def f(self): pass

    def g(self): pass
§if a:
    pass
else:
    pass
§x = [
1,
]
§y = 1 + \
2
§try:
    pass
except E:
    pass
finally:
    pass
§async def h(): pass
`},
		{"yaml", `
§# Comment.
a: 1
§b:
  c: don't
  # inside
  d: |
    text
§e: [1, 2]
`},
		{"ruby", `
§class A
  def f
  end
end
§def g
rescue
end
`},
		{"shell", `
§#!/bin/sh

§set -e
§f() {
  a
}
§if a; then
  b
else
  c
fi
`},
	} {
		l := Named(c.language)
		var want []int
		var source strings.Builder
		n := 0
		for text := range strings.Lines(strings.TrimPrefix(c.source, "\n")) {
			rest, ok := strings.CutPrefix(text, "§")
			if ok {
				want = append(want, n)
			}
			source.WriteString(rest)
			n++
		}
		lines := l.read(source.String())
		var got []int
		for _, u := range units(lines, 0, len(lines), 0) {
			got = append(got, u.low)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: units begin on lines %v, want %v", c.language, got, want)
			for i, l := range lines {
				t.Logf("%d %+v %q", i, l, source.String()[l.start:l.end])
			}
		}
	}
}
