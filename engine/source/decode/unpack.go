package decode

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Size is the size of the buffer of a stream, in bytes: what can be looked at before it is
// read.
const Size = 64 << 10

// Limits of what is unpacked. Texts that people write shrink to a tenth, tables that repeat
// themselves to a hundredth.
const (
	maxRatio  = 250      // unpacked bytes to packed ones, from
	freeBytes = 64 << 20 // so many unpacked bytes on
	maxWindow = 64 << 20 // of zstd, in bytes: what has to be remembered
)

// Packed says how a file is packed that begins so.
func Packed(head []byte) (compression string, ok bool) {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return "gzip", true
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd", true
	}
	return "", false
}

// Unpack unpacks a stream that begins as gzip or zstd do, and says which; any other stream
// is returned as it is.
func Unpack(in *bufio.Reader) (out *bufio.Reader, compression string, err error) {
	head, _ := in.Peek(4)
	packed := &counted{in: in}
	switch name, _ := Packed(head); name {
	case "gzip":
		r, err := gzip.NewReader(packed)
		if err != nil {
			return nil, "gzip", broken("gzip", err)
		}
		return unpacked("gzip", r, packed), "gzip", nil
	case "zstd":
		r, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, "zstd", broken("zstd", err)
		}
		return unpacked("zstd", r, packed), "zstd", nil
	}
	return in, "", nil
}

func unpacked(name string, r io.Reader, packed *counted) *bufio.Reader {
	return bufio.NewReaderSize(&unpacker{name: name, in: r, packed: packed}, Size)
}

// counted counts what is read.
type counted struct {
	in io.Reader
	n  int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// unpacker refuses what grows out of all proportion.
type unpacker struct {
	name   string
	in     io.Reader
	packed *counted
	n      int64
}

func (u *unpacker) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	u.n += int64(n)
	switch {
	case u.n > freeBytes && u.n/maxRatio > u.packed.n:
		return 0, fmt.Errorf("%d bytes of %s unpack to more than %d: nobody writes such rows; if you trust the file, unpack it yourself", u.packed.n, u.name, u.n)
	case err != nil && err != io.EOF:
		err = broken(u.name, err)
	}
	return n, err
}

func broken(name string, err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("the file is cut off within its %s data: get it once more", name)
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fmt.Errorf("the file is packed with a window of more than %d MiB: unpack it yourself, with zstd -d --long=31", maxWindow>>20)
	}
	return fmt.Errorf("the file's %s data is damaged (%w): get it once more", name, err)
}
