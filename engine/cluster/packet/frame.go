package packet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
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
