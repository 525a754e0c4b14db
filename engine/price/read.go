package price

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/racflow/racflow/engine/pipeline"
)

// columns are those of a table.
var columns = []string{"host", "model", "input", "cached", "output", "batch"}

// read reads a table. place names a line of it.
func read(text []byte, place func(line int) string) (table, error) {
	t := table{}
	var names []string
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimRight(line, "\r")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		if names == nil {
			for _, needed := range columns[:3] {
				if !slices.Contains(cells, needed) {
					return nil, fmt.Errorf("%s: the first line names the columns, separated by tabs, and %s is missing: %s", place(i+1), needed, strings.Join(columns, " "))
				}
			}
			for _, name := range cells {
				if !slices.Contains(columns, name) {
					return nil, fmt.Errorf("%s: there is no column %q; there are %s", place(i+1), name, strings.Join(columns, ", "))
				}
			}
			names = cells
			continue
		}
		if len(cells) > len(names) {
			return nil, fmt.Errorf("%s has %d columns, and the first line names %d", place(i+1), len(cells), len(names))
		}
		row := map[string]string{}
		for at, cell := range cells {
			row[names[at]] = strings.TrimSpace(cell)
		}
		price, err := priceOf(row)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place(i+1), err)
		}
		t[key(row["host"], row["model"])] = entry{price, place(i + 1)}
	}
	return t, nil
}

// priceOf reads the price of a row.
func priceOf(row map[string]string) (p pipeline.Price, err error) {
	if row["host"] == "" || row["model"] == "" {
		return p, fmt.Errorf("host and model say whose price it is")
	}
	number := func(column string, unsaid float64) float64 {
		if row[column] == "" {
			return unsaid
		}
		x, bad := strconv.ParseFloat(row[column], 64)
		if (bad != nil || !(x >= 0) || math.IsInf(x, 0)) && err == nil {
			err = fmt.Errorf("%s is %q; write a number of at least 0", column, row[column])
		}
		return x
	}
	if row["input"] == "" {
		return p, fmt.Errorf("input is missing: what a million tokens cost, 0 where they are free")
	}
	p.Input = number("input", 0)
	p.Cached, p.Output = number("cached", p.Input), number("output", 0)
	if p.Batch = number("batch", 0.5); p.Batch == 0.5 {
		p.Batch = 0 // as everywhere
	} else if p.Batch == 0 && err == nil {
		err = fmt.Errorf("batch is 0; write the share of the prices that calls in batches cost, as 0.5")
	}
	return p, err
}
