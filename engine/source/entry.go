package source

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
)

// HashBytes is the length of a row's Hash.
const HashBytes = 16

// Hash is that of what the row says: text, label, metadata and context.
func (r Row) Hash() []byte {
	parts := []any{r.Text, r.Label, r.Meta}
	if r.Context != "" { // entries without one keep the hash that they always had
		parts = append(parts, r.Context)
	}
	content, err := json.Marshal(parts)
	if err != nil {
		panic(err) // strings, numbers and booleans always encode
	}
	sum := sha256.Sum256(content)
	return sum[:HashBytes]
}

// EntryID is the id that a row with this hash has in a knowledge: its own or, where it has none,
// one that follows from its content, so that adding or removing rows elsewhere does not rename
// it. Equal rows are counted: taken are the ids of the rows before.
func EntryID[T any](r Row, hash []byte, taken map[string]T) string {
	if r.ID != "" {
		return r.ID
	}
	content := hex.EncodeToString(hash[:8])
	id := content
	for n := 2; ; n++ {
		if _, ok := taken[id]; !ok {
			return id
		}
		id = content + "-" + strconv.Itoa(n)
	}
}
