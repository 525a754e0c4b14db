package journal

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/crc32"
)

// This file adds a checksum to a JSON object on disk, by which a later change of its
// text is noticed: a disk's, an editor's, a script's. It keeps nobody out who computes the
// checksum anew.
//
// The checksum is the object's last property, "sum": the CRC-32C of all that stands before
// it, as eight hexadecimal digits.

// SealState is what a checksum says of a text.
type SealState int

// States of a text.
const (
	Unsealed  SealState = iota // it has no checksum
	SealWhole                  // it is as it was written
	SealChanged
)

// style is how an object ends: what stands before and after its checksum.
type style struct{ before, after string }

var (
	line   = style{`,"sum":"`, "\"}\n"}
	pretty = style{",\n  \"sum\": \"", "\"\n}\n"}
	table  = crc32.MakeTable(crc32.Castagnoli)
)

// SealLine seals the object that begins at a position of a text and ends it, followed by a line
// end, as json.Encoder writes it. The object has a property.
func SealLine(text []byte, from int) []byte { return line.seal(text, from, len("}\n")) }

// SealFile seals a text that is an object with properties, as json.MarshalIndent writes it with
// two spaces.
func SealFile(text []byte) []byte { return pretty.seal(text, 0, len("\n}")) }

func (s style) seal(text []byte, from, end int) []byte {
	text = text[:len(text)-end]
	return fmt.Appendf(text, "%s%08x%s", s.before, crc32.Checksum(text[from:], table), s.after)
}

// CheckSeal returns the State of what Line or File may have written.
func CheckSeal(text []byte) SealState {
	state := line.check(text)
	if state == Unsealed {
		state = pretty.check(text)
	}
	return state
}

func (s style) check(text []byte) SealState {
	at := len(text) - len(s.after) - 2*crc32.Size - len(s.before)
	if at < 0 || !bytes.HasSuffix(text, []byte(s.after)) || !bytes.HasPrefix(text[at:], []byte(s.before)) {
		return Unsealed
	}
	var sum [crc32.Size]byte
	if _, err := hex.Decode(sum[:], text[at+len(s.before):len(text)-len(s.after)]); err != nil {
		return SealChanged
	}
	if want := crc32.Checksum(text[:at], table); want != uint32(sum[0])<<24|uint32(sum[1])<<16|uint32(sum[2])<<8|uint32(sum[3]) {
		return SealChanged
	}
	return SealWhole
}
