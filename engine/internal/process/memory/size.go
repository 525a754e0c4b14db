package memory

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

var (
	sizes = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([KMGT]i?B)$`)
	units = map[string]float64{
		"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	}
)

// least is the smallest bound in bytes: an idle stage holds half of it.
const least = 32 << 20

// ParseSize parses a size such as 2GiB, 512MiB or 1.5GB into bytes.
func ParseSize(text string) (int64, error) {
	m := sizes.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf(`%q is not a size such as "512MiB" or "2GiB"`, text)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	n *= units[m[2]]
	switch {
	case err != nil || n > math.MaxInt64/2:
		return 0, fmt.Errorf("%q is more than any machine has", text)
	case n < least:
		return 0, fmt.Errorf("%q is less than any stage needs: at least %s", text, Size(least))
	}
	return int64(n), nil
}

// Size formats bytes for people: 1.5 GiB.
func Size(bytes int64) string {
	for _, unit := range []string{"TiB", "GiB", "MiB"} {
		if n := float64(bytes) / units[unit]; n >= 1 || unit == "MiB" {
			return strconv.FormatFloat(n, 'f', 1, 64) + " " + unit
		}
	}
	return ""
}
