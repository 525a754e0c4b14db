package snapshot

import (
	"math"
	"slices"

	"github.com/racflow/racflow/plugins/store/local/internal/segment"
)

const (
	// fanout is how many segments of about one size are merged into one.
	fanout = 8
	// maxParts bounds the parts in files, and those in memory, whatever their sizes.
	maxParts = 48
)

// Due returns which neighbouring parts are to be merged into one, from first up
// to last, without it; none if both are 0. A part is due alone where more of its
// rows were removed than live.
//
// The others are merged by tiers: tier t has parts of fanout^t rows and more. A
// run of parts of tier t and below is due when it has fanout of tier t, so that
// a row is copied about once per tier.
func Due(parts []Part) (first, last int) {
	top := 0
	tiers := make([]int, len(parts))
	for i := range parts {
		live := parts[i].Live()
		if parts[i].Removed > live {
			return i, i + 1
		}
		tiers[i] = int(math.Log2(float64(live)) / math.Log2(fanout))
		top = max(top, tiers[i])
	}
	for tier := range top + 1 {
		from, same := 0, 0
		for i := 0; i <= len(parts); i++ {
			if i < len(parts) && tiers[i] <= tier {
				if tiers[i] == tier {
					same++
				}
				continue
			}
			if same >= fanout {
				return from, i
			}
			from, same = i+1, 0
		}
	}
	if len(parts) > maxParts {
		return smallest(parts)
	}
	return 0, 0
}

// smallest returns the fanout neighbouring parts that have the fewest rows.
func smallest(parts []Part) (first, last int) {
	least := math.MaxInt
	for i := 0; i+fanout <= len(parts); i++ {
		sum := 0
		for j := range fanout {
			sum += parts[i+j].Live()
		}
		if sum < least {
			least, first = sum, i
		}
	}
	return first, first + fanout
}

// settle merges the parts in memory that are due.
func (s *Snapshot) settle(parts []Part) ([]Part, error) {
	parts = withoutEmpty(parts)
	files := Files(parts)
	for {
		first, last := Due(parts[files:])
		if last == 0 {
			return parts, nil
		}
		first, last = first+files, last+files
		merged, err := s.InMemory(Inputs(parts[first:last]))
		if err != nil {
			return nil, err
		}
		parts = slices.Replace(slices.Clone(parts), first, last, memoryPart(merged))
	}
}

func withoutEmpty(parts []Part) []Part {
	return slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return p.Live() == 0 })
}

// Files is the number of parts that are in files. They stand in front.
func Files(parts []Part) int {
	n := slices.IndexFunc(parts, func(p Part) bool { return p.Path == "" })
	if n < 0 {
		return len(parts)
	}
	return n
}

// Inputs are the live rows of parts.
func Inputs(parts []Part) []segment.Input {
	inputs := make([]segment.Input, 0, len(parts))
	for i := range parts {
		if parts[i].Live() > 0 {
			inputs = append(inputs, segment.Input{Source: parts[i].Segment, Dead: parts[i].Dead})
		}
	}
	return inputs
}
