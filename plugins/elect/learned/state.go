package learned

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	stateFile = "weights.json"
	mostly    = 1e6 // the greatest weight
)

// model is what an election knows of its voters, and the content of its state.
type model struct {
	Rows        int                `json:"rows"`   // that it was learnt from
	Labels      int                `json:"labels"` // that they and the votes on them have
	Leader      string             `json:"leader"` // whose answer stands; empty: nobody's
	Weights     map[string]float64 `json:"weights"`
	Calibration calibration        `json:"calibration"`
	Alone       map[string]float64 `json:"alone"` // the share of the rows that each voter is right on
}

// writeState writes the model into a folder, where people can read and change it.
func (m *model) writeState(dir string) error {
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, stateFile)
	if err := os.WriteFile(file+".new", append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// readState reads the model of a folder; an empty one where it has none.
func readState(dir string) (*model, error) {
	m := &model{Calibration: uncalibrated}
	if dir == "" {
		return m, nil
	}
	file := filepath.Join(dir, stateFile)
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err = d.Decode(m)
	for voter, w := range m.Weights {
		if err == nil && !(w >= 0 && w <= mostly) {
			err = fmt.Errorf("the weight of %s is %v, not 0 to 1e6", voter, w)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("what was learnt cannot be read: %w; mend %s, or remove its folder, and it is learnt anew", err, file)
	}
	return m, nil
}
