// Package sealed adds a checksum to a JSON object on disk, by which a later change of its
// text is noticed: a disk's, an editor's, a script's. It keeps nobody out who computes the
// checksum anew.
//
// The checksum is the object's last property, "sum": the CRC-32C of all that stands before
// it, as eight hexadecimal digits.
package sealed

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/crc32"
)

// State is what a checksum says of a text.
type State int

// States of a text.
const (
	Without State = iota // it has no checksum
	Whole                // it is as it was written
	Changed
)

// style is how an object ends: what stands before and after its checksum.
type style struct{ before, after string }

var (
	line   = style{`,"sum":"`, "\"}\n"}
	pretty = style{",\n  \"sum\": \"", "\"\n}\n"}
	table  = crc32.MakeTable(crc32.Castagnoli)
)

// Line seals the object that begins at a position of a text and ends it, followed by a line
// end, as json.Encoder writes it. The object has a property.
func Line(text []byte, from int) []byte { return line.seal(text, from, len("}\n")) }

// File seals a text that is an object with properties, as json.MarshalIndent writes it with
// two spaces.
func File(text []byte) []byte { return pretty.seal(text, 0, len("\n}")) }

func (s style) seal(text []byte, from, end int) []byte {
	text = text[:len(text)-end]
	return fmt.Appendf(text, "%s%08x%s", s.before, crc32.Checksum(text[from:], table), s.after)
}

// Check returns the State of what Line or File may have written.
func Check(text []byte) State {
	state := line.check(text)
	if state == Without {
		state = pretty.check(text)
	}
	return state
}

func (s style) check(text []byte) State {
	at := len(text) - len(s.after) - 2*crc32.Size - len(s.before)
	if at < 0 || !bytes.HasSuffix(text, []byte(s.after)) || !bytes.HasPrefix(text[at:], []byte(s.before)) {
		return Without
	}
	var sum [crc32.Size]byte
	if _, err := hex.Decode(sum[:], text[at+len(s.before):len(text)-len(s.after)]); err != nil {
		return Changed
	}
	if want := crc32.Checksum(text[:at], table); want != uint32(sum[0])<<24|uint32(sum[1])<<16|uint32(sum[2])<<8|uint32(sum[3]) {
		return Changed
	}
	return Whole
}
