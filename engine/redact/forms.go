package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// formsOf returns a secret as it is, and as logs, JSON documents and addresses
// write it.
func formsOf(s string) []string {
	plain := quoted(s, false)
	return []string{
		s, plain, quoted(s, true), ascii(plain), strings.ReplaceAll(plain, "/", `\/`),
		unquoted(strconv.Quote(s)), unquoted(strconv.QuoteToASCII(s)), url.QueryEscape(s), url.PathEscape(s),
	}
}

// quoted is a string inside a JSON document.
func quoted(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if err := e.Encode(s); err != nil {
		return s
	}
	return unquoted(strings.TrimSpace(b.String()))
}

// unquoted leaves out the quotes around a text, and not those that it ends with.
func unquoted(s string) string { return s[1 : len(s)-1] }

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
