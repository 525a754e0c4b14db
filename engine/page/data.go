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
		packed, ok := block.Data.(Packed)
		if !ok {
			text, err := json.Marshal(block.Data) // < > and & escaped: no text ends the element
			if err != nil {
				return "", fmt.Errorf("data %q of the page: %w", block.ID, err)
			}
			if len(text) <= legible {
				fmt.Fprintf(&b, "<script type=\"application/json\" id=%q>%s</script>\n", id, text)
				continue
			}
			packed = pack(text)
		}
		fmt.Fprintf(&b, "<script type=\"application/octet-stream\" id=%q>%s</script>\n", id, packed)
	}
	return template.HTML(b.String()), nil //nolint:gosec // JSON with escaped markup, or base64
}

// Packed is data as a page holds it where it is compressed: JSON, gzip, base64. Its length is
// what the page grows by.
type Packed string

// Pack packs data for a Block, so that its size is known before the page is written.
func Pack(data any) (Packed, error) {
	text, err := json.Marshal(data)
	return pack(text), err
}

func pack(text []byte) Packed {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(text) // a buffer takes everything
	_ = z.Close()
	return Packed(base64.StdEncoding.EncodeToString(b.Bytes()))
}
