package answers

import (
	"encoding/binary"
	"errors"

	"github.com/racflow/racflow/sdk"
)

// answer is what a service answered, as it travels.
type answer struct {
	about string // what it is, for people
	value []byte
}

// maxAbout is how many bytes of answer.about travel: a folder keeps fewer.
const maxAbout = 64

// encode makes the bytes that the bucket keeps: the length of about in a byte, about, and the value.
func (a answer) encode() []byte {
	about := a.about[:min(len(a.about), maxAbout)]
	b := make([]byte, 0, 1+len(about)+len(a.value))
	b = append(b, byte(len(about)))
	return append(append(b, about...), a.value...)
}

var errDamaged = errors.New("what the servers keep of an answer cannot be read: something else than racflow wrote it")

func decode(data []byte) (answer, error) {
	if len(data) < 1 || int(data[0]) > len(data)-1 {
		return answer{}, errDamaged
	}
	n := 1 + int(data[0])
	return answer{string(data[1:n]), data[n:]}, nil
}

// A question to the caller is keys, one behind the other. Its reply has for each a byte that says
// what there is; behind found come the length in four bytes, little-endian, and the answer.
const (
	nothing byte = iota // the caller has no answer
	found               // here it is
	kept                // it is in the run's bucket: it is large
	later               // it did not fit into the reply: ask again
)

// replyBytes is how large a reply gets: servers take messages of 1 MiB unless they are told otherwise.
const replyBytes = 512 << 10

// maxKeys is how many keys a question has at most.
const maxKeys = 1024

// replied is what a reply says about one key.
type replied struct {
	says byte
	answer
}

// encodeQuestion makes a question of keys.
func encodeQuestion(keys []sdk.Key) []byte {
	b := make([]byte, 0, len(keys)*len(sdk.Key{}))
	for _, key := range keys {
		b = append(b, key[:]...)
	}
	return b
}

func decodeQuestion(b []byte) (keys []sdk.Key) {
	for ; len(b) >= len(sdk.Key{}) && len(keys) < maxKeys; b = b[len(sdk.Key{}):] {
		keys = append(keys, sdk.Key(b))
	}
	return keys
}

// appendReply appends what is said about one key.
func appendReply(b []byte, says byte, data []byte) []byte {
	b = append(b, says)
	if says == found {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(data))), data...) //nolint:gosec // at most replyBytes
	}
	return b
}

// decodeReply reads what is said about n keys.
func decodeReply(b []byte, n int) ([]replied, error) {
	all := make([]replied, 0, n)
	for range n {
		if len(b) == 0 {
			return nil, errDamaged
		}
		r := replied{says: b[0]}
		b = b[1:]
		if r.says == found {
			if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
				return nil, errDamaged
			}
			end := 4 + int(binary.LittleEndian.Uint32(b))
			var err error
			if r.answer, err = decode(b[4:end]); err != nil {
				return nil, err
			}
			b = b[end:]
		}
		all = append(all, r)
	}
	return all, nil
}
