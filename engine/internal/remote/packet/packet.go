package packet

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/run/outcome"
)

// Version is the first byte of a packet. It increases with every change of the content's format.
const Version = 6

// kind is the second byte.
type kind byte

const (
	orders  kind = 'o'
	answers kind = 'a'
)

func (k kind) String() string {
	switch k {
	case orders:
		return "an order"
	case answers:
		return "answers"
	}
	return fmt.Sprintf("something else (%q)", rune(k))
}

// maxSize limits an uncompressed packet, in bytes. A row has at most source.MaxRow, so the usual
// batch is far smaller.
const maxSize = 256 << 20

// encoder compresses packets, as many at a time as there are processors. It is reused, because
// allocating its history of a megabyte takes longer than compressing a packet.
var encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
})

// seal encodes a packet: two bytes, then compressed CBOR.
func seal(k kind, content any) ([]byte, error) { return sealTo(k, content, maxSize) }

func sealTo(k kind, content any, most int) ([]byte, error) {
	plain, err := encoding.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be sent to another machine: %w", k, err)
	}
	if len(plain) > most {
		return nil, fmt.Errorf("%s of %d MB is more than travels at a time, which is %d MB: set a smaller batch in the pipeline block", k, len(plain)>>20, most>>20)
	}
	z, err := encoder()
	if err != nil {
		return nil, err
	}
	return z.EncodeAll(plain, []byte{Version, byte(k)}), nil
}

// open decodes the output of seal.
func open(k kind, data []byte, content any) error { return openTo(k, data, content, maxSize) }

func openTo(k kind, data []byte, content any, most int) error {
	switch {
	case len(data) < 2:
		return errors.New("a packet is cut off")
	case data[0] != Version:
		return fmt.Errorf("a packet is of version %d, and this racflow reads version %d: let the same racflow run on all machines", data[0], Version)
	case kind(data[1]) != k:
		return fmt.Errorf("a packet has %s where %s is expected", kind(data[1]), k)
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(most)), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer z.Close()
	plain, err := z.DecodeAll(data[2:], nil)
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
		return fmt.Errorf("a packet has more than %d MB: no racflow writes one", most>>20)
	case err != nil:
		return damaged("%w", err)
	}
	if err := decoding.Unmarshal(plain, content); err != nil {
		return damaged("%w", err)
	}
	return nil
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("a packet is damaged: "+format, args...)
}

// order is the encoded form of run.Order.
type order struct {
	Pass run.Pass
	Rows []row
}

// row is a source.Row with the line of its file, which source.Row does not export.
type row struct {
	source.Row
	At int
}

func rowOf(r source.Row) row {
	_, at := r.Place()
	r.Err = portable(r.Err)
	return row{r, at}
}

func (r row) read() source.Row { return r.Row.At(r.File, r.At) }

// EncodeOrder encodes an order. It fails if the order is too large.
func EncodeOrder(o run.Order) ([]byte, error) {
	return seal(orders, order{o.Pass, each(o.Rows, rowOf)})
}

// DecodeOrder decodes the output of EncodeOrder. It fails for other data, and for data of another
// version of racflow.
func DecodeOrder(data []byte) (run.Order, error) {
	var in order
	if err := open(orders, data, &in); err != nil {
		return run.Order{}, err
	}
	if in.Pass > run.Asking {
		return run.Order{}, damaged("there is no pass %d", in.Pass)
	}
	if err := sound(in.Rows, run.Answers{}); err != nil {
		return run.Order{}, err
	}
	return run.Order{Pass: in.Pass, Rows: each(in.Rows, row.read)}, nil
}

// answered is the encoded form of run.Answers, with the rows.
type answered struct {
	Rows []row
	run.Answers
}

// EncodeAnswers encodes the answers with their rows, so that a reader can write the output. It
// fails if they are too large, or have a value that cannot be encoded.
func EncodeAnswers(rows []source.Row, a run.Answers) ([]byte, error) {
	if len(a.Results) != len(rows) && a.Results != nil {
		return nil, fmt.Errorf("%d results are not those of %d rows", len(a.Results), len(rows))
	}
	a.Results, a.Halted, a.Ended = each(a.Results, traveller), each(a.Halted, portableFailure), portable(a.Ended)
	if left := a.Left; left != nil {
		a.Left = make(map[int]error, len(left))
		for at, err := range left {
			a.Left[at] = portable(err)
		}
	}
	return seal(answers, answered{each(rows, rowOf), a})
}

// traveller returns a result with portable errors and with hashes in place of its prompts.
func traveller(r outcome.Result) outcome.Result {
	r.Failure, r.Skipped, r.Missing = portableFailure(r.Failure), each(r.Skipped, portableFailure), each(r.Missing, portableFailure)
	r.Prompts = each(r.Prompts, func(p outcome.Prompted) outcome.Prompted {
		return outcome.Prompted{Stage: p.Stage, Hashes: journal.Hashes(p)}
	})
	return r
}

// DecodeAnswers decodes the output of EncodeAnswers. It fails for other data, and for data of
// another version of racflow. If no worker could read the batch, the answers have no rows, and the
// error is their Ended.
func DecodeAnswers(data []byte) ([]source.Row, run.Answers, error) {
	var in answered
	if err := open(answers, data, &in); err != nil {
		return nil, run.Answers{}, err
	}
	if err := sound(in.Rows, in.Answers); err != nil {
		return nil, run.Answers{}, err
	}
	if len(in.Rows) == 0 && in.Ended != nil {
		return nil, run.Answers{}, in.Ended
	}
	return each(in.Rows, row.read), in.Answers, nil
}
