package expression

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/racflow/racflow/plugins/store/milvus/internal/row"
)

// And joins expressions and leaves out empty ones.
func And(exprs ...string) string {
	var given []string
	for _, e := range exprs {
		if e != "" {
			given = append(given, e)
		}
	}
	return strings.Join(given, " and ")
}

// Between selects the rows with sequence numbers from a first one on and below a
// last one.
func Between(from, to int64) string {
	if from <= 0 {
		return fmt.Sprintf("%s < %d", row.FieldSequence, to)
	}
	return fmt.Sprintf("%s < %d and %s >= %d", row.FieldSequence, to, row.FieldSequence, from)
}

// Outside selects the rows without the sequence numbers from a first one on and below
// a last one.
func Outside(from, to int64) string {
	return fmt.Sprintf("(%s < %d or %s >= %d)", row.FieldSequence, from, row.FieldSequence, to)
}

// Numbers selects the rows whose field has one of the numbers. Some servers take
// no empty list.
func Numbers(field string, numbers []int64) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return field + " in [" + strings.Join(texts, ",") + "]"
}

// Keys selects the rows with one of the keys, which need no escapes. Some servers
// take no empty list.
func Keys(keys []string) string {
	return row.FieldKey + ` in ["` + strings.Join(keys, `","`) + `"]`
}
