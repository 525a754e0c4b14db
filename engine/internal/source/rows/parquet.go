package rows

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

// This file interprets the values of Parquet columns. It does not know what columns mean.

// meaning describes how to read the numbers or bytes of a column.
type meaning struct {
	decimals int           // decimals of a decimal number; -1: not a decimal number
	date     bool          // numbers are days since 1970
	unit     time.Duration // unit of numbers that are times since 1970; 0: not times
	classes  []string      // class names that the numbers index; nil: none
}

// classesOf returns the names of classes by column, from the metadata of Hugging Face's library datasets.
// They apply to columns of numbers and of lists of numbers.
func classesOf(file *parquet.File) map[string][]string {
	text, _ := file.Lookup("huggingface")
	var said struct {
		Info struct {
			Features map[string]json.RawMessage `json:"features"`
		} `json:"info"`
	}
	if json.Unmarshal([]byte(text), &said) != nil {
		return nil // another program's metadata, or none
	}
	classes := map[string][]string{}
	for name, raw := range said.Info.Features {
		var f struct {
			Names   []string        `json:"names"`
			Feature json.RawMessage `json:"feature"` // of a list's elements
		}
		if json.Unmarshal(raw, &f) == nil && f.Feature != nil {
			_ = json.Unmarshal(f.Feature, &f) // other features have no names
		}
		if len(f.Names) > 0 {
			classes[name] = f.Names
		}
	}
	return classes
}

// named replaces the numbers of classes by their names, and -1 by nil.
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

// valueOf converts a value of a column to a value of a row.
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

// text converts bytes: to a decimal number, a text, or neither.
func text(v []byte, decimals int) any {
	switch {
	case decimals >= 0 && len(v) > 0 && len(v) <= 64:
		n := new(big.Int).SetBytes(v)
		if v[0]&0x80 != 0 { // negative in two's complement
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(v))))
		}
		return decimal(n, decimals)
	case utf8.Valid(v):
		return string(v)
	}
	return base64.StdEncoding.EncodeToString(v)
}

// decimal returns a number with a point before its last digits.
func decimal(n *big.Int, decimals int) any {
	scaled := new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil))
	return json.Number(scaled.FloatString(decimals))
}

// float returns a number, or a text if JSON has no such number.
func float(v float64, bits int) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', -1, bits)
	}
	return json.Number(strconv.FormatFloat(v, 'g', -1, bits))
}

// plain converts a nested value to a value that JSON can encode.
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
