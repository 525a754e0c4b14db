package serve

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// TestEncodings: every interface accepts a body with a byte order mark, and refuses other encodings
// with advice: a decoder would replace unknown bytes.
func TestEncodings(t *testing.T) {
	s, url := serving(t, Options{}, newFake("p"))
	MountChat(s)
	MountDecisions(s)
	MountMCP(s, quiet)
	item := `{"text": "é"}`
	faces := map[string]struct{ path, kind, body, want string }{
		"answer":          {"/v1/pipelines/p/answer", "application/json", item, `"answer":"É"`},
		"retrieve":        {"/v1/pipelines/p/retrieve", "application/json", item, `"text":"é"`},
		"answer batch":    {"/v1/pipelines/p/answer", linesType, item + "\r\n\r\n" + item, `"answer":"É"`},
		"retrieve batch":  {"/v1/pipelines/p/retrieve", bytesType, item + "\n" + item, `"text":"é"`},
		"chat completion": {"/v1/chat/completions", "application/json", `{"model": "p", "messages": [{"role": "user", "content": "é"}]}`, `"content":"É"`},
		"decision":        {"/v1/systemone", "application/json", `{"model": "p", "state": "e", "questions": {"é": {"type": "noul", "instructions": "x"}}}`, `"é":{"type":"noul"`},
		"MCP":             {"/mcp", "application/json", `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "p", "arguments": {"text": "é"}}}`, `"answer":"É"`},
	}
	utf16 := func(e unicode.Endianness, mark unicode.BOMPolicy) func(string) (string, error) {
		return unicode.UTF16(e, mark).NewEncoder().String
	}
	mark := func(s string) (string, error) { return "\ufeff" + s, nil }
	for encoding, test := range map[string]struct {
		encode  func(string) (string, error)
		charset string
		wrong   string // in the reason; empty: the body is accepted
	}{
		"as it is":                 {encode: func(s string) (string, error) { return s, nil }},
		"a mark":                   {encode: mark},
		"a mark and its name":      {encode: mark, charset: "UTF-8"},
		"a mark before every line": {encode: func(s string) (string, error) { return "\ufeff" + strings.ReplaceAll(s, "\n", "\n\ufeff"), nil }},
		"UTF-8, named otherwise":   {encode: func(s string) (string, error) { return s, nil }, charset: "iso-8859-1"},
		"UTF-16LE":                 {encode: utf16(unicode.LittleEndian, unicode.UseBOM), wrong: "UTF-16 or UTF-32: send UTF-8"},
		"UTF-16BE":                 {encode: utf16(unicode.BigEndian, unicode.UseBOM), charset: "utf-16", wrong: "UTF-16 or UTF-32: send UTF-8"},
		"UTF-16LE without a mark":  {encode: utf16(unicode.LittleEndian, unicode.IgnoreBOM), wrong: "UTF-16 or UTF-32: send UTF-8"},
		"UTF-16BE without a mark":  {encode: utf16(unicode.BigEndian, unicode.IgnoreBOM), wrong: "UTF-16 or UTF-32: send UTF-8"},
		"UTF-32":                   {encode: utf32.UTF32(utf32.BigEndian, utf32.UseBOM).NewEncoder().String, wrong: "UTF-16 or UTF-32: send UTF-8"},
		"Latin-1":                  {encode: charmap.ISO8859_1.NewEncoder().String, wrong: "it is not UTF-8"},
		"Latin-1, named":           {encode: charmap.ISO8859_1.NewEncoder().String, charset: "iso-8859-1", wrong: "it is not UTF-8 but, by its Content-Type, iso-8859-1: send UTF-8"},
		"gzip":                     {encode: func(string) (string, error) { return "\x1f\x8b\x08\x00", nil }, wrong: "packed with gzip: send UTF-8"},
	} {
		for face, f := range faces {
			kind := f.kind
			if test.charset != "" {
				kind += "; charset=" + test.charset
			}
			r := request(t, http.MethodPost, url+f.path, must.Get(test.encode(f.body))(t), "Content-Type", kind, "Accept", "application/json, text/event-stream")
			if face != "MCP" {
				r.Header.Del("Accept")
			}
			response, text := send(t, r)
			taken := response.StatusCode == http.StatusOK && strings.Count(text, f.want) == strings.Count(f.body, "é")
			refused := strings.Contains(text, test.wrong) && !strings.Contains(text, "\ufffd") &&
				(response.StatusCode == http.StatusBadRequest || response.StatusCode == http.StatusUnsupportedMediaType || response.StatusCode == http.StatusUnprocessableEntity || strings.HasSuffix(face, "batch"))
			if test.wrong == "" && !taken || test.wrong != "" && !refused {
				t.Errorf("%s, %s: %s %s", face, encoding, response.Status, text)
			}
		}
	}
	for coding, status := range map[string]int{"gzip": 415, "br": 415, "Identity": 200} {
		response, text := send(t, request(t, http.MethodPost, url+faces["answer"].path, item, "Content-Type", "application/json", "Content-Encoding", coding))
		if response.StatusCode != status || status == 415 && !strings.Contains(text, fmt.Sprintf(`packed with \"%s\": send bodies as they are, without a Content-Encoding, or packed with zstd`, coding)) {
			t.Errorf("%s: %s %s", coding, response.Status, text)
		}
	}
}

// TestMistakes: errors in a body are reported with their position.
func TestMistakes(t *testing.T) {
	s, url := serving(t, Options{}, newFake("p"))
	MountMCP(s, quiet)
	for body, want := range map[string]string{
		"{\"text\": \"é\",\n  \"id\": 1,}":     "line 2, column 11: invalid character '}'",
		"\ufeff{\"text\": \"é\", x":            "line 1, column 15: invalid character 'x'",
		"{\"text\": \"\ufffd\",\n \"\xe9\"}":   "line 2, column 3: it is not UTF-8",
		"{\"text\": \"a\"}\n{\"text\": \"b\"}": "line 2, column 1: invalid character '{' after top-level value",
	} {
		for _, path := range []string{"/v1/pipelines/p/answer", "/mcp"} {
			response, text := send(t, request(t, http.MethodPost, url+path, body, "Content-Type", "application/json"))
			if response.StatusCode != http.StatusBadRequest || !strings.Contains(text, want) {
				t.Errorf("%s %q: %s %s", path, body, response.Status, text)
			}
		}
	}
}
