package bounded

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/racflow/racflow/engine/interrupt"
)

// Read returns the content of a pipeline file, or of stdin where path is "-".
// It returns at most one byte more than a pipeline file may have, so that Parse refuses it,
// and fails as soon as ctx ends.
func Read(ctx context.Context, path string, stdin io.Reader) ([]byte, error) {
	return interrupt.Do(ctx, func() ([]byte, error) {
		if path == "-" {
			return io.ReadAll(io.LimitReader(stdin, MaxSource+1))
		}
		return ReadRegular(path, MaxSource)
	})
}

// ReadRegular reads at most one byte more than most from a regular file: a pipe or device
// may never end.
func ReadRegular(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, err
	}
	return ReadAny(path, most)
}

// ReadAny is ReadRegular for any file.
func ReadAny(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}
