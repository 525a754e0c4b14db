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
	"github.com/racflow/racflow/engine/internal/terminal"
)

// This file looks up the prices of models that a pipeline file does not set: in a file of the user,
// then in a table that comes with racflow.
//
// Both have the same form: tab-separated lines. The first line names the columns; lines that begin
// with # are comments.
//
//	host	model	input	cached	output	batch
//	api.openai.com	gpt-4o-mini	0.15	0.075	0.6	0.5
//	llm.example.com:8443	*	0		0
//
// The host is the host of a stage's base_url; without a port it means every port. The model is the
// model in the stage's config; * is every other model of the host. Prices are for a million input
// tokens, input tokens that the service has cached, and output tokens. The batch column has the
// price of calls in batches as a share of these prices. Without a cached price, a cached token
// costs as much as any other input token. Only host, model and input are required. A price of 0
// means free.
//
// RACFLOW_PRICES names the user's file; without it, the file is prices.tsv in the folder racflow of
// the user's configuration. Its lines override the table's. A stage's price block overrides both.
//
// The table, prices.tsv, has the prices in dollars of well-known models at their own services. The
// command in the folder generate makes it from LiteLLM's table (LICENSE-litellm), and writes its
// version and day into it. Prices change, so plans name that day. If long prompts cost more, the
// table has the price of the shortest. It prices a token that is written into a service's cache
// like any other token. It has no prices of Azure, where a deployment's name does not identify the
// model, of gateways, or of users' own servers.
//
// The package downloads nothing.

// columns lists the columns of a table.
var columns = []string{"host", "model", "input", "cached", "output", "batch"}

// read parses a table. place names a line of the table, for messages.
func read(text []byte, place func(line int) string) (table, error) {
	t := table{}
	var names []string
	for i, line := range strings.Split(strings.TrimPrefix(string(text), "\ufeff"), "\n") {
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
		p.Batch = 0 // 0 means 0.5
	} else if p.Batch == 0 && err == nil {
		err = fmt.Errorf("batch is 0; write the share of the prices that calls in batches cost, as 0.5")
	}
	return p, err
}

// pricesVariable is the environment variable that names the user's file of prices.
const pricesVariable = "RACFLOW_PRICES"

// PriceTables is searched in order: the first table with a price wins.
type PriceTables []table

// table maps "host model" to a price.
type table map[string]entry

type entry struct {
	price Price
	from  string
}

//go:embed prices.tsv
var shipped []byte

// OpenPrices reads the user's file, if there is one, and the table that comes with racflow.
func OpenPrices() (PriceTables, error) {
	name := os.Getenv(pricesVariable)
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
			return nil, fmt.Errorf("read the prices (%s): %w", pricesVariable, err)
		}
	}
	from := origin(time.Now())
	ours, err := read(shipped, func(int) string { return from })
	return append(all, ours), err
}

var header = regexp.MustCompile(`LiteLLM (\S+) .*(\d{4}-\d\d-\d\d)`)

// origin describes the table that comes with racflow: its version and how old it is.
func origin(now time.Time) string {
	m := header.FindStringSubmatch(string(shipped[:bytes.IndexByte(shipped, '\n')]))
	day, err := time.Parse(time.DateOnly, m[2])
	if err != nil {
		panic(err) // the generator writes it
	}
	days := max(0, int(now.Sub(day).Hours()/24))
	return fmt.Sprintf("LiteLLM %s of %s, %s old", m[1], m[2], terminal.Plural(days, "day"))
}

// Find returns the price of a model at the service with this address, and where the price is
// written; false: no table has it.
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
