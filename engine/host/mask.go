package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// mask replaces secrets in what a plugin says.
type mask struct {
	replacer *strings.Replacer
	longest  int // bytes of the longest form of a secret
}

// newMask knows each secret as it is, line by line, and in the forms that logs
// and addresses give it.
func newMask(secrets []string) *mask {
	var forms []string
	for _, secret := range secrets {
		for _, s := range append(strings.Split(secret, "\n"), secret) {
			if s = strings.TrimSpace(s); s != "" {
				forms = append(forms, s, quoted(s, true), quoted(s, false), ascii(quoted(s, false)),
					strings.ReplaceAll(quoted(s, false), "/", `\/`), url.QueryEscape(s), url.PathEscape(s))
			}
		}
	}
	// The replacer takes the first form that fits.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	m := &mask{}
	pairs := make([]string, 0, 2*len(forms))
	for _, f := range slices.Compact(forms) {
		pairs = append(pairs, f, "(secret)")
		m.longest = max(m.longest, len(f))
	}
	m.replacer = strings.NewReplacer(pairs...)
	return m
}

func (m *mask) text(s string) string { return m.replacer.Replace(s) }

// quoted is a string inside a JSON document.
func quoted(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if err := e.Encode(s); err != nil {
		return s
	}
	return strings.Trim(strings.TrimSpace(b.String()), `"`)
}

// ascii is the inside of a JSON string as Python and others write it: what is
// beyond ASCII as UTF-16 in hex.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
