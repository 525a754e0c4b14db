package unigram

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// score reads a number as the tokenizers library's reader of JSON does: its digits as an
// integer of 64 bits, multiplied or divided by a power of ten. That may differ in the last
// bit from the nearest float64, and the last bit decides between two ways to cut a word
// that have the same tokens in another order. text is a value in JSON that was checked.
func score(text string) (float64, error) {
	nearest, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("the score %.40q is not a finite number", text)
	}
	mantissa, power, _ := strings.Cut(strings.ToLower(text), "e")
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent, _ := strconv.Atoi(power)
	if len(whole) > 19 { // more than 64 bits hold
		return nearest, nil
	}
	digits, err := strconv.ParseUint(whole, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the score %.40q: %w", text, err)
	}
	for i := range len(fraction) {
		digit := uint64(fraction[i] - '0')
		if digits > (math.MaxUint64-digit)/10 {
			break // the digits behind count for nothing
		}
		digits = digits*10 + digit
		exponent--
	}
	steps := max(exponent, -exponent)
	if steps > 308 { // float64 has no such power of ten
		return nearest, nil
	}
	scale, err := strconv.ParseFloat("1e"+strconv.Itoa(steps), 64)
	if err != nil {
		return 0, fmt.Errorf("the score %.40q: %w", text, err)
	}
	value := float64(digits)
	if exponent < 0 {
		value /= scale
	} else {
		value *= scale
	}
	if negative {
		value = -value
	}
	return value, nil
}
