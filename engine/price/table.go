package price

import (
	"bytes"
	_ "embed" // the table
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/bounded"
	"github.com/racflow/racflow/engine/pipeline"
	"github.com/racflow/racflow/engine/terminal"
)

// Variable names the user's file of prices in the environment.
const Variable = "RACFLOW_PRICES"

// Tables are where prices are looked up, the first that has one first.
type Tables []table

// table has the prices of models by "host model".
type table map[string]entry

type entry struct {
	price pipeline.Price
	from  string
}

//go:embed prices.tsv
var shipped []byte

// Open reads the user's file, if there is one, and the table that comes with racflow.
func Open() (Tables, error) {
	name := os.Getenv(Variable)
	asked := name != ""
	if !asked {
		config, err := os.UserConfigDir()
		if err == nil {
			name = filepath.Join(config, "racflow", "prices.tsv")
		}
	}
	var all Tables
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
			return nil, fmt.Errorf("read the prices (%s): %w", Variable, err)
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
func (t Tables) Find(address, model string) (p pipeline.Price, from string, ok bool) {
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
