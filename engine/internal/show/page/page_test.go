package page_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/show/page"
)

func write(t *testing.T, p page.Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestWrite: a page loads nothing, and its policy forbids loading.
func TestWrite(t *testing.T) {
	data := map[string]any{"text": "</script><script>alert(1)</script><!-- \u2028 &"}
	small := page.Page{Title: "</title><b>t</b>", Brand: "b", Body: "<p>body</p>", Data: data, Modules: []string{page.Table, page.Item}}
	large, charts, live := small, small, small
	large.Blocks = []page.Block{{ID: "more", Data: strings.Repeat("</script>", 10_000)}}
	charts.Charts, charts.Modules = true, []string{page.Table, page.Chart}
	live.Live = true
	for name, p := range map[string]page.Page{"small": small, "large": large, "charts": charts, "live": live} {
		t.Run(name, func(t *testing.T) {
			text := write(t, p)
			if text != write(t, p) {
				t.Error("the same page has other bytes")
			}
			if strings.Contains(text, "<b>t</b>") || strings.Contains(text, "alert(1)</script>") {
				t.Error("a text is markup")
			}
			for _, element := range regexp.MustCompile(`<(script|style)[^>]*>`).FindAllString(text, -1) {
				if strings.Contains(element, "src=") {
					t.Errorf("%s comes from elsewhere", element)
				}
			}
			policy := html.UnescapeString(regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(text)[1])
			hashed := 0
			for _, m := range regexp.MustCompile(`(?s)<(?:style|script|script type="module")>(.*?)</(?:style|script)>`).FindAllStringSubmatch(text, -1) {
				sum := sha256.Sum256([]byte(m[1]))
				if hash := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, hash) {
					t.Errorf("the policy does not allow %.60q", m[1])
				}
				hashed++
			}
			if hashed != strings.Count(policy, "sha256-") || !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") {
				t.Errorf("the policy of %d elements is %s", hashed, policy)
			}
			if strings.Contains(policy, "connect-src") != p.Live {
				t.Errorf("a page that is live: %t, has %s", p.Live, policy)
			}
		})
	}
	if text := write(t, large); len(text)-len(write(t, small)) > 5_000 {
		t.Error("a large block is not compressed")
	}
}

// TestDocs: the page of the interface may make styles while it runs, and runs only its own scripts.
func TestDocs(t *testing.T) {
	text := write(t, page.Docs("t", []byte(`{"info": {"title": "</script><script>alert(1)</script>"}}`)))
	policy := html.UnescapeString(regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(text)[1])
	if !strings.Contains(policy, "default-src 'none'; script-src 'sha256-") || strings.Count(policy, "unsafe") != 1 || !strings.Contains(policy, "style-src 'unsafe-inline'; ") || !strings.Contains(policy, "connect-src 'self'") {
		t.Errorf("the policy is %s", policy)
	}
	if strings.Contains(text, "alert(1)</script>") {
		t.Error("a text is markup")
	}
}

// TestModules: modules are joined to one, without imports and exports.
func TestModules(t *testing.T) {
	text := write(t, page.Page{Modules: []string{"import { element } from \"./base.js\";\nexport function mine() {}\n", "mine();\n"}})
	if !strings.Contains(text, "\nfunction mine() {}\nmine();\n</script>") || strings.Contains(text, "import {") {
		t.Error("the modules are not joined")
	}
}

// TestData: data that cannot be JSON is an error that names the block.
func TestData(t *testing.T) {
	err := page.Page{Blocks: []page.Block{{ID: "mine", Data: func() {}}}}.Write(&bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), `data "mine" of the page`) {
		t.Errorf("the error is %v", err)
	}
}
