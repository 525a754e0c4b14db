package values

import (
	"slices"
	"strconv"

	"github.com/racflow/racflow/sdk"
)

// grid are the values that are tried for an argument in place of the present one; nil:
// nobody can say which would make sense.
func grid(a sdk.Argument, now string) []string {
	if len(a.OneOf) > 0 {
		return slices.DeleteFunc(slices.Clone(a.OneOf), func(v string) bool { return v == now })
	}
	x, err := strconv.ParseFloat(now, 64)
	if err != nil {
		return nil
	}
	var tried []float64
	switch share := a.Range.Min != nil && a.Range.Max != nil && *a.Range.Min == 0 && *a.Range.Max == 1; {
	case a.Type == sdk.TypeInt:
		tried = []float64{float64(int(x) / 4), float64(int(x) / 2), 2 * x, 4 * x}
	case a.Type == sdk.TypeFloat && share:
		tried = []float64{0, .2, .4, .5, .6, .7, .8, .9, 1}
	case a.Type == sdk.TypeFloat && x == 0:
		tried = []float64{.25, .5, 1, 2}
	case a.Type == sdk.TypeFloat:
		tried = []float64{0, x / 2, x / 1.4, 1.4 * x, 2 * x}
	}
	var all []string
	for _, v := range tried {
		text := strconv.FormatFloat(v, 'g', 4, 64)
		if a.Type == sdk.TypeInt {
			text = strconv.Itoa(int(v))
		}
		if v != x && within(a.Range, v) && !(a.Type == sdk.TypeInt && v < 1) && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

func within(r sdk.Range, x float64) bool {
	return !(r.Min != nil && (x < *r.Min || r.MinExcluded && x == *r.Min) || r.Max != nil && (x > *r.Max || r.MaxExcluded && x == *r.Max))
}
