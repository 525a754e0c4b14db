package journal

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/crc32"
)

// This file adds a checksum to a JSON object on disk. It reveals later changes of the text by a
// disk, an editor or a script, but does not stop anyone who recomputes the checksum.
//
// The checksum is the object's last property, "sum": the CRC-32C of all text before it, as eight
// hexadecimal digits.

// SealState is the result of checking a text's checksum.
type SealState int

// States of a text.
const (
	Unsealed  SealState = iota // without a checksum
	SealWhole                  // unchanged
	SealChanged
)

// style is the text before and after an object's checksum.
type style struct{ before, after string }

var (
	line   = style{`,"sum":"`, "\"}\n"}
	pretty = style{",\n  \"sum\": \"", "\"\n}\n"}
	table  = crc32.MakeTable(crc32.Castagnoli)
)

// SealLine seals the object that begins at a position of a text and ends it, with a line end, as
// json.Encoder writes it. The object must have a property.
func SealLine(text []byte, from int) []byte { return line.seal(text, from, len("}\n")) }

// SealFile seals a text that is one object with properties, as json.MarshalIndent writes it with
// two spaces.
func SealFile(text []byte) []byte { return pretty.seal(text, 0, len("\n}")) }

func (s style) seal(text []byte, from, end int) []byte {
	text = text[:len(text)-end]
	return fmt.Appendf(text, "%s%08x%s", s.before, crc32.Checksum(text[from:], table), s.after)
}

// CheckSeal checks a text that SealLine or SealFile may have written.
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
