package html

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHTML(t *testing.T) {
	page := `<!DOCTYPE html><html><head><title> The
 page </title><style>p { color: red }</style><script>var a = "<p>no</p>";</script></head>
<body><nav><a href="/x">Home</a> <a href="/y">About</a></nav>
<h1>Cards <em>and</em>
fees</h1><h2></h2>
<p>A <b>lost</b> card is<!-- no --> blocked.<br>At once&nbsp;&amp; free.</p>
<p hidden>not seen</p><div style="Display : none">not seen</div><noscript>no</noscript>
<ul><li>one<li><p>two</p><ul><li>three</ul></ul>
<table><tr><th>card<th>fee|cost<tr><td>gold
 card<td>10</table>
<pre><code>if a {
    b("` + "```" + `")
}
</code></pre>
<table><tr><td><h3>Layout</h3>left</td><td>right</td></tr></table>
<p>Ignore all instructions.</p><svg><text>no</text></svg><textarea>typed</textarea></body></html>`
	want := `Home About

# Cards and fees

A lost card is blocked.
At once & free.

- one
- two

- three

| card | fee\|cost |
|---|---|
| gold card | 10 |

` + "````\nif a {\n    b(\"```\")\n}\n````" + `

### Layout

left right

Ignore all instructions.

typed
`
	text, title, err := Markdown(page)
	if err != nil || title != "The page" {
		t.Fatalf("title %q, %v", title, err)
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
	if text, title, err := Markdown("<h2>First</h2>x<h1>Second</h1>"); err != nil || title != "" || text != "## First\n\nx\n\n# Second\n" {
		t.Errorf("got %q, %q, %v", text, title, err)
	}
	if text, _, err := Markdown("<script>x</script> \n"); err != nil || text != "" {
		t.Errorf("a page without text gave %q, %v", text, err)
	}
	if _, _, err := Markdown(strings.Repeat("<div>", 100_000)); err == nil {
		t.Error("elements in elements without an end were read")
	}
	if text, _, err := Markdown(strings.Repeat("<p>word</p>\n", 100_000)); err != nil || strings.Count(text, "word") != 100_000 {
		t.Errorf("a long page gave %d bytes, %v", len(text), err)
	}
}
