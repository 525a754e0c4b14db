package table

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"

	"golang.org/x/net/html/charset"
)

// Limits of the XML of a sheet, which the decoder holds in memory.
const (
	maxToken = 16 << 20 // bytes of a text, a tag or a comment
	maxDepth = 64       // elements in one another
)

// checkXML reads XML to its end, and refuses what is none or would take much memory.
func checkXML(in io.Reader) error {
	token := &tokens{in: in}
	d := xml.NewDecoder(token)
	d.CharsetReader = charset.NewReaderLabel
	for depth := 0; ; {
		t, err := d.Token()
		switch {
		case token.tooLong():
			return fmt.Errorf("a text is longer than %d bytes", maxToken)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		token.since = 0
		switch t.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
		if depth > maxDepth {
			return fmt.Errorf("more than %d elements stand in one another", maxDepth)
		}
	}
}

// tokens ends where a token is too long.
type tokens struct {
	in    io.Reader
	since int // bytes since the last token, but for those that the decoder has read ahead
}

func (t *tokens) tooLong() bool { return t.since > maxToken }

func (t *tokens) Read(p []byte) (int, error) {
	if t.tooLong() {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := t.in.Read(p)
	t.since += n
	return n, err
}
