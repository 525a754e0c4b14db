package terminal

import "fmt"

// Bytes shows a number of bytes in the unit that suits it, such as 90.9 MB.
func Bytes(n int64) string {
	digits, unit := BytesLike(n, n)
	return digits + " " + unit
}

// BytesLike shows a number of bytes in the unit that suits another one.
func BytesLike(n, like int64) (digits, unit string) {
	for _, by := range []struct {
		bytes int64
		name  string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if like >= by.bytes {
			return fmt.Sprintf("%.1f", float64(n)/float64(by.bytes)), by.name
		}
	}
	return fmt.Sprint(n), "B"
}
