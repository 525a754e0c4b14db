package document

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestMarkdown(t *testing.T) {
	for name, c := range map[string]struct{ book, want string }{
		"cells": {`{"cells": [
{"cell_type": "markdown", "metadata": {"secret": 1}, "source": ["# Cards\n", "Text with ![a picture](data:image/png;base64,AAAA)."]},
{"cell_type": "code", "source": "print('a')\n", "outputs": [
  {"output_type": "stream", "text": ["a\n", "\u001b[31mred\u001b[0m\n"]},
  {"output_type": "display_data", "data": {"image/png": "AAAA", "text/html": "<b>no</b>", "text/plain": "<Figure>"}},
  {"output_type": "execute_result", "data": {"application/json": {"no": 1}, "text/markdown": ["**ok**"], "text/plain": "Markdown()"}},
  {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["no"]}]},
{"cell_type": "code", "source": [], "outputs": []},
{"cell_type": "raw", "source": "raw"}], "metadata": {"language_info": {"name": "python"}}, "nbformat": 4}`,
			"# Cards\nText with ![a picture].\n\n```python\nprint('a')\n```\n\nOutput:\n\n```\na\nred\n<Figure>\n**ok**\nKeyError: 'x'\n```\n\nraw\n"},
		"an odd language": {"{\"cells\": [{\"cell_type\": \"code\", \"source\": \"a ``` b\"}], \"metadata\": {\"language_info\": {\"name\": \"x`\\ny\"}}}", "````\na ``` b\n````\n"},
		"no text":         {`{"cells": []}`, ""},
		"no numbers": {`{"metadata": {"threshold": NaN, "most": [Infinity, -Infinity]}, "cells": [{"cell_type": "markdown", "source": "NaN is \"NaN\", and -Infinity", "metadata": {"x": NaN}}, {"cell_type": "code", "source": "f()", "outputs": [{"output_type": "execute_result", "data": {"application/json": NaN, "text/plain": ["nan"]}}]}]}`,
			"NaN is \"NaN\", and -Infinity\n\n```\nf()\n```\n\nOutput:\n\n```\nnan\n```\n"},
	} {
		got, err := notebook(c.book)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	long, err := notebook(`{"cells": [{"cell_type": "code", "source": "x", "outputs": [{"output_type": "stream", "text": "` + strings.Repeat("ж", 1_000) + `"}, {"output_type": "stream", "text": "more"}]}]}`)
	if err != nil || len(long) > 2*maxOutput || !strings.Contains(long, "[The output goes on.]") || !utf8.ValidString(long) {
		t.Errorf("%d bytes, %v", len(long), err)
	}
	for _, no := range []string{"", "{", `{"a": 1}`, `{"worksheets": [{"cells": []}]}`, "[]", strings.Repeat("[", 1_000_000)} {
		if got, err := notebook(no); err == nil || !strings.Contains(err.Error(), "leave it out with exclude") {
			t.Errorf("%.20q: %q, %v", no, got, err)
		}
	}
}

func FuzzNotebookMarkdown(f *testing.F) {
	f.Add(`{"cells": [{"cell_type": "code", "source": ["a"], "outputs": [{"output_type": "stream", "text": ["b"]}, {"data": {"text/plain": "c"}}]}]}`)
	f.Fuzz(func(t *testing.T, book string) {
		text, err := notebook(book)
		if err == nil && utf8.ValidString(book) && (!utf8.ValidString(text) || len(text) > 10*len(book)+1000) {
			t.Errorf("%q became %q", book, text)
		}
	})
}
