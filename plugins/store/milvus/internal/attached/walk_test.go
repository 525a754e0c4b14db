package attached

import "testing"

func TestBeginning(t *testing.T) {
	for _, id := range []string{"a\nb", "\tx", "ü漢\x7f", "plain", ""} {
		if got := beginning(id); len(got) > len(id) || id[:len(got)] != got || got == id && id != "plain" && id != "" {
			t.Errorf("%q begins with %q", id, got)
		}
	}
}
