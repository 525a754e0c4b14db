package expression

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
)

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// Path writes a member of a JSON field, if every engine reads its keys alike.
func Path(field string, keys ...string) (string, bool) {
	for _, key := range keys {
		if !plainKey.MatchString(key) {
			return "", false
		}
		field += `["` + key + `"]`
	}
	return field, true
}

// Literal writes a string, a number or a bool, if every engine reads it alike.
func Literal(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return Quote(v)
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		if v == 0 { // negative zero, too
			return "0.0", true
		}
		// Larger numbers would be compared as whole ones, or need an exponent.
		if size := math.Abs(v); size < 1e-4 || size > 1e12 {
			return "", false
		}
		return row.FloatText(v), true
	}
	return "", false
}

// Quote writes a string, if every engine reads it alike: there is no way to
// write a line feed or a tab that Milvus Lite 2 understands.
func Quote(text string) (string, bool) {
	for _, r := range text {
		if r < ' ' || r == 0x7f {
			return "", false
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`, true
}
