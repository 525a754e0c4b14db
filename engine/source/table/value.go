package table

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// meaning is what the values of a column mean that are written as numbers or bytes.
type meaning struct {
	decimals int           // of a number; -1: it is none that is written so
	date     bool          // days since 1970
	unit     time.Duration // since 1970; 0: it is no time
	classes  []string      // names that its numbers stand for; nil: they are numbers
}

// classesOf are the names of classes by column, as the library datasets of Hugging Face writes them beside
// the rows, of columns of numbers and of lists of them.
func classesOf(file *parquet.File) map[string][]string {
	text, _ := file.Lookup("huggingface")
	var said struct {
		Info struct {
			Features map[string]json.RawMessage `json:"features"`
		} `json:"info"`
	}
	if json.Unmarshal([]byte(text), &said) != nil {
		return nil // another's, or none
	}
	classes := map[string][]string{}
	for name, raw := range said.Info.Features {
		var f struct {
			Names   []string        `json:"names"`
			Feature json.RawMessage `json:"feature"` // of the elements of a list
		}
		if json.Unmarshal(raw, &f) == nil && f.Feature != nil {
			_ = json.Unmarshal(f.Feature, &f) // another kind has no names
		}
		if len(f.Names) > 0 {
			classes[name] = f.Names
		}
	}
	return classes
}

// named puts the names of classes in place of their numbers; -1 stands for none.
func (m meaning) named(value any) any {
	switch v := value.(type) {
	case int32:
		return m.named(int64(v))
	case int64:
		if v >= 0 && v < int64(len(m.classes)) {
			return m.classes[v]
		} else if v == -1 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = m.named(v[i])
		}
	}
	return value
}

func meaningOf(column parquet.Node) meaning {
	m := meaning{decimals: -1}
	if !column.Leaf() {
		return m
	}
	logical := column.Type().LogicalType()
	if logical == nil {
		return m
	}
	switch t := logical.Value.(type) {
	case *format.DecimalType:
		m.decimals = int(max(0, min(t.Scale, 1000)))
	case *format.DateType:
		m.date = true
	case *format.TimestampType:
		name := t.String()
		for unit, length := range map[string]time.Duration{"MILLIS": time.Millisecond, "MICROS": time.Microsecond, "NANOS": time.Nanosecond} {
			if strings.Contains(name, unit) {
				m.unit = length
			}
		}
	}
	return m
}

// valueOf is a value of a column as rows have it.
func (m meaning) valueOf(value any) any {
	if m.classes != nil {
		value = m.named(value)
	}
	switch v := value.(type) {
	case nil, bool:
		return v
	case string:
		return text([]byte(v), m.decimals)
	case []byte:
		return text(v, m.decimals)
	case int32:
		return m.whole(int64(v))
	case int64:
		return m.whole(v)
	case uint32:
		return json.Number(strconv.FormatUint(uint64(v), 10))
	case uint64:
		return json.Number(strconv.FormatUint(v, 10))
	case float32:
		return float(float64(v), 32)
	case float64:
		return float(v, 64)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case map[string]any, []any:
		if raw, err := json.Marshal(plain(v)); err == nil {
			return json.RawMessage(raw)
		}
	}
	return fmt.Sprint(value)
}

func (m meaning) whole(n int64) any {
	switch {
	case m.date:
		return time.Unix(0, 0).UTC().AddDate(0, 0, int(n)).Format(time.DateOnly)
	case m.unit == time.Millisecond:
		return time.UnixMilli(n).UTC().Format(time.RFC3339Nano)
	case m.unit == time.Microsecond:
		return time.UnixMicro(n).UTC().Format(time.RFC3339Nano)
	case m.unit == time.Nanosecond:
		return time.Unix(0, n).UTC().Format(time.RFC3339Nano)
	case m.decimals > 0:
		return decimal(big.NewInt(n), m.decimals)
	}
	return json.Number(strconv.FormatInt(n, 10))
}

// text is what bytes say: a decimal number, text, or neither.
func text(v []byte, decimals int) any {
	switch {
	case decimals >= 0 && len(v) > 0 && len(v) <= 64:
		n := new(big.Int).SetBytes(v)
		if v[0]&0x80 != 0 { // two's complement
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(v))))
		}
		return decimal(n, decimals)
	case utf8.Valid(v):
		return string(v)
	}
	return base64.StdEncoding.EncodeToString(v)
}

// decimal is a number with a point before its last digits.
func decimal(n *big.Int, decimals int) any {
	scaled := new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil))
	return json.Number(scaled.FloatString(decimals))
}

// float is a number; what is none in JSON is a text.
func float(v float64, bits int) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', -1, bits)
	}
	return json.Number(strconv.FormatFloat(v, 'g', -1, bits))
}

// plain is a nested value as JSON can hold it.
func plain(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			v[name] = plain(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = plain(inner)
		}
	case []byte:
		return text(v, -1)
	case float32:
		return float(float64(v), 32)
	case float64:
		return float(v, 64)
	}
	return value
}
