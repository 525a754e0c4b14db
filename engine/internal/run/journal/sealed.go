package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
)

// This file adds a checksum to a JSON object on disk. It reveals later changes of the text by a
// disk, an editor or a script, but does not stop anyone who recomputes the checksum.
//
// The checksum is the object's last property, "sum": the CRC-32C of all text before it, as eight
// hexadecimal digits.

// style is the text before and after an object's checksum.
type style struct{ before, after string }

var (
	line   = style{`,"sum":"`, "\"}\n"}
	pretty = style{",\n  \"sum\": \"", "\"\n}\n"}
	table  = crc32.MakeTable(crc32.Castagnoli)
)

// SealLine adds the checksum to the last object of a text, which begins at from. The text ends with
// a line end, as json.Encoder writes it. The object must have a property.
func SealLine(text []byte, from int) []byte { return line.seal(text, from, len("}\n")) }

// SealFile adds the checksum to a text that is one object with properties, as json.MarshalIndent
// writes it with two spaces.
func SealFile(text []byte) []byte { return pretty.seal(text, 0, len("\n}")) }

func (s style) seal(text []byte, from, end int) []byte {
	text = text[:len(text)-end]
	return fmt.Appendf(text, "%s%08x%s", s.before, crc32.Checksum(text[from:], table), s.after)
}

// Sealed reports whether a text is unchanged since SealLine or SealFile.
func Sealed(text []byte) bool { return line.sealed(text) || pretty.sealed(text) }

func (s style) sealed(text []byte) bool {
	at := len(text) - len(s.after) - 2*crc32.Size - len(s.before)
	if at < 0 || !bytes.HasSuffix(text, []byte(s.after)) || !bytes.HasPrefix(text[at:], []byte(s.before)) {
		return false
	}
	var sum [crc32.Size]byte
	_, err := hex.Decode(sum[:], text[at+len(s.before):len(text)-len(s.after)])
	return err == nil && binary.BigEndian.Uint32(sum[:]) == crc32.Checksum(text[:at], table)
}
