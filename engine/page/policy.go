package page

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// policy is the Content-Security-Policy of a page with this style and these scripts.
func policy(style string, scripts []string, live bool) string {
	directives := []string{
		"default-src 'none'", "script-src" + hashes(scripts...), "style-src" + hashes(style),
		"base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
	}
	if live {
		directives = append(directives, "connect-src 'self'")
	}
	return strings.Join(directives, "; ")
}

func hashes(texts ...string) string {
	var b strings.Builder
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		b.WriteString(" 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'")
	}
	return b.String()
}
