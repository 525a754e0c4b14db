package columnar

import (
	"os"

	"github.com/parquet-go/parquet-go"
)

// Rows counts the rows of a file. It fails where that is no Parquet file.
func Rows(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return 0, err
	}
	return file.NumRows(), nil
}
