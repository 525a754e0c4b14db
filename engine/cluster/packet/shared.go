package packet

// shared is what parts of a packet refer to by number.
type shared struct {
	Texts   []string `json:"texts,omitempty"`
	Metas   [][]int  `json:"metas,omitempty"`
	Entries *entries `json:"entries,omitempty"`
}

func (w *writer) shared() shared {
	s := shared{Texts: w.texts, Metas: w.metas}
	if len(w.entries.ID) > 0 {
		s.Entries = &w.entries
	}
	return s
}

func (s shared) reader() *reader {
	r := &reader{texts: s.Texts, metas: s.Metas}
	r.unpack()
	if s.Entries != nil {
		r.entries = *s.Entries
		r.check()
	}
	return r
}
