package milvus

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/plugins/internal/store/milvus/table"
	"github.com/racflow/racflow/sdk"
)

// State is what a reader has to know of a commit beside its record.
type State struct {
	Note        []byte            // of the caller
	Frequencies map[uint32]uint32 // entries that have a word, by the word's number
	Dead        map[int64]bool    // sequence numbers of rows that were replaced or deleted
}

// partBytes is what of an encoded state fits into one row as base64.
const partBytes = 45000

// stateKeys are the keys of the system rows that hold the state of a commit.
func stateKeys(commit int64, parts int) []string {
	keys := make([]string, parts)
	for i := range keys {
		keys[i] = table.SystemKey(fmt.Sprintf("state-%d-%d", commit, i))
	}
	return keys
}

// Rows are the system rows that hold the state of a commit.
func (s State) Rows(commit int64) []table.Row {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(s); err != nil {
		panic(err) // bytes and maps of numbers always encode
	}
	parts := slices.Collect(slices.Chunk(b.Bytes(), partBytes))
	rows := make([]table.Row, len(parts))
	for i, key := range stateKeys(commit, len(parts)) {
		rows[i] = table.System(key, base64.StdEncoding.EncodeToString(parts[i]))
	}
	return rows
}

// readState reads the state that the record names.
func (s *Snapshot) readState(ctx context.Context) error {
	if s.Record.Commit == 0 {
		return nil
	}
	var content []byte
	for keys := range slices.Chunk(stateKeys(s.Record.Commit, s.Record.Parts), 64) {
		texts, err := s.System(ctx, keys...)
		if err != nil {
			return err
		}
		for _, key := range keys {
			part, err := base64.StdEncoding.DecodeString(texts[key])
			if err != nil || texts[key] == "" {
				// A newer commit may have removed it meanwhile.
				return sdk.Transient(fmt.Errorf("collection %q: row %s is missing or damaged", s.Collection, key), 0)
			}
			content = append(content, part...)
		}
	}
	return s.State.decode(content)
}

func (s *State) decode(b []byte) error {
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(s); err != nil {
		return fmt.Errorf("the statistics of the collection are damaged: build it anew under another prefix: %w", err)
	}
	return nil
}

// Turns is what the system rows say of writers. They take turns, which have rising
// numbers, and no turn writes a row of another:
//
//	~turn-7-claim-HOLDER  HOLDER wants turn 7, and works at it until a time
//	~turn-7-base          it begins with the commit of that turn; 0: with nothing
//	~turn-7-record        it has committed
//
// The last commit is what the highest turn says that has a base or a record. A call of
// an earlier turn that comes late therefore changes nothing.
type Turns struct {
	Claims  []Claim
	Bases   map[int64]int64 // by the number of the turn
	Records map[int64]Record
}

// Claim says who works at a turn. It is a lease, which its writer renews: where the
// writer died, nobody waits for it longer than that.
type Claim struct {
	Turn    int64  `json:"turn"`
	Holder  string `json:"holder"`
	Process string `json:"process"` // which it is, for people
	Until   int64  `json:"until"`   // in seconds since 1970; clocks of machines may differ by some
}

// TurnKey is the key of the system row of a turn that is its claim, base or record.
func TurnKey(turn int64, what ...string) string {
	return table.SystemKey(fmt.Sprintf("turn-%d-%s", turn, strings.Join(what, "-")))
}

// KeyTurn is the turn that wrote a system row: each has it in its key.
func KeyTurn(key string) (int64, error) {
	parts := strings.Split(key, "-")
	if len(parts) < 3 {
		return 0, fmt.Errorf("system row %q has no number of a turn", key)
	}
	return strconv.ParseInt(parts[1], 10, 64)
}

// ReadTurns reads the turns.
func ReadTurns(ctx context.Context, t *table.Table) (*Turns, error) {
	expr := fmt.Sprintf(`%s >= "%s" and %s < "%s"`, table.FieldKey, table.SystemKey("turn-"), table.FieldKey, table.SystemKey("turn."))
	rows, err := t.Query(ctx, table.NewestTable, expr, table.FieldKey, table.FieldText)
	if err != nil {
		return nil, err
	}
	turns := &Turns{Bases: map[int64]int64{}, Records: map[int64]Record{}}
	for _, r := range rows {
		if err := turns.add(r.Key, []byte(r.Entry.Text)); err != nil {
			return nil, fmt.Errorf("collection %q: row %s is damaged: build it anew under another prefix: %w", t.Collection, r.Key, err)
		}
	}
	return turns, nil
}

func (t *Turns) add(key string, text []byte) error {
	turn, err := KeyTurn(key)
	if err != nil {
		return err
	}
	switch what := strings.Split(key, "-")[2]; what {
	case "claim":
		var c Claim
		err = json.Unmarshal(text, &c)
		t.Claims = append(t.Claims, c)
	case "base":
		var base int64
		err = json.Unmarshal(text, &base)
		t.Bases[turn] = base
	case "record":
		var r Record
		err = json.Unmarshal(text, &r)
		t.Records[turn] = r
	}
	return err
}

// Last returns the record of the last commit; an empty one where nothing was committed.
func (t *Turns) Last() (Record, error) {
	numbers := slices.AppendSeq(slices.Collect(maps.Keys(t.Bases)), maps.Keys(t.Records))
	if len(numbers) == 0 {
		return Record{}, nil
	}
	last := slices.Max(numbers)
	if _, committed := t.Records[last]; !committed {
		last = t.Bases[last]
	}
	r, ok := t.Records[last]
	if !ok && last > 0 {
		return Record{}, sdk.Transient(fmt.Errorf("the record of commit %d is missing on the server", last), 0)
	}
	return r, nil
}

// Highest is the claim of the highest turn; a zero one where nobody has written.
func (t *Turns) Highest() (c Claim) {
	for _, other := range t.Claims {
		if other.Turn >= c.Turn {
			c = other
		}
	}
	return c
}
