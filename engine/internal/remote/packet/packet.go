package packet

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run"
)

// Version is that of packets: their first byte. It grows with every change of what is in them.
// Packets of older versions stay readable.
const Version = 1

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

// maxSize bounds a packet without its compression, in bytes. A row has at most source.MaxRow, so
// the usual batch stays far below it. What a decoder allocates is some ten times as much at
// most: no element of a packet is smaller than a tenth of what is made of it.
const maxSize = 256 << 20

// encoder compresses packets, as many at a time as there are processors. It is kept, for its history takes a
// megabyte: to make that anew for each packet takes longer than to fill it.
var encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
})

// seal writes a packet: two bytes, and compressed JSON.
func seal(k kind, content any) ([]byte, error) { return sealTo(k, content, maxSize) }

func sealTo(k kind, content any, most int) ([]byte, error) {
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false) // it would make texts longer
	if err := enc.Encode(content); err != nil {
		return nil, err
	}
	if plain.Len() > most {
		return nil, fmt.Errorf("%s of %d MB is more than travels at a time, which is %d MB: set a smaller batch in the pipeline block", k, plain.Len()>>20, most>>20)
	}
	z, err := encoder()
	if err != nil {
		return nil, err
	}
	return z.EncodeAll(plain.Bytes(), []byte{Version, byte(k)}), nil
}

// open reads what seal wrote.
func open(k kind, data []byte, content any) error { return openTo(k, data, content, maxSize) }

