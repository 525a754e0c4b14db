package rows

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// This file interprets the numbers in the cells of a workbook. A cell may show less than its value: a format cuts off
// digits, so that different ids look the same. The value of a number is its digits in the file. The format of the cell
// only distinguishes numbers from dates, times, durations, percentages and codes with leading zeros.

type numberKind int

const (
	aNumber     numberKind = iota
	aDate                  // with or without a time of day, or a time alone
	aDuration              // counts hours beyond 24
	aPercentage            // shows hundredths
	aCode                  // shows all digits, with zeros before them
)

// numberFormat is the meaning of a number format. It uses the format's first section, which is for positive numbers.
type numberFormat struct {
	kind   numberKind
	clock  bool   // of a date: shows hours, minutes or seconds
	code   string // the format's texts, and place for each digit
	zeros  int    // fewest digits that a code shows
	unit   string // format for fmt of a number with the texts around it, such as its currency
	hidden bool   // shows nothing
}

// place marks the place of a digit.
const place = "\x00"

// builtIn returns the code of a format that a workbook names only by its number. It is empty for formats of plain
// numbers.
func builtIn(id int) string {
	switch {
	case id == 9, id == 10:
		return "0%"
	case id >= 18 && id <= 22, id == 45, id == 47:
		return "h:mm"
	case id == 46:
		return "[h]"
	case id >= 14 && id <= 17, id >= 27 && id <= 36, id >= 50 && id <= 58, id >= 71 && id <= 81: // the last three: Asian languages
		return "d"
	}
	return ""
}

// formatTokens are the tokens of a number format: texts, blanks as wide as a character, currencies, conditions and
// colours, places of digits, and other characters.
var formatTokens = regexp.MustCompile(`(?is)"([^"]*)"|\\(.)|[_*].|\[\$([^\]-]*)[^\]]*\]|\[([^\]]*)\]|general|.`)

// thousands matches a format that shows thousands or millions of a number.
var thousands = regexp.MustCompile(`[0#?],+([^0#?,]|$)`)

// parseFormat reads the code of a number format; empty: the format shows plain numbers.
func parseFormat(code string) (f numberFormat) {
	plain, ended, scaled := true, false, thousands.MatchString(code)
	for _, m := range formatTokens.FindAllStringSubmatch(code, -1) {
		switch t := strings.ToLower(m[0]); {
		case ended || len(t) > 1 && (t[0] == '_' || t[0] == '*'):
		case t == ";":
			ended = true
		case t == "general", len(t) == 1 && strings.Contains("0#?", t):
			f.code += place
			plain = plain && len(t) == 1
			if t == "0" {
				f.zeros++
			}
		case m[4] != "" && strings.Trim(strings.ToLower(m[4]), "hms") == "":
			f.kind = aDuration
		case m[4] != "":
			scaled = scaled || strings.ContainsAny(m[4], "<>=") // a condition
		case t == "%":
			f.kind = aPercentage
		case strings.Contains("ymdhsb", t):
			f.kind = max(f.kind, aDate)
			f.clock = f.clock || t == "h" || t == "s"
		case strings.Contains(".,/e@", t):
			plain = false
		case len(t) == 1 || !strings.ContainsAny(t[:1], "\"\\["):
			f.code += m[0]
		default:
			f.code += m[1] + m[2] + m[3]
		}
	}
	first, last := strings.Index(f.code, place), strings.LastIndex(f.code, place)
	switch {
	case f.kind != aNumber:
	case first < 0:
		f.hidden = f.code == "" && ended
	case plain && !scaled && f.zeros > 1:
		f.kind = aCode
	case !scaled:
		f.unit = strings.ReplaceAll(f.code[:first], "%", "%%") + "%s" + strings.ReplaceAll(f.code[last+1:], "%", "%%")
	}
	return f
}

// value returns the value of a number in a cell. With units, for a reader of documents, it includes the texts around
// the number, and is empty if the cell shows nothing.
func (f numberFormat) value(raw string, from1904, units bool) string {
	raw = strings.TrimSpace(raw)
	v, err := strconv.ParseFloat(raw, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return raw
	}
	number := digitsOf(raw, v)
	_, decimals, _ := strings.Cut(number, ".")
	whole := decimals == "" && !strings.Contains(number, "e")
	switch {
	case f.kind == aDate && v >= 0 && v < 2_958_466: // until the year 9999
		return dateOf(v, f.clock, from1904)
	case f.kind == aDuration:
		return durationOf(v)
	case f.kind == aPercentage && len(number) < 50 && !strings.Contains(number, "e"):
		if r, ok := new(big.Rat).SetString(number); ok {
			return r.Mul(r, big.NewRat(100, 1)).FloatString(max(0, len(decimals)-2)) + "%"
		}
	case f.kind == aCode && v >= 0 && whole:
		return f.coded(number)
	case units && f.hidden:
		return ""
	case units && f.unit != "":
		return fmt.Sprintf(f.unit, number)
	}
	return number
}

// coded puts the digits of a number into the places of a code. The first place gets all surplus digits.
func (f numberFormat) coded(number string) string {
	number = strings.Repeat("0", max(0, f.zeros-len(number))) + number
	parts := strings.Split(f.code, place)
	for i := range parts[1:] {
		n := max(0, len(number)-(len(parts)-2-i))
		parts[i] += number[:n]
		number = number[n:]
	}
	return strings.Join(parts, "")
}

var plainNumber = regexp.MustCompile(`^-?[0-9]+(\.[0-9]*)?$`)

// digitsOf returns the digits of a number. It uses no exponent for up to 21 digits. It removes errors of calculating
// with 53 bits: 0.30000000000000004 becomes 0.3.
func digitsOf(raw string, v float64) string {
	if a := math.Abs(v); !plainNumber.MatchString(raw) {
		if a != 0 && (a >= 1e21 || a < 1e-7) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
		raw = strconv.FormatFloat(v, 'f', -1, 64)
	}
	number, negative := strings.CutPrefix(raw, "-")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
		short, _ := strconv.ParseFloat(strconv.FormatFloat(math.Abs(v), 'g', 12, 64), 64)
		if len(number) > 16 && math.Abs(math.Abs(v)-short) <= math.Abs(v)/(1<<51) {
			number = strconv.FormatFloat(short, 'f', -1, 64)
		}
	}
	if number = strings.TrimLeft(number, "0"); number == "" || number[0] == '.' {
		number = "0" + number
	}
	if negative && number != "0" {
		number = "-" + number
	}
	return number
}

// dateOf converts a number of days since 1900 or 1904 to ISO 8601.
func dateOf(v float64, clock, from1904 bool) string {
	first := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	if from1904 {
		first = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	} else if v < 60 { // the format counts a 29 February 1900
		first = first.AddDate(0, 0, 1)
	}
	ms := int64(math.Round(v * 86_400_000))
	at := first.AddDate(0, 0, int(ms/86_400_000)).Add(time.Duration(ms%86_400_000) * time.Millisecond)
	switch {
	case v < 1:
		return at.Format("15:04:05.999")
	case clock || ms%86_400_000 != 0:
		return at.Format("2006-01-02T15:04:05.999")
	}
	return at.Format(time.DateOnly)
}

// durationOf returns a number of days as hours, minutes and seconds.
func durationOf(v float64) string {
	sign := ""
	if v < 0 {
		sign = "-"
	}
	s := int64(math.Round(math.Abs(v) * 86_400))
	return fmt.Sprintf("%s%d:%02d:%02d", sign, s/3600, s/60%60, s%60)
}
