package section

import (
	"strings"
	"testing"
)

func TestAt(t *testing.T) {
	text := "before\n\n# A\n\none\n\n## B\n\n### C\n\ntwo\n\n## D\n\nthree\n\n# E\n"
	sections := Read(text)
	for at, want := range map[string]string{
		"before": "A", "# A": "A", "one": "A", "## B": "A > B", "two": "A > B > C", "three": "A > D", "# E": "E",
	} {
		if got := strings.Join(sections.At(strings.Index(text, at)), " > "); got != want {
			t.Errorf("%q is below %q, want %q", at, got, want)
		}
	}
	if got := Read("").At(0); got != nil {
		t.Errorf("an empty text has headings %q", got)
	}
}