func openTo(k kind, data []byte, content any, most int) error {
	switch {
	case len(data) < 2:
		return errors.New("a packet is cut off")
	case data[0] == 0 || data[0] > Version:
		return fmt.Errorf("a packet is of version %d, and this racflow reads versions up to %d: let the same racflow run on all machines", data[0], Version)
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
		return fmt.Errorf("a packet is damaged: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(plain))
	dec.DisallowUnknownFields() // what is not understood must not be lost
	if err := dec.Decode(content); err != nil {
		return fmt.Errorf("a packet is damaged: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("a packet is damaged: something follows its content")
	}
	return nil
}

// order is a run.Order. It is written with rows, and read with what these are made of later.
type order[R any] struct {
	shared
	Pass run.Pass `json:"pass,omitempty"`
	Rows []R      `json:"rows"`
}

// maxItems is more than travel together (stage.Gathered). What a reader makes of an item takes
// more memory than the few bytes of one that has nothing.
const maxItems = 1 << 17

// EncodeOrder writes an order. The error says that it is too large.
func EncodeOrder(o run.Order) ([]byte, error) {
	w := newWriter()
	rows := each(o.Rows, w.row)
	if w.err != nil {
		return nil, w.err
	}
	return seal(orders, order[row]{w.shared(), o.Pass, rows})
}

// DecodeOrder reads what EncodeOrder wrote. The error says that something else did, or
// another version of racflow.
func DecodeOrder(data []byte) (run.Order, error) {
	var in order[json.RawMessage]
	if err := open(orders, data, &in); err != nil {
		return run.Order{}, err
	}
	r := in.reader()
	out := run.Order{Pass: in.Pass, Rows: r.rows(in.Rows)}
	if in.Pass > run.Asking {
		r.fail("there is no pass %d", in.Pass)
	}
	if r.err != nil {
		return run.Order{}, r.err
	}
	return out, nil
}

// answered is a run.Answers with its rows.
type answered[R, I any] struct {
	shared
	Rows    []R `json:"rows"`
	Results []I `json:"results,omitzero"`
	state
}

// EncodeAnswers writes what became of rows, with the rows: whoever reads it can write the
// output. The error says that it is too large, or has a value that cannot travel.
func EncodeAnswers(rows []source.Row, a run.Answers) ([]byte, error) {
	if len(a.Results) != len(rows) && a.Results != nil {
		return nil, fmt.Errorf("%d results are not those of %d rows", len(a.Results), len(rows))
	}
	w := newWriter()
	out := answered[row, *item]{Rows: each(rows, w.row), state: w.state(a)}
	if a.Results != nil {
		out.Results = make([]*item, len(rows))
	}
	for i := range a.Results {
		out.Results[i] = w.result(&a.Results[i], rows[i])
	}
	if w.err != nil {
		return nil, w.err
	}
	out.shared = w.shared()
	return seal(answers, out)
}

// DecodeAnswers reads what EncodeAnswers wrote. The error says that something else did, or
// another version of racflow; or it is why there are no rows: Ended, of a batch that nobody could
// read.
func DecodeAnswers(data []byte) ([]source.Row, run.Answers, error) {
	var in answered[json.RawMessage, json.RawMessage]
	if err := open(answers, data, &in); err != nil {
		return nil, run.Answers{}, err
	}
	r := in.reader()
	rows := r.rows(in.Rows)
	out := r.state(&in.state, len(rows))
	out.Results = r.results(in.Results, rows)
	if r.err != nil {
		return nil, run.Answers{}, r.err
	}
	if len(rows) == 0 && out.Ended != nil {
		return nil, run.Answers{}, out.Ended
	}
	return rows, out, nil
}

// writer gathers what several parts of a packet refer to by number. Number 0 is the empty text,
// no metadata and no entry.
type writer struct {
	texts   []string
	numbers map[string]int
	metas   [][]int
	byMap   map[uintptr]int // numbers of metas, by their maps
	byText  map[string]int  // the same by content
	entries entries
	byEntry map[[5]int]int
	err     error // of a value that cannot travel
}

func newWriter() *writer {
	return &writer{numbers: map[string]int{}, byMap: map[uintptr]int{}, byText: map[string]int{}, byEntry: map[[5]int]int{}}
}

// text is the number of a text, from 1; 0: it is empty.
func (w *writer) text(s string) int {
	if s == "" {
		return 0
	}
	n, ok := w.numbers[s]
	if !ok {
		w.texts = append(w.texts, packed(s))
		n = len(w.texts)
		w.numbers[s] = n
	}
	return n
}

// reader finds what parts refer to. The first thing that is wrong is its err.
type reader struct {
	texts   []string
	metas   [][]int
	made    []madeMeta
	entries entries
	err     error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("a packet is damaged: "+format, args...)
	}
}

func (r *reader) text(n int) string {
	switch {
	case n == 0:
		return ""
	case n < 0 || n > len(r.texts):
		r.fail("there is no text %d", n)
		return ""
	}
	return r.texts[n-1]
}

// unpack makes the texts what they were.
func (r *reader) unpack() {
	for i, s := range r.texts {
		var err error
		if r.texts[i], err = unpacked(s); err != nil {
			r.fail("text %d: %v", i+1, err)
		}
	}
}

// raw marks a text that JSON would change: bytes that are no UTF-8, which a row's other columns
// may have.
const raw = "\x00"

// packed is a text that JSON does not change.
func packed(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, raw) {
		return s
	}
	return raw + base64.StdEncoding.EncodeToString([]byte(s))
}

func unpacked(s string) (string, error) {
	s, is := strings.CutPrefix(s, raw)
	if !is {
		return s, nil
	}
	b, err := base64.StdEncoding.DecodeString(s)
	return string(b), err
}

// floats are numbers as they are in memory, little endian: also those that are none, which JSON
// does not have.
type floats []byte

func floatsOf(numbers ...float64) floats {
	var all floats
	for _, x := range numbers {
		all = binary.LittleEndian.AppendUint64(all, math.Float64bits(x))
	}
	return all
}

func (r *reader) numbers(f floats, n int) []float64 {
	if len(f) != 8*n {
		r.fail("%d bytes are not %d numbers", len(f), n)
		return nil
	}
	all := make([]float64, n)
	for i := range all {
		all[i] = math.Float64frombits(binary.LittleEndian.Uint64(f[8*i:]))
	}
	return all
}
