package pipeline

import (
	"bytes"
	_ "embed" // the table
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/internal/file/bounded"
	"github.com/racflow/racflow/engine/internal/show/terminal"
)

// This file knows what models cost where a pipeline file does not say: by a file of
// the user's, and else by a table that comes with racflow.
//
// Both have the same form: lines of columns that tabs separate, the first of which names
// them. Lines that begin with # are comments.
//
//	host	model	input	cached	output	batch
//	api.openai.com	gpt-4o-mini	0.15	0.075	0.6	0.5
//	llm.example.com:8443	*	0		0
//
// The host is that of a stage's base_url, with its port or for every port, and the model
// that of its config; * is every other model of the host. Prices are for a million tokens: in, in
// and cached by the service, and out. The batch column is what calls in batches cost as a
// share of that. Without a cached price a cached token costs what any costs, and columns
// but host, model and input may be left out. What costs 0 is free.
//
// The user's file is the one that RACFLOW_PRICES names, or else prices.tsv in the folder
// racflow of the user's configuration. A line of it goes before the table's, and a
// stage's price block goes before both.
//
// The table, prices.tsv, has prices in dollars of well-known models at their own services.
// It is made of LiteLLM's (LICENSE-litellm) by the command in the folder generate, and
// says of which version and day. Prices change, so plans name that day. It has the lowest
// step where long prompts cost more, takes a token that is written into a service's cache
// for any other token, and has no prices of Azure, where a deployment's name does not tell
// the model, and of gateways. A server of one's own is not in it, so it has no price.
//
// The package fetches nothing.

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
func priceOf(row map[string]string) (p Price, err error) {
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

// PricesVariable names the user's file of prices in the environment.
const PricesVariable = "RACFLOW_PRICES"

// PriceTables are where prices are looked up, the first that has one first.
type PriceTables []table

// table has the prices of models by "host model".
type table map[string]entry

type entry struct {
	price Price
	from  string
}

//go:embed prices.tsv
var shipped []byte

// OpenPrices reads the user's file, if there is one, and the table that comes with racflow.
func OpenPrices() (PriceTables, error) {
	name := os.Getenv(PricesVariable)
	asked := name != ""
	if !asked {
		config, err := os.UserConfigDir()
		if err == nil {
			name = filepath.Join(config, "racflow", "prices.tsv")
		}
	}
	var all PriceTables
	if name != "" {
		text, err := bounded.ReadRegular(name, bounded.MaxSource)
		switch {
		case err == nil:
			own, err := read(text, func(line int) string { return fmt.Sprintf("%s line %d", name, line) })
			if err != nil {
				return nil, err
			}
			all = append(all, own)
		case asked || !os.IsNotExist(err):
			return nil, fmt.Errorf("read the prices (%s): %w", PricesVariable, err)
		}
	}
	from := origin(time.Now())
	ours, err := read(shipped, func(int) string { return from })
	return append(all, ours), err
}

var header = regexp.MustCompile(`LiteLLM (\S+) .*(\d{4}-\d\d-\d\d)`)

// origin names the table that comes with racflow, with its version and how old it is.
func origin(now time.Time) string {
	m := header.FindStringSubmatch(string(shipped[:bytes.IndexByte(shipped, '\n')]))
	day, err := time.Parse(time.DateOnly, m[2])
	if err != nil {
		panic(err) // the generator writes it
	}
	days := max(0, int(now.Sub(day).Hours()/24))
	return fmt.Sprintf("LiteLLM %s of %s, %s old", m[1], m[2], terminal.Plural(days, "day"))
}

// Find returns what a model costs at a service, by the address of that, and where that is
// written; false: nobody says.
func (t PriceTables) Find(address, model string) (p Price, from string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return p, "", false
	}
	for _, one := range t {
		for _, host := range []string{u.Host, u.Hostname()} {
			for _, name := range []string{model, "*"} {
				if e, ok := one[key(host, name)]; ok {
					return e.price, e.from, true
				}
			}
		}
	}
	return p, "", false
}

func key(host, model string) string { return strings.ToLower(host) + " " + model }
