package page

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
)

// legible is the size in bytes up to which a block stays legible JSON.
const legible = 16 << 10

// encode writes blocks as script elements of data, which no browser runs.
func encode(blocks []Block) (template.HTML, error) {
	var b bytes.Buffer
	for _, block := range blocks {
		id := template.HTMLEscapeString(block.ID)
		text, err := json.Marshal(block.Data) // < > and & escaped: no text ends the element
		if err != nil {
			return "", fmt.Errorf("data %q of the page: %w", block.ID, err)
		}
		if len(text) <= legible {
			fmt.Fprintf(&b, "<script type=\"application/json\" id=%q>%s</script>\n", id, text)
			continue
		}
		fmt.Fprintf(&b, "<script type=\"application/octet-stream\" id=%q>%s</script>\n", id, Packed(text))
	}
	return template.HTML(b.String()), nil //nolint:gosec // JSON with escaped markup, or base64
}

// Packed returns what a block of this JSON takes in a page where it is compressed: gzip, in
// base64.
func Packed(text []byte) string {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(text) // a buffer takes everything
	_ = z.Close()
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}
