package model

import "slices"

// Entry is a model of racflow's list, or one on this machine.
type Entry struct {
	Name       string `json:"name"`
	Title      string `json:"title"` // of one that is not of the list: where it came from
	Kind       Kind   `json:"kind,omitempty"`
	Parameters int64  `json:"parameters,omitempty"`
	Dimensions int    `json:"dimensions,omitempty"`
	License    string `json:"license,omitempty"`
	Repository string `json:"repository,omitempty"`
	Bytes      int64  `json:"bytes,omitempty"` // here, or of the published weights
	Dir        string `json:"dir,omitempty"`   // "": it is not here
	Commit     string `json:"commit,omitempty"`
	Pinned     bool   `json:"pinned"`          // its weights are those of the list
	Error      string `json:"error,omitempty"` // why it cannot be used
}

// List returns the models of racflow's list, and behind them the others on this machine.
func List() ([]Entry, error) {
	var all []Entry
	for _, m := range Known() {
		e := Entry{
			Name: m.Name, Title: m.Title, Kind: m.Kind, Parameters: m.Parameters, Dimensions: m.Dimensions, License: m.License, Repository: m.Repository,
			Bytes: m.Bytes, Commit: m.Commit, Pinned: m.pin(weightsFile) != "",
		}
		s, err := m.Status()
		if err != nil {
			e.Error = err.Error()
		} else if s.Installed {
			e.here(s)
		}
		all = append(all, e)
	}
	names, err := Installed()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if slices.ContainsFunc(all, func(e Entry) bool { return e.Name == name }) {
			continue
		}
		e := Entry{Name: name, Title: "put there by hand"}
		s, err := StatusOf(name)
		var d Description
		if err == nil {
			e.here(s)
			d, err = Describe(s.Dir)
		}
		if err != nil {
			e.Error = err.Error()
		}
		e.Kind, e.Parameters, e.Dimensions = d.Kind, d.Parameters, d.Dimensions
		all = append(all, e)
	}
	return all, nil
}

// here adds what lies on this machine.
func (e *Entry) here(s Status) {
	e.Dir, e.Bytes = s.Dir, s.Bytes
	switch {
	case !s.Installed:
		e.Error = "files are missing: racflow model verify " + e.Name
	case s.Record != nil:
		e.Commit, e.Pinned = s.Record.Commit, s.Record.Pinned
		if e.Repository == "" {
			e.Title = s.Record.Source
		}
	}
}
