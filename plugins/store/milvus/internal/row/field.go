package row

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The fields of a row.
const (
	FieldKey      = "key"      // position and sequence number; of a system row another text
	FieldSequence = "sequence" // number of the row
	FieldIDHash   = "id_hash"  // for finding a row by its id
	FieldID       = "id"
	FieldLabel    = "label"
	FieldContext  = "context"
	FieldText     = "text" // of a system row: what it says
	FieldMeta     = "meta"
	FieldDetails  = "details" // what no server has to understand, in one string
	FieldVector   = "vector"  // of norm 1, or 0
	FieldWords    = "words"
)

// What is read of rows.
var (
	FieldsScan  = []string{FieldKey, FieldID, FieldLabel, FieldDetails}
	FieldsTexts = []string{FieldText, FieldContext, FieldMeta}
)

// MaxBytes is the most that Milvus takes in a string or in JSON.
const MaxBytes = 65535

// SystemSequence is the sequence number of system rows, which are no entries.
const SystemSequence = int64(math.MaxInt64)

// systemPrefix begins the key of a system row. That of an entry begins with a
// digit or a small letter.
const systemPrefix = "~"

// SystemKey is the key of the system row with a name.
func SystemKey(name string) string { return systemPrefix + name }

// keyDigits is the length of a number in a key: enough for one of 63 bits in
// base 36, so that keys are in the order of the numbers.
const keyDigits = 13

// Digits writes a number as keys do.
func Digits(n int64) string {
	text := strconv.FormatInt(n, 36)
	return strings.Repeat("0", keyDigits-len(text)) + text
}

// Key is the key of an entry's row. The entry's position in a scan is the sequence
// number of its first row; a row that replaces it unchanged has another number.
func Key(position, sequence int64) string {
	if position == sequence {
		return Digits(position)
	}
	return Digits(position) + Digits(sequence)
}

func parseKey(key string) (position, sequence int64, err error) {
	if strings.HasPrefix(key, systemPrefix) {
		return SystemSequence, SystemSequence, nil
	}
	if len(key) != keyDigits && len(key) != 2*keyDigits {
		return 0, 0, fmt.Errorf("%q is no key of an entry", key)
	}
	position, err = strconv.ParseInt(key[:keyDigits], 36, 64)
	if sequence = position; err == nil && len(key) > keyDigits {
		sequence, err = strconv.ParseInt(key[keyDigits:], 36, 64)
	}
	return position, sequence, err
}

// IDHash is the hash by which an id is found. Two ids of a million share one
// with a probability of 3 in 100 million.
func IDHash(id string) int64 {
	sum := sha256.Sum256([]byte(id))
	return int64(binary.LittleEndian.Uint64(sum[:8]))
}
